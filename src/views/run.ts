import { z } from 'zod'
import { change } from '../apply/changes.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Keyring } from '../db/seal.ts'
import { mask } from '../document/mask.ts'
import { print } from '../document/yaml.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows } from '../permissions.ts'
import { openDocument, readDocument, type SealedDocument } from '../runs/documents.ts'
import { lockedRuns, sealedColumn, showsGenerated } from '../runs/ledger.ts'
import { messageOfRun } from '../runs/message.ts'
import { notesOf, unmanagedFields, unnamedObject } from '../runs/notes.ts'
import {
  cancelledByOf,
  isWithinCeiling,
  mayReadRun,
  ownershipOfRun,
  standsSinceOf,
  submitterOf,
} from '../runs/options.ts'
import { readResult } from '../runs/results.ts'
import { changesShown, logNotShown, runsWithHiddenLogs } from './former-owner.ts'
import { type Repair, readRepairs } from './repair.ts'
import { mostLines, readExtracts, summaryOf } from './run-summary.ts'
import { readStoredChanges } from './stored-changes.ts'
import { userFields } from './user.ts'
import { inOrder, type Reading, type View } from './view.ts'

/** A run, as lists show it and, with its document, as it is read by itself. */

const time = z.iso.datetime()

const runHead = z.object({
  id: z.guid().meta({ examples: ['01a1fd66-cb30-7a41-8c55-2f1b7a9d0e63'] }),
  state: z
    .enum(['queued', 'running', 'done', 'failed', 'cancelled'])
    .meta({ title: 'RunState', description: '`running`: a worker has locked it.', examples: ['done'] }),
  title: z.string().meta({ examples: ['apply blueprint organisation'] }),
  mode: z.enum(['apply', 'plan']).meta({ title: 'RunMode', description: 'A plan was rolled back.' }),
  kind: z.string().meta({ description: "The provider's kind, or `blueprint`.", examples: ['blueprint'] }),
  slug: z
    .string()
    .nullable()
    .meta({ description: 'Of the application; null for a blueprint.', examples: [null] }),
  applied: z.boolean().nullable(),
  reason: z
    .string()
    .nullable()
    .meta({ examples: [null] }),
  cause: z
    .string()
    .nullable()
    .meta({
      description: 'Why it failed: the innermost message, with its SQLSTATE. Null for callers without `view_run`.',
      examples: [null],
    }),
  repaired: z
    .boolean()
    .nullable()
    .meta({
      description:
        'Of a failed run: whether a later run applied the same document, or changed or applied the same application. False for other runs. Null for callers without `view_run`.',
      examples: [false],
    }),
  repaired_by: z
    .guid()
    .nullable()
    .meta({ description: 'The run that repaired it. Null for callers who may not see that run.', examples: [null] }),
  submitter: userFields.pk.nullable(),
  submitter_name: userFields.username.nullable(),
  request_id: z.string().meta({ examples: ['6a1c5f2e-3b0d-4f4e-9a51-0d8f6c1b7e21'] }),
  attempts: z.int().meta({ description: 'How often it was enqueued.', examples: [1] }),
  created_at: time.meta({ examples: ['2026-11-20T08:15:00.120Z'] }),
  started_at: time.meta({ examples: ['2026-11-20T08:15:00.123Z'] }).nullable(),
  finished_at: time.meta({ examples: ['2026-11-20T08:15:00.131Z'] }).nullable(),
  queue_ms: z
    .int()
    .nullable()
    .meta({ description: 'Milliseconds from `created_at` to `started_at`.', examples: [3] }),
  work_ms: z
    .int()
    .nullable()
    .meta({ description: 'Milliseconds from `started_at` to `finished_at`.', examples: [8] }),
})

const lines = z.array(z.string())

export const runSummary = runHead
  .extend({
    summary: z.string().meta({
      description:
        'One sentence: how many entries it deleted, changed, created and left unchanged, or would; or why it did nothing.',
      examples: ['1 created, 294 unchanged'],
    }),
    logs: lines.meta({
      description: `The first ${mostLines} lines. All of them are in the run itself.`,
      examples: [['group "platform" created']],
    }),
    log_lines: z.int().meta({ description: 'How many lines the log has.', examples: [295] }),
  })
  .meta({ id: 'RunSummary' })

const progress = z.object({ done: z.int(), total: z.int() })

const failedAttempt = z.object({ attempt: z.int(), at: time, cause: z.string() })

export const run = runHead
  .extend({
    logs: lines.meta({ examples: [['group "platform" created']] }),
    progress: progress.nullable().meta({
      description: 'Of a running document of many entries: how many are done, of all. Null when that is not known.',
      examples: [null],
    }),
    failed_attempts: z.array(failedAttempt).meta({
      description:
        'Those that failed, as far as they could be recorded: the last of a failed run too. Empty for callers without `view_run`.',
      examples: [[]],
    }),
    owner: z
      .string()
      .nullable()
      .meta({ description: 'The label of `Gatewright-Owner`, or of the document.', examples: ['team-a'] }),
    owners: z.array(z.string()).meta({
      description: 'All labels that the run is about: `owner`, and those of entries and of `prune`.',
      examples: [['team-a']],
    }),
    allowed: z.array(z.string()).meta({ description: 'The words of `Gatewright-Allow`.', examples: [[]] }),
    message: z
      .string()
      .nullable()
      .meta({
        description: 'Why, as the submitter said it: `Gatewright-Message`.',
        examples: ['back to the redirect of last week, CHG-1042'],
      }),
    cancelled_by: z
      .string()
      .nullable()
      .meta({
        description:
          'The user who cancelled it while it waited. Null for all other runs, those that nothing took in time among them.',
        examples: [null],
      }),
    changes: z.array(change).meta({
      description: 'What each entry changed, or would change; empty when it was refused, and while it waits.',
      examples: [
        [
          {
            model: 'service_core.group',
            key: { name: 'engineering' },
            action: 'update',
            fields: { is_superuser: { from: true, to: false } },
          },
        ],
      ],
    }),
    unnamed: z
      .array(unnamedObject)
      .nullable()
      .meta({
        description:
          'Of a plan with `reset` under an owner: what the owner manages, and the document neither names nor refers to, as far as the submitter may know it, up to 1 000. Of a document with `prune` it is in `changes`. Null when it was not looked for.',
        examples: [null],
      }),
    unmanaged: z.array(unmanagedFields).meta({
      description:
        'Of a plan: fields that the document before named, and this one does not, of objects that both name. They keep their values, which are others than the defaults. The document before is the last that was applied to the application; of a blueprint, under this name and owner by the submitter, or else to one of its objects.',
      examples: [[]],
    }),
    unreadable: z.array(z.enum(['changes', 'options'])).meta({
      description:
        'What the database holds of the run in a form that cannot be read. Of `changes`, those that can be read are shown; without `options`, `owner` is null, and `owners` and `allowed` are empty.',
      examples: [[]],
    }),
    stands_since: z
      .object({ run: z.guid().nullable(), at: time.nullable() })
      .nullable()
      .meta({
        description:
          'Of an apply of a reviewed plan of which nothing was left, because it stands already: by which run, as far as the submitter may see it, and since when, as far as that is recorded. Null otherwise.',
        examples: [null],
      }),
    etag: z
      .string()
      .nullable()
      .meta({ description: 'Of a plan: for `If-Match` of the apply.', examples: [null] }),
    earlier_run: z
      .guid()
      .nullable()
      .meta({
        description:
          'The applied run before it: of the same application, or of the same title, or else of one of its objects. Null when the caller sees none, and unless `include_earlier_run` asks for it.',
        examples: [null],
      }),
    blueprint: z.string().meta({
      description:
        'YAML; secrets are masked. A comment says so when it cannot be opened. Empty when it was not asked for.',
      examples: ['version: 1\nmetadata:\n  name: organisation\nentries: []\n'],
    }),
    generated: z.record(z.string(), z.record(z.string(), z.string())).meta({
      description:
        'Generated values by entry and field, for the submitter and superusers, as often as they are read while they are kept.',
      examples: [{}],
    }),
  })
  .meta({ id: 'Run' })

export type RunSummary = z.output<typeof runSummary>
export type Run = z.output<typeof run>
/** What lists and single reads have in common. */
export type RunHead = z.output<typeof runHead>

export const runHeadSelect = {
  id: true,
  state: true,
  title: true,
  mode: true,
  kind: true,
  slug: true,
  applied: true,
  reason: true,
  cause: true,
  submitterPk: true,
  submitter: { select: { username: true } },
  requestId: true,
  attempts: true,
  createdAt: true,
  startedAt: true,
  finishedAt: true,
} satisfies Prisma.RunSelect

/** @param repair by `readRepairs` */
export const toRunHead = (
  row: Prisma.RunGetPayload<{ select: typeof runHeadSelect }>,
  actor: Actor,
  repair: Repair,
): RunHead => ({
  id: row.id,
  state: row.state,
  title: row.title,
  mode: row.mode,
  kind: row.kind,
  slug: row.slug,
  applied: row.applied,
  reason: row.reason,
  cause: allows(actor, 'view_run') ? row.cause : null,
  ...repair,
  submitter: row.submitterPk,
  submitter_name: row.submitter?.username ?? null,
  request_id: row.requestId,
  attempts: row.attempts,
  created_at: row.createdAt.toISOString(),
  started_at: row.startedAt?.toISOString() ?? null,
  finished_at: row.finishedAt?.toISOString() ?? null,
  queue_ms: msBetween(row.createdAt, row.startedAt),
  work_ms: msBetween(row.startedAt, row.finishedAt),
})

const msBetween = (from: Date | null, to: Date | null) => from && to && to.getTime() - from.getTime()

async function* read(tx: Tx, keys: readonly string[], { actor }: Pick<Reading, 'actor'>) {
  const rows = await tx.run.findMany({
    where: { id: { in: [...keys] } },
    select: runHeadSelect,
    relationLoadStrategy: 'join',
  })
  const repairOf = await readRepairs(tx, rows, actor)
  const extractOf = await readExtracts(tx, keys)
  const hidden = await runsWithHiddenLogs(tx, keys, actor)
  yield inOrder(keys, rows, ({ id }) => id).map((row): RunSummary => {
    const extract = extractOf(row.id)
    const shown = hidden.has(row.id) ? { ...extract, logs: [logNotShown], lines: 1 } : extract
    return {
      ...toRunHead(row, actor, repairOf(row.id)),
      summary: summaryOf(row, shown),
      logs: [...shown.logs],
      log_lines: shown.lines,
    }
  })
}

/** Queued runs whose rows are locked are running. A lock is no part of a snapshot. */
async function complete<Run extends Pick<RunHead, 'id' | 'state'>>(
  db: Db,
  runs: readonly Run[],
): Promise<readonly Run[]> {
  const queued = runs.filter(({ state }) => state === 'queued').map(({ id }) => id)
  const locked = queued.length === 0 ? new Set() : await lockedRuns(db, queued)
  return runs.map((each) => (locked.has(each.id) ? { ...each, state: 'running' } : each))
}

export const runView = { model: 'Run', schema: runSummary, read, complete } satisfies View<'Run'>

const fullRunSelect = {
  ...runHeadSelect,
  logs: true,
  blueprint: true,
  document: true,
  generated: true,
  options: true,
  changes: true,
  sharedResult: true,
  planTag: true,
  notes: true,
} satisfies Prisma.RunSelect

type Stored = Prisma.RunGetPayload<{ select: typeof fullRunSelect }>
type Row = Stored & SealedDocument
/** Reading the document of a large run takes longer than all else of it. */
type Wanted = { readonly id: string; readonly withBlueprint: boolean }
export type Opening = { readonly registry: Registry; readonly keyring: Keyring }

/** @returns the run as this caller sees it; null when there is none, or none that the caller may see */
export async function readRun(
  db: Db,
  opening: Opening,
  { id, withBlueprint }: Wanted,
  actor: Actor,
  progressOf: (run: { readonly id: string }, attempt: number) => Promise<z.output<typeof progress> | null>,
): Promise<z.output<typeof run> | null> {
  const row = await db.run.findUnique({ where: { id }, select: fullRunSelect, relationLoadStrategy: 'join' })
  if (row === null || !mayReadRun(row, actor)) return null
  const shows = row.generated !== null && showsGeneratedTo(row, actor) && (await showsGenerated(db, id))
  const document = withBlueprint ? await readDocument(db, row) : { holder: id, blueprint: null }
  const repair = (await readRepairs(db, [row], actor))(id)
  const { logs: whole, changes } = await readResult(db, row)
  const logs = (await runsWithHiddenLogs(db, [id], actor)).has(id) ? [logNotShown] : whole
  const failed = await readAttempts(db, id, actor)
  const [completed] = await complete(db, [
    { ...toRun({ ...row, ...document, logs, changes }, opening, shows, actor, repair), failed_attempts: failed },
  ])
  if (completed?.state !== 'running') return completed ?? null
  return { ...completed, progress: await progressOf(completed, completed.attempts) }
}

/** A run that was sealed under another SECRET_KEY, or by a version with other models, is shown without its documents. */
export function toRun(
  row: Row,
  { registry, keyring }: Opening,
  shows: boolean,
  actor: Actor,
  repair: Repair,
): z.output<typeof run> {
  const open = (sealed: string) => keyring.open(sealed, sealedColumn(row.id, 'generated'))
  const { changes, isWhole } = readStoredChanges(row.changes)
  return {
    ...toRunHead(row, actor, repair),
    logs: row.logs,
    ...conditionsShown(row, isWhole),
    progress: null,
    failed_attempts: [],
    changes: changesShown(changes, actor),
    stands_since: standsSinceOf(row),
    ...notesOf(row.notes),
    etag: row.planTag === null ? null : `"${row.planTag}"`,
    earlier_run: null,
    blueprint: otherwise(closed, () => blueprintOf(row, { registry, keyring })),
    generated: otherwise({}, () =>
      shows && row.generated !== null ? run.shape.generated.parse(JSON.parse(open(row.generated))) : {},
    ),
  }
}

/** Their causes are for those who may see all runs. */
export async function readAttempts(db: Db, runId: string, actor: Actor): Promise<Run['failed_attempts']> {
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

/** The document of a stored run, masked; empty when it is not stored any more. */
export async function documentText(
  db: Db,
  opening: Opening,
  row: Pick<Stored, 'id' | 'blueprint' | 'document'>,
): Promise<string> {
  const document = await readDocument(db, row)
  return otherwise(closed, () => blueprintOf(document, opening))
}

function blueprintOf({ holder, blueprint }: SealedDocument, { registry, keyring }: Opening): string {
  if (blueprint === null) return ''
  return print(mask(openDocument(keyring, { holder, blueprint }), registry))
}

/** As it was sent: `takeover`, `deletes=3`. */
const wordOf = (word: string, value: boolean | number | null): string[] =>
  typeof value === 'number' ? [`${word}=${value}`] : value === true ? [word] : []

/** @param isWhole whether its changes can be read */
export function conditionsShown(
  row: Pick<Stored, 'options'>,
  isWhole: boolean,
): Pick<z.output<typeof run>, 'owner' | 'owners' | 'allowed' | 'message' | 'cancelled_by' | 'unreadable'> {
  const unreadable = isWhole ? [] : ['changes' as const]
  const found = otherwise(null, () => ({ ...ownershipOfRun(row), message: messageOfRun(row) }))
  const cancelled_by = cancelledByOf(row)
  if (found === null)
    return { owner: null, owners: [], allowed: [], message: null, cancelled_by, unreadable: [...unreadable, 'options'] }
  const { owner, owners, allow, message } = found
  const allowed = Object.entries(allow).flatMap(([word, value]) => wordOf(word, value))
  return { owner, owners, allowed, message, cancelled_by, unreadable }
}

/**
 * Generated values are for superusers and for the submitter, and not for another user who impersonates it. A token with a
 * ceiling sees only those of runs that had no more rights.
 */
function showsGeneratedTo(row: Stored, { pk, isSuperuser, impersonator, ceiling }: Actor): boolean {
  if (isSuperuser && impersonator === undefined && ceiling === undefined) return true
  if (row.submitterPk !== pk) return false
  const submitter = otherwise(null, () => submitterOf(row))
  if (submitter === null) return false
  if (!isWithinCeiling(row, ceiling)) return false
  return impersonator === undefined || impersonator.pk === submitter.impersonator?.pk
}
