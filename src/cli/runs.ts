import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { type Client, read, readAnswer, sendUntilAnswered } from './client.ts'
import { oneLine } from './output.ts'

/** Runs of the API. Other members, also of a newer service, are kept for `--json`. */

const key = z.record(z.string(), z.unknown())
const fieldChange = z.union([z.object({ from: z.unknown(), to: z.unknown() }), z.string()])

const change = z.object({
  model: z.string(),
  key,
  action: z.string(),
  fields: z.record(z.string(), fieldChange),
  entry: z.int().nullish(),
})

const claim = z.string().nullish()

/** The job that submitted a run, by the verified claims of its identity token. */
export const job = z.looseObject({ repository: claim, ref: claim, commit: claim }).nullish()
type Job = z.output<typeof job>

const runSummary = z.looseObject({
  id: z.string(),
  state: z.string(),
  title: z.string(),
  mode: z.string(),
  applied: z.boolean().nullable(),
  stack: z.string().nullish(),
  reason: z.string().nullable(),
  submitter_name: z.string().nullable(),
  pipeline: job,
  created_at: z.string(),
})

export const run = runSummary.extend({
  logs: z.array(z.string()),
  errors: z.array(z.unknown()).nullish(),
  /** The user who cancelled it. */
  cancelled_by: z.string().nullish(),
  progress: z.object({ done: z.int(), total: z.int() }).nullish(),
  changes: z.array(change),
  not_put_back: z.array(z.string()).nullish(),
  etag: z.string().nullable(),
  blueprint: z.string().optional(),
  /** Values that the service generated, by entry, for those who may see them. */
  generated: z.record(z.string(), z.record(z.string(), z.string())).default({}),
  generated_until: z.string().nullish(),
})

const runPage = z.object({ results: z.array(runSummary) })
const me = z.object({ user: z.object({ pk: z.int(), system_permissions: z.array(z.string()) }) })

export type Change = z.output<typeof change>
export type FieldChange = z.output<typeof fieldChange>
export type RunSummary = z.output<typeof runSummary>
export type Run = z.output<typeof run>

/** `service_core.application "grafana"` */
export const objectOf = ({ model, key }: Pick<Change, 'model' | 'key'>): string =>
  [model, ...Object.values(key).map((value) => JSON.stringify(value))].join(' ')

/** The progress of a run, for a user who waits. */
const whereItIs = ({ id, state, progress }: Run): string =>
  `run ${id} is ${state}${progress == null ? '' : `: ${progress.done} of ${progress.total} entries`}`

export const isOver = ({ state }: Pick<Run, 'state'>): boolean => ['done', 'failed', 'cancelled'].includes(state)

/** Whether it did what it was for. */
export const isFine = ({ state, mode, applied, reason }: Outcome): boolean =>
  state === 'done' && (mode === 'plan' ? reason === null : applied === true)

type Outcome = Pick<Run, 'state' | 'mode' | 'applied' | 'reason'>

/** `acme/shop refs/heads/main 1f494652e0` */
export const placeOf = (job: Job) =>
  oneLine([job?.repository, job?.ref, job?.commit?.slice(0, 10)].filter(Boolean).join(' '))

/** `ada`; of a job: `pipeline, acme/shop refs/heads/main 1f494652e0` */
export const submitterOf = ({ submitter_name: name, pipeline }: Pick<RunSummary, 'submitter_name' | 'pipeline'>) =>
  [name ?? 'service', placeOf(pipeline)].filter(Boolean).join(', ')

/** One word for each run. */
export function wordOf(run: Outcome): string {
  if (run.state !== 'done') return run.state
  if (!isFine(run)) return 'refused'
  return run.mode === 'plan' ? 'planned' : 'applied'
}

/** The id in the path of a run. */
export const idOf = (path: string): string => path.split('/').findLast((part) => part !== '') ?? path

/** The path of a run without its document, which is not shown and takes longest to read. */
const withoutBlueprint = (path: string): string => `${path}?include_blueprint=false`

export const readRun = (client: Client, path: string): Promise<Run> => read(client, withoutBlueprint(path), run)

/** The first runs of a list, the newest first. @param query its filters and its length */
export const readRuns = async (client: Client, query: Readonly<Record<string, string>>) =>
  (await read(client, `/blueprints/runs/?${new URLSearchParams(query)}`, runPage)).results

/** The user of the token. Submitter and request ID together find a job: any caller may send any ID. */
export const readMe = async (client: Client) => (await read(client, '/core/users/me/', me)).user

const waitS = 25
/** The service answers at once where much changes. */
const pauseMs = 200

/**
 * Reads a run until it is over, through restarts of the service, or until the time is. The service answers when the run has
 * changed.
 */
export async function followRun(client: Client, path: string, leftMs: () => number): Promise<Run> {
  let found: Run | undefined
  let headers = {}
  for (;;) {
    const answer = await sendUntilAnswered({ ...client, timeoutMs: leftMs() }, 'GET', withoutBlueprint(path), headers)
    if (answer.status !== 304 || found === undefined) found = readAnswer(client, answer, run)
    if (isOver(found) || leftMs() <= 1) return found
    client.waiting(whereItIs(found))
    const etag = answer.headers.get('etag')
    headers = etag === null ? {} : { 'if-none-match': etag, prefer: `wait=${waitS}` }
    await delay(Math.max(1, Math.min(pauseMs, leftMs())))
  }
}
