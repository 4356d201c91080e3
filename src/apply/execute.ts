import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { type EngineTx, withEngine } from '../db/engine-tx.ts'
import { brokenConstraint } from '../db/errors.ts'
import { nameLock } from '../db/locks.ts'
import type { Model } from '../models/define.ts'
import type { LabelledRow } from '../plan/claims.ts'
import { type Conditions, type Engine, unconditional } from '../plan/engine.ts'
import { isExclusive } from '../plan/looks.ts'
import { quoted } from '../plan/statements.ts'
import { type Step, waysToFind } from '../plan/step.ts'
import { type Origin, referenceRowsOf, toChangedRow, toNewRow } from '../plan/storage.ts'
import { decidesRights } from '../rights/policy.ts'
import { lockRights } from '../rights/rights.ts'
import type { AuditedChange } from './audit.ts'
import { type Finding, keyOf } from './finding.ts'
import { removal } from './follow.ts'
import { Overtaken, Refusal } from './refusal.ts'
import type { Explain, Writes } from './writes.ts'

/**
 * Waits for other transactions that write the same names or the same stack, or that write rights. All take the locks in one order,
 * and before they write a row. Two documents that take over rows which the other deletes may still deadlock: PostgreSQL ends one
 * after a second, and it is tried again. Waits for the database only for a document that names many.
 *
 * @throws {Refusal} for more names than PostgreSQL can lock
 */
export async function lock(
  tx: EngineTx,
  steps: readonly Step[],
  { stack }: Pick<Conditions, 'stack'> = unconditional,
): Promise<void> {
  const keys = [...new Set(steps.flatMap(locksOf))].sort()
  if (keys.length > alwaysFit) await refuseTooMany(tx, keys.length)
  if (steps.some(decidesRights)) lockRights(tx)
  tx.send({
    text: 'SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) k',
    values: [[...(stack === null ? [] : [nameLock('stack', [stack])]), ...keys]],
  })
}

/** Waits for applies of a stack, which then wait for this transaction. */
export const lockStack = (tx: Tx, stack: string): Promise<void> =>
  withEngine(tx, (engine) => lock(engine, [], { stack }))

/** Locks rows that follow from a document by their names and by their keys, because a row may be renamed meanwhile. */
export async function lockRows(tx: EngineTx, rows: readonly LabelledRow[]): Promise<void> {
  const steps = rows.map((row) => removal(row))
  await lock(tx, steps)
  for (const [table, of] of Map.groupBy(rows, ({ model }) => model.table))
    tx.send({
      text: `SELECT pk FROM ${quoted(table)} WHERE pk = ANY($1) ORDER BY pk FOR UPDATE`,
      values: [of.map(({ pk }) => pk)],
    })
}

/** The most locks that fit into every PostgreSQL beside those of others. */
const alwaysFit = 2_000

const capacity = z.object({ capacity: z.int() })

/** All transactions share one table of locks: when it is full, those of others fail too. */
async function refuseTooMany(tx: EngineTx, count: number): Promise<void> {
  const [row] = await tx.query(capacity, {
    text: `SELECT current_setting('max_locks_per_transaction')::integer
      * (current_setting('max_connections')::integer + current_setting('max_prepared_transactions')::integer) AS capacity`,
    values: [],
  })
  const most = Math.floor((row?.capacity ?? 0) / 2)
  if (count <= most) return
  const text = `the document names ${count} rows, and PostgreSQL is set up to lock ${most} of them at once`
  const hint = 'send it in parts, or ask the operator to raise max_locks_per_transaction of PostgreSQL'
  throw new Refusal([{ is: 'stated', reason: 'invalid', text, hint }])
}

/** The locks of each way to find the row, and of each name that no other row may have: no index of the database guards that. */
function locksOf({ model, identifiers, attrs, was }: Step): string[] {
  const isGuarded = (name: string) => model.names.length > 1 && model.names.includes(name)
  const names = [...identifiers, ...attrs].filter(([name]) => model.fields.get(name)?.folded || isGuarded(name))
  const before = was === undefined ? [] : [[was]]
  const ways = waysToFind(model, [...identifiers.keys()]).map((way) => way.map((each) => identifiers.get(each)))
  return [...ways, ...before, ...names.map(([, value]) => [value])].map((each) => nameLock(model.table, each))
}

/**
 * Writes the finding, as soon as something else is read or written.
 *
 * @param origin that of a new row
 */
export function execute(writes: Writes, { keyring }: Engine, finding: Finding, origin: Origin): void {
  const { step, action, row, values, changed, identity } = finding
  const { model, edits } = step
  const explain: Explain = (error, count) => asRefusal(error, finding, count)
  const becomes = finding.ownership?.becomes
  const none = { row: { columns: new Map(), links: new Map() }, references: [], referring: [] }
  if (action === 'create') {
    if (identity === undefined) throw new Error(`${model.name}: a new row has no key`)
    const newRow = toNewRow(model, identity, values, origin, keyring)
    const references = referenceRowsOf(model, values)
    writes.add(model, { ...none, kind: 'insert', pk: identity.pk, row: newRow, references }, false, explain)
    return
  }
  if (row === undefined) return
  const { pk } = row
  if (action === 'delete') {
    writes.add(model, { ...none, kind: 'delete', pk }, false, explain)
  } else if (action === 'update' || becomes !== undefined) {
    const referring = changed.filter((name) => {
      const { reference, storage } = model.fields.get(name) ?? {}
      return reference !== undefined && storage?.in === 'settings'
    })
    const { columns, links } = toChangedRow(model, row, changed, values, keyring)
    const references = referenceRowsOf(model, values, referring)
    const owner = becomes === undefined ? [] : ([['owner', becomes]] as const)
    const stored = { columns: new Map([...columns, ...owner]), links }
    const update = { kind: 'update', pk, row: stored, referring, references, edits } as const
    writes.add(model, update, changed.some(isNaming(model)), explain)
  }
}

/** Fields whose values only one row may have. */
const isNaming =
  (model: Model) =>
  (name: string): boolean => {
    const field = model.fields.get(name)
    return (field !== undefined && isExclusive(model, field)) || model.identifiers.flat().includes(name)
  }

/** @returns the change for the audit row; undefined when nothing was written */
export function changeOf(finding: Finding): AuditedChange | undefined {
  const { step, action, changed, ownership } = finding
  const { name: model } = step.model
  const key = keyOf(finding)
  if (key === undefined) return undefined
  const relabelled = ownership?.becomes === undefined ? [] : ['owner']
  if (action === 'unchanged' || action === 'leave')
    return relabelled.length > 0 ? { model, key, action: 'update', fields: relabelled } : undefined
  return { model, key, action, fields: action === 'delete' ? [] : [...changed, ...relabelled] }
}

/** Converts a violated constraint: two documents took one value at the same time, or a reference has no row. */
function asRefusal(error: unknown, effect: Finding, count: number): unknown {
  const rule = brokenConstraint(error)
  if (rule === undefined) return error
  const objections = [{ is: 'broken', effect, count, rule: rule.kind }] as const
  return effect.action === 'delete' ? new Refusal(objections, error) : new Overtaken(objections, error)
}
