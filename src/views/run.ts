import { z } from 'zod'
import { change } from '../apply/changes.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { withExample } from '../example.ts'
import { type Actor, allows } from '../permissions.ts'
import { pipelineForm, storedPipeline } from '../pipeline.ts'
import { lockedRuns } from '../runs/ledger.ts'
import type { Why, WhyOf } from '../runs/why.ts'
import { logNotShown, runsWithHiddenLogs } from './former-owner.ts'
import { type Repair, readRepairs } from './repair.ts'
import { mostLines, readExtracts, summaryOf } from './run-summary.ts'
import { userFields } from './user.ts'
import { inOrder, type Reading, type View } from './view.ts'

/** The form of a run, and runs as lists show them. */

const time = z.iso.datetime()

const runHead = z.object({
  id: withExample(z.guid(), '01a1fd66-cb30-7a41-8c55-2f1b7a9d0e63'),
  state: z
    .enum(['queued', 'running', 'done', 'failed', 'cancelled'])
    .meta({ title: 'RunState', description: '`running`: a worker has locked it.', examples: ['done'] }),
  title: withExample(z.string(), 'apply blueprint organisation'),
  mode: z.enum(['apply', 'plan']).meta({ title: 'RunMode', description: 'A plan was rolled back.' }),
  kind: withExample(z.string(), 'blueprint', "The provider's kind, or `blueprint`."),
  slug: withExample(z.string().nullable(), null, 'Of the application; null for a blueprint.'),
  applied: z.boolean().nullable(),
  reason: withExample(z.string().nullable(), null),
  cause: withExample(
    z.string().nullable(),
    null,
    'Why it failed or was cancelled: the innermost message, with its SQLSTATE. Null for callers without `view_run`. Of a run that has not ended: why it is not applied yet, once that is known, for all callers.',
  ),
  repaired: withExample(
    z.boolean().nullable(),
    false,
    'A run that failed or was cancelled has: whether a later run applied the same document, or changed or applied the same application. False for other runs. Null for callers without `view_run`.',
  ),
  repaired_by: withExample(
    z.guid().nullable(),
    null,
    'The run that repaired it. Null for callers who may not see that run.',
  ),
  submitter: userFields.pk.nullable(),
  submitter_name: userFields.username.nullable(),
  request_id: withExample(z.string(), '6a1c5f2e-3b0d-4f4e-9a51-0d8f6c1b7e21'),
  attempts: withExample(z.int(), 1, 'How often it was enqueued.'),
  created_at: withExample(time, '2026-11-20T08:15:00.120Z'),
  started_at: withExample(time, '2026-11-20T08:15:00.123Z', 'When a worker first had it.').nullable(),
  finished_at: withExample(time, '2026-11-20T08:15:00.131Z').nullable(),
  queue_ms: withExample(z.int().nullable(), 3, 'Milliseconds from `created_at` to `started_at`.'),
  work_ms: withExample(
    z.int().nullable(),
    8,
    'Milliseconds from `started_at` to `finished_at`, with the time in which its locks were not given.',
  ),
})

const lines = z.array(z.string())

const pipeline = pipelineForm.nullable().meta({ description: 'Null where no job with an identity token submitted it.' })

export const runSummary = runHead
  .extend({
    summary: withExample(
      z.string(),
      '1 created, 294 unchanged',
      'One sentence: how many entries it deleted, changed, created and left unchanged, or would; or why it did nothing.',
    ),
    logs: withExample(
      lines,
      ['group "platform" created'],
      `The first ${mostLines} lines. All of them are in the run itself.`,
    ),
    log_lines: withExample(z.int(), 295, 'How many lines the log has.'),
    pipeline,
  })
  .meta({ id: 'RunSummary' })

const progress = z.object({ done: z.int(), total: z.int() })

const runError = z.object({ code: z.string(), message: z.string(), pointer: z.string().optional() })

const failedAttempt = z.object({ attempt: z.int(), at: time, cause: z.string() })

export const run = runHead
  .extend({
    logs: withExample(lines, ['group "platform" created']),
    errors: withExample(
      z.array(runError),
      [],
      'Of a refusal: the sentences of `logs` that are about entries, one by one. `pointer` is into `blueprint`, of an application: into what was sent.',
    ),
    progress: withExample(
      progress.nullable(),
      null,
      'A running document of many entries has: how many are done, of all. Null when that is not known.',
    ),
    failed_attempts: withExample(
      z.array(failedAttempt),
      [],
      'Those that failed, as far as they could be recorded: the last of a failed run too. Empty for callers without `view_run`.',
    ),
    owner: withExample(z.string().nullable(), 'team-a', 'The label of `Gatewright-Owner`, or of the document.'),
    owners: withExample(
      z.array(z.string()),
      ['team-a'],
      'All labels that the run is about: `owner`, and those of entries.',
    ),
    stack: withExample(z.string().nullable(), 'corp/identity', 'The stack of `Gatewright-Stack`, or of `prune`.'),
    allowed: withExample(z.array(z.string()), [], 'The words of `Gatewright-Allow`.'),
    message: withExample(
      z.string().nullable(),
      'back to the redirect of last week, CHG-1042',
      'Why, as the submitter said it: `Gatewright-Message`.',
    ),
    pipeline,
    cancelled_by: withExample(
      z.string().nullable(),
      null,
      'The user who cancelled it while it waited. Null for all other runs, those that nothing took in time among them.',
    ),
    changes: withExample(
      z.array(change),
      [
        {
          model: 'service_core.group',
          key: { name: 'engineering' },
          action: 'update',
          fields: { is_superuser: { from: true, to: false } },
        },
      ],
      'What each entry changed, or would change; empty when it was refused, and while it waits.',
    ),
    former: withExample(
      z.guid().nullable(),
      null,
      'The run whose document it plans or applies again: it is a roll back.',
    ),
    not_put_back: withExample(
      lines,
      ['provider oauth2 "grafana": client_secret'],
      'A former document that was planned or applied again has: fields that it does not name, and that are not as they were then, and keep their values: secrets, references, fields that the stack does not manage, and values that no change shows; or one line when the histories took too long to read. The first 100; the last line counts the others.',
    ),
    unreadable: withExample(
      z.array(z.enum(['changes', 'options'])),
      [],
      'What the database holds of the run in a form that cannot be read. Of `changes`, those that can be read are shown; without `options`, `owner` is null, and `owners` and `allowed` are empty.',
    ),
    etag: withExample(z.string().nullable(), null, 'A plan has one, for `If-Match` of the apply.'),
    blueprint: withExample(
      z.string(),
      'version: 1\nmetadata:\n  name: organisation\nentries: []\n',
      'YAML; secrets are masked. A comment says so when it cannot be opened. Empty when it was not asked for.',
    ),
    generated: withExample(
      z.record(z.string(), z.record(z.string(), z.string())),
      {},
      'Generated values by entry and field, for the submitter and superusers, as often as they are read while they are kept.',
    ),
    generated_until: withExample(time.nullable(), null, 'Until when. Null where `generated` is empty.'),
  })
  .meta({ id: 'Run' })

export type RunSummary = z.output<typeof runSummary>
export type Run = z.output<typeof run>
export const runErrors = z.array(runError).catch([])
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
  const rows = await tx.run.findMany({ where: { id: { in: [...keys] } }, select: runHeadSelect })
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
      pipeline: storedPipeline.parse(shown.pipeline),
    }
  })
}

/** Queued runs whose rows are locked are running. A lock is no part of a snapshot. */
export async function complete<Run extends Pick<RunHead, 'id' | 'state'>>(
  db: Db,
  runs: readonly Run[],
): Promise<readonly Run[]> {
  const queued = runs.filter(({ state }) => state === 'queued').map(({ id }) => id)
  const locked = queued.length === 0 ? new Set() : await lockedRuns(db, queued)
  return runs.map((each) => (locked.has(each.id) ? { ...each, state: 'running' } : each))
}

/** Why a run is not applied yet, as far as the caller may know it. */
export const causeShown = (why: Why | undefined, actor: Actor): string | null =>
  (allows(actor, 'view_run') ? why?.cause : null) ?? why?.sentence ?? null

/** Adds to the runs of a page whether they are running, and why they are not applied yet: that is asked once. */
export async function completePage<Run extends Pick<RunHead, 'id' | 'state' | 'cause' | 'finished_at'>, Added>(
  db: Db,
  runs: readonly Run[],
  { actor, whyOf, add }: { readonly actor: Actor; readonly whyOf: WhyOf; readonly add: (why: Why) => Added },
): Promise<readonly (Run | (Run & Added))[]> {
  const open = runs.filter(({ finished_at }) => finished_at === null).map(({ id }) => id)
  const [all, why] = await Promise.all([complete(db, runs), whyOf(open, whyWithinMs)])
  return all.map((run) => {
    const found = why.get(run.id)
    return found === undefined ? run : { ...run, cause: causeShown(found, actor), ...add(found) }
  })
}

/** Milliseconds; a read has less than a second. */
export const whyWithinMs = 600

export const runView = (whyOf: WhyOf) =>
  ({
    model: 'Run',
    schema: runSummary,
    read,
    complete: (db: Db, runs: readonly RunSummary[], { actor }: Pick<Reading, 'actor'>) =>
      completePage(db, runs, { actor, whyOf, add: ({ sentence }) => ({ summary: `not applied yet: ${sentence}` }) }),
  }) satisfies View<'Run'>
