import type { Change } from '../apply/changes.ts'
import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Keyring } from '../db/seal.ts'

/**
 * The logs and changes of runs that changed nothing. The same file every night has the same ones: they are stored once in
 * `shared_results`, and each run names their row (docs/adr/0077-runs-share-what-they-did.md). Only this file knows where they are
 * stored.
 */

/** The first format that shares results: earlier versions read its runs only while they are replaced. */
const firstShared = 6

/** The use of a row is written down again after this time. */
const noted = "interval '1 day'"

type Result = { readonly applied: boolean; readonly logs: readonly string[]; readonly changes: readonly Change[] }

/**
 * The form in which the end of a run stores its logs and changes.
 *
 * @property own the values of its columns `logs`, `changes` and `shared_result`
 * @property shared those of `keepShared`; null when the run keeps its logs and changes itself
 */
export type StoredResult = {
  readonly own: readonly [logs: readonly string[] | null, changes: string | null, shared: string | null]
  readonly shared: readonly [logs: readonly string[], changes: string] | null
}

/** @param format the format of the run: an API of an earlier version reads the logs of its own runs */
export function storedResult(
  keyring: Keyring,
  { format }: { readonly format: number },
  { applied, logs, changes }: Result,
): StoredResult {
  const text = changes.length === 0 ? null : JSON.stringify(changes)
  const isUnchanged = applied && changes.every(({ action }) => action === 'unchanged')
  if (text === null || !isUnchanged || format < firstShared) return { own: [logs, text, null], shared: null }
  const key = keyring.digest('result', JSON.stringify(logs), text).toString('hex').slice(0, 32)
  // An empty list is stored, because null would mean no changes: the outcome of the run is `unchanged` here, too.
  return { own: [null, '[]', key], shared: [logs, text] }
}

/**
 * A part of the statement that ends a run, in SQL: writes the row that it shares, unless it exists. It waits only for a run that
 * writes the same row at the same time. Deleting needs no lock: a row that was used lately stays.
 */
export const keepShared = (key: string, logs: string, changes: string): string => `kept AS (
    INSERT INTO shared_results (key, logs, changes) SELECT ${key}::uuid, ${logs}::text[], ${changes}::jsonb
    WHERE NOT EXISTS (SELECT FROM shared_results s WHERE s.key = ${key}::uuid AND s.used_at > now() - ${noted})
    ON CONFLICT (key) DO UPDATE SET used_at = excluded.used_at)`

const sharedOf = (column: 'logs' | 'changes'): string =>
  `(SELECT s.${column} FROM shared_results s WHERE s.key = runs.shared_result)`

/** The log of a row of `runs`, in SQL. */
export const logsSql = `coalesce(${sharedOf('logs')}, runs.logs, '{}')`

/** The changes of a row of `runs`, in SQL; null when it has none. */
export const changesSql = `coalesce(${sharedOf('changes')}, runs.changes)`

type Row = { readonly sharedResult: string | null; readonly logs: string[]; readonly changes: Prisma.JsonValue }

/** The logs and changes of a run that was read. */
export async function readResult(
  db: Db,
  { sharedResult: key, logs, changes }: Row,
): Promise<Pick<Row, 'logs' | 'changes'>> {
  const shared = key === null ? null : await db.sharedResult.findUnique({ where: { key } })
  return shared ?? { logs, changes }
}
