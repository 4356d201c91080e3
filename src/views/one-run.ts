import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Keyring } from '../db/seal.ts'
import { mask } from '../document/mask.ts'
import { print } from '../document/yaml.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows } from '../permissions.ts'
import { nothingAllowed } from '../plan/engine.ts'
import { openDocument, readDocument, type SealedDocument } from '../runs/documents.ts'
import { sealedColumn, showsGenerated } from '../runs/ledger.ts'
import { notesOf } from '../runs/notes.ts'
import { isWithinCeiling, mayReadRun, optionsOf } from '../runs/options.ts'
import { changesShown, logNotShown, runsWithHiddenLogs } from './former-owner.ts'
import { type Repair, readRepairs } from './repair.ts'
import { complete, type Run, run, runHeadSelect, toRunHead } from './run.ts'
import { readStoredChanges } from './stored-changes.ts'

/** One run with its document, log and changes, as a single read answers it. */

const fullRunSelect = {
  ...runHeadSelect,
  logs: true,
  blueprint: true,
  document: true,
  generated: true,
  options: true,
  changes: true,
  planTag: true,
  notes: true,
} satisfies Prisma.RunSelect

type Stored = Prisma.RunGetPayload<{ select: typeof fullRunSelect }>
type Row = Stored & SealedDocument
/** The request for a run. To read the document of a large run takes longer than the rest. */
type Wanted = { readonly id: string; readonly withBlueprint: boolean }
export type Opening = { readonly registry: Registry; readonly keyring: Keyring }

/** @returns the run as this caller sees it; null when there is none, or none that the caller may see */
export async function readRun(
  db: Db,
  opening: Opening,
  { id, withBlueprint }: Wanted,
  actor: Actor,
  progressOf: (run: { readonly id: string }, attempt: number) => Promise<NonNullable<Run['progress']> | null>,
): Promise<Run | null> {
  const row = await db.run.findUnique({ where: { id }, select: fullRunSelect, relationLoadStrategy: 'join' })
  if (row === null || !mayReadRun(row, actor)) return null
  const shows = row.generated !== null && showsGeneratedTo(row, actor) && (await showsGenerated(db, id))
  const document = withBlueprint ? await readDocument(db, row) : { holder: id, blueprint: null }
  const repair = (await readRepairs(db, [row], actor))(id)
  const logs = (await runsWithHiddenLogs(db, [id], actor)).has(id) ? [logNotShown] : row.logs
  const failed = await readAttempts(db, id, actor)
  const [completed] = await complete(db, [
    { ...toRun({ ...row, ...document, logs }, opening, shows, actor, repair), failed_attempts: failed },
  ])
  if (completed?.state !== 'running') return completed ?? null
  return { ...completed, progress: await progressOf(completed, completed.attempts) }
}

/** A run that was sealed under another SECRET_KEY, or by a version with other models, is shown without its documents. */
export function toRun(row: Row, { registry, keyring }: Opening, shows: boolean, actor: Actor, repair: Repair): Run {
  const open = (sealed: string) => keyring.open(sealed, sealedColumn(row.id, 'generated'))
  const { changes, isWhole } = readStoredChanges(row.changes)
  return {
    ...toRunHead(row, actor, repair),
    logs: row.logs,
    ...conditionsShown(row, isWhole),
    progress: null,
    failed_attempts: [],
    changes: changesShown(changes, actor),
    ...notesOf(row.notes),
    etag: row.planTag === null ? null : `"${row.planTag}"`,
    blueprint: otherwise(closed, () => blueprintOf(row, { registry, keyring })),
    generated: otherwise({}, () =>
      shows && row.generated !== null ? run.shape.generated.parse(JSON.parse(open(row.generated))) : {},
    ),
  }
}

/** Reads the failed attempts. Their causes are for callers who may see all runs. */
async function readAttempts(db: Db, runId: string, actor: Actor): Promise<Run['failed_attempts']> {
  if (!allows(actor, 'view_run')) return []
  const rows = await db.runAttempt.findMany({ where: { runId }, orderBy: { attempt: 'asc' } })
  return rows.map(({ attempt, at, cause }) => ({ attempt, at: at.toISOString(), cause }))
}

const closed = '# This document cannot be opened: it was sealed under another SECRET_KEY, or by another version.\n'

function otherwise<Value>(fallback: Value, read: () => Value): Value {
  try {
    return read()
  } catch {
    return fallback
  }
}

/** The document of a run, masked; empty when it is not stored any more. */
function blueprintOf({ holder, blueprint }: SealedDocument, { registry, keyring }: Opening): string {
  if (blueprint === null) return ''
  return print(mask(openDocument(keyring, { holder, blueprint }), registry))
}

/** The condition as it was sent: `takeover`, `deletes=3`. */
const wordOf = (word: string, value: boolean | number | null): string[] =>
  typeof value === 'number' ? [`${word}=${value}`] : value === true ? [word] : []

/** @param isWhole whether its changes can be read */
function conditionsShown(
  row: Pick<Stored, 'options'>,
  isWhole: boolean,
): Pick<Run, 'owner' | 'owners' | 'allowed' | 'message' | 'cancelled_by' | 'unreadable'> {
  const found = optionsOf(row)
  const { owner = null, owners = [], message = null, cancelled_by = null } = found ?? {}
  return {
    owner,
    owners: [owner, ...owners].filter((label) => label !== null).sort(),
    allowed: Object.entries(found?.allow ?? nothingAllowed).flatMap(([word, value]) => wordOf(word, value)),
    message,
    cancelled_by,
    unreadable: [...(isWhole ? [] : ['changes' as const]), ...(found === null ? ['options' as const] : [])],
  }
}

/**
 * Whether the caller sees generated values: a superuser does, and the submitter, but not another user who impersonates it. A
 * token with a ceiling sees only those of runs that had no more rights.
 */
function showsGeneratedTo(row: Stored, { pk, isSuperuser, impersonator, ceiling }: Actor): boolean {
  if (isSuperuser && impersonator === undefined && ceiling === undefined) return true
  if (row.submitterPk !== pk) return false
  const options = optionsOf(row)
  if (options === null || !isWithinCeiling(row, ceiling)) return false
  return impersonator === undefined || impersonator.pk === options.impersonator?.pk
}
