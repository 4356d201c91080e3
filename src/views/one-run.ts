import { type Change, change } from '../apply/changes.ts'
import { attempt } from '../attempt.ts'
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
import { isWithinCeiling, mayReadRun, noSuchRun, optionsOf } from '../runs/options.ts'
import { notAsked, type WhyOf } from '../runs/why.ts'
import { changesShown, logNotShown, runsWithHiddenLogs } from './former-owner.ts'
import { readRepairs } from './repair.ts'
import { causeShown, complete, type Run, run, runErrors, toRunHead, whyWithinMs } from './run.ts'

/** One run with its document, log and changes, as a single read answers it. */

const fullRun = {
  include: { submitter: { select: { username: true } } },
  omit: { entryDigests: true },
} satisfies Prisma.RunDefaultArgs

type Stored = Prisma.RunGetPayload<typeof fullRun>
/** The request for a run. To read the document of a large run takes longer than the rest. */
type Wanted = { readonly id: string; readonly withBlueprint: boolean }
/** What is asked of a run that has not ended. */
export type Live = {
  progressOf(run: { readonly id: string }, attempt: number): Promise<NonNullable<Run['progress']> | null>
  readonly whyOf: WhyOf
}

export type Opening = { readonly registry: Registry; readonly keyring: Keyring }

/** @throws {Problem} `not_found` when there is no run, or none that the caller may see */
export async function readRun(
  db: Db,
  opening: Opening,
  { id, withBlueprint }: Wanted,
  actor: Actor,
  { progressOf, whyOf }: Live = { progressOf: async () => null, whyOf: notAsked },
): Promise<Run> {
  const row = await db.run.findUnique({ where: { id }, ...fullRun })
  if (row === null || !mayReadRun(row, actor)) throw noSuchRun(actor)
  const repair = (await readRepairs(db, [row], actor))(id)
  const isLogHidden = (await runsWithHiddenLogs(db, [id], actor)).has(id)
  const { changes, isWhole } = readStoredChanges(row.changes)
  const generated = await generatedOf(db, opening, row, actor)
  const until = Object.keys(generated).length === 0 ? null : row.generatedUntil
  const shown: Run = {
    ...toRunHead(row, actor, repair),
    logs: isLogHidden ? [logNotShown] : row.logs,
    errors: isLogHidden ? [] : runErrors.parse(row.errors),
    ...conditionsShown(row, isWhole),
    not_put_back: isLogHidden ? [] : (optionsOf(row)?.not_put_back ?? []),
    pipeline: optionsOf(row)?.pipeline ?? null,
    progress: null,
    failed_attempts: await readAttempts(db, row, actor),
    changes: changesShown(changes, actor),
    etag: row.planTag === null ? null : `"${row.planTag}"`,
    blueprint: withBlueprint ? await blueprintOf(await readDocument(db, row), opening) : '',
    generated,
    generated_until: until?.toISOString() ?? null,
  }
  const [completed = shown] = await complete(db, [shown])
  if (completed.finished_at !== null) return completed
  // A queue that is silent delays both.
  const [why, progress] = await Promise.all([
    whyOf([id], whyWithinMs),
    completed.state === 'running' ? progressOf(completed, completed.attempts) : null,
  ])
  return { ...completed, cause: causeShown(why.get(id), actor), progress }
}

/**
 * The changes of a run as its row holds them. An element that cannot be read, because SQL or another version wrote it, is left
 * out: the rest of the run is shown.
 *
 * @returns `isWhole`: false when some part of it could not be read
 */
function readStoredChanges(stored: unknown): { readonly changes: Change[]; readonly isWhole: boolean } {
  const all = stored ?? []
  if (!Array.isArray(all)) return { changes: [], isWhole: false }
  const changes = all.flatMap((each: unknown) => change.safeParse(each).data ?? [])
  return { changes, isWhole: changes.length === all.length }
}

/**
 * Reads the failed attempts. Their causes are for callers who may see all runs. The last one is recorded after it gave way to a
 * cancel: it failed no later than that ended the run.
 */
async function readAttempts(db: Db, { id: runId, finishedAt }: Stored, actor: Actor): Promise<Run['failed_attempts']> {
  if (!allows(actor, 'view_run')) return []
  const rows = await db.runAttempt.findMany({ where: { runId }, orderBy: { attempt: 'asc' } })
  return rows.map(({ attempt, at, cause }) => {
    const failedAt = finishedAt !== null && at > finishedAt ? finishedAt : at
    return { attempt, at: failedAt.toISOString(), cause }
  })
}

/**
 * The document of a run, masked; empty when it is not stored any more. One that was sealed under another SECRET_KEY, or by a version
 * with other models, is not shown.
 */
async function blueprintOf({ holder, blueprint }: SealedDocument, { registry, keyring }: Opening): Promise<string> {
  if (blueprint === null) return ''
  try {
    return print(mask(await openDocument(keyring, { holder, blueprint }), registry))
  } catch {
    return '# This document cannot be opened: it was sealed under another SECRET_KEY, or by another version.\n'
  }
}

/** The generated values, for those who may see them; none when they cannot be opened. */
async function generatedOf(db: Db, { keyring }: Opening, row: Stored, actor: Actor): Promise<Run['generated']> {
  const { id, generated } = row
  if (generated === null || !showsGeneratedTo(row, actor) || !(await showsGenerated(db, id))) return {}
  const place = sealedColumn(id, 'generated')
  return attempt(() => run.shape.generated.parse(JSON.parse(keyring.open(generated, place)))) ?? {}
}

/** The condition as it was sent: `takeover`, `deletes=3`. */
const wordOf = (word: string, value: boolean | number | null): string[] =>
  typeof value === 'number' ? [`${word}=${value}`] : value === true ? [word] : []

function conditionsShown(row: Stored, isWhole: boolean) {
  const found = optionsOf(row)
  const { owner = null, owners = [], message = null, former = null, cancelled_by = null } = found ?? {}
  return {
    owner,
    stack: found?.stack ?? null,
    owners: [owner, ...owners].filter((label) => label !== null).sort(),
    allowed: Object.entries(found?.allow ?? nothingAllowed).flatMap(([word, value]) => wordOf(word, value)),
    message,
    former,
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
