import { z } from 'zod'
import { type Client, read, readAnswer, sendUntilAnswered } from './client.ts'

/** Runs of the API. Fields that this version does not know are ignored: the service may be newer. */

const fieldChange = z.union([z.object({ from: z.unknown(), to: z.unknown() }), z.string()])

const key = z.record(z.string(), z.unknown())

const change = z.object({
  model: z.string(),
  key,
  action: z.string(),
  fields: z.record(z.string(), fieldChange),
  entry: z.int().nullish(),
})

const runHead = z.object({
  id: z.string(),
  state: z.string(),
  title: z.string(),
  mode: z.string(),
  applied: z.boolean().nullable(),
  reason: z.string().nullable(),
  submitter_name: z.string().nullable(),
  attempts: z.int(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
})

/** A run of a list: it has the first lines of a log. A service of an earlier version has all lines, and no more members. */
export const runSummary = runHead.extend({
  summary: z.string().optional(),
  logs: z.array(z.string()),
  log_lines: z.int().optional(),
})

/** The answer of `/core/users/me/`. Submitter and request ID together find a job: any caller may send any ID. */
export const me = z.object({ user: z.object({ pk: z.int() }) })

const progress = z.object({ done: z.int(), total: z.int() })

export const run = runHead.extend({
  logs: z.array(z.string()),
  /** The user who cancelled it. */
  cancelled_by: z.string().nullish(),
  progress: progress.nullish(),
  changes: z.array(change),
  unnamed: z.array(z.object({ model: z.string(), key, owner: z.string() })).nullish(),
  unmanaged: z.array(z.object({ model: z.string(), key, fields: z.array(z.string()) })).nullish(),
  etag: z.string().nullable(),
  generated: z.record(z.string(), z.record(z.string(), z.string())),
})

export type Change = z.output<typeof change>
export type FieldChange = z.output<typeof fieldChange>
export type RunSummary = z.output<typeof runSummary>
export type Run = z.output<typeof run>

/** The progress of a run, for a user who waits. */
export const whereItIs = ({ id, state, progress }: Run): string =>
  `run ${id} is ${state}${progress == null ? '' : `: ${progress.done} of ${progress.total} entries`}`

export const isOver = ({ state }: Pick<Run, 'state'>): boolean => ['done', 'failed', 'cancelled'].includes(state)

/** The path of a run without its document, which is not shown and takes longest to read. */
export const withoutBlueprint = (path: string): string => `${path}?include_blueprint=false`

export const readRun = (client: Client, path: string, options: Patience = {}): Promise<Run> =>
  read(client, withoutBlueprint(path), run, options)

type Patience = { readonly withinMs?: number; readonly onWait?: (why: string) => void }

/** A run with its tag. A service of an earlier version sends none. */
export type Tagged = { readonly run: Run; readonly etag: string | null }

/**
 * Reads a run.
 *
 * @param known the last reading: the service answers once the run has changed, or after a while
 */
export async function readTagged(client: Client, path: string, options: Patience, known?: Tagged): Promise<Tagged> {
  const waits = known?.etag ? { 'if-none-match': known.etag, prefer: `wait=${waitS}` } : {}
  const answer = await sendUntilAnswered(client, 'GET', withoutBlueprint(path), { ...options, headers: waits })
  if (answer.status === 304 && known !== undefined) return known
  return { run: readAnswer(client, answer, run), etag: answer.headers.get('etag') }
}

const waitS = 25
