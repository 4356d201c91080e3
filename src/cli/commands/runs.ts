import { flag, readArguments, readCount, readRunId, text } from '../arguments.ts'
import { open, readAnswer, sendUntilAnswered } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { shown } from '../output.ts'
import { type RunSummary, readMe, readRun, readRuns, run as runSchema, submitterOf, wordOf } from '../runs.ts'

export const usage = `gatewright runs [OPTIONS]
gatewright runs cancel ID

Lists your runs, the newest first; with the permission view_run, all runs.

runs cancel cancels a run that no worker has taken yet: it is not applied, and an apply that waits for it ends with 1. It is
for your runs; for those of others you need the permission manage_queue. The exit code is 1 when a worker has it, or it
has ended.

  --limit N            how many (default 20, at most 100)
  --state STATE        queued, done, failed or cancelled
  --mode MODE          apply or plan
  --owner LABEL        submitted under this owner
  --stack NAME         of this stack
  --request-id ID      of this job of yours: what GATEWRIGHT_REQUEST_ID was
  --commit SHA         of jobs of this commit, from the verified claims of their identity tokens
  --changed OBJECT     that changed the object of this kind and name, such as application:grafana
  --timeout SECONDS    how long the service may be away (default 30)
  --json               one JSON document on standard output
`

const options = {
  limit: text,
  state: text,
  mode: text,
  owner: text,
  stack: text,
  'request-id': text,
  commit: text,
  changed: text,
  timeout: text,
  json: flag,
} as const

/** The parameters of the list that have another name than their option. */
const parameters: Readonly<Record<string, string>> = { 'request-id': 'request_id', changed: 'object' }

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [verb, id, ...others] = positionals
  if (verb === 'cancel') return cancel(others.length === 0 ? id : undefined, values)
  if (verb !== undefined) throw new UsageError('runs takes no names: gatewright logs ID prints one run.')
  const { limit = '20', timeout: _, json: __, env: ___, verbose: ____, ...filters } = values
  const query: Record<string, string> = { page_size: String(readCount('--limit', limit, 100)) }
  for (const [option, value] of Object.entries(filters)) query[parameters[option] ?? option] = value
  const { client, output } = await open(values)
  if (query.request_id !== undefined) query.submitter = String((await readMe(client)).pk)
  const found = await readRuns(client, query)
  output.json(found)
  for (const each of found) output.line(lineOf(each))
  return exitCodes.done
}

const lineOf = (run: RunSummary): string =>
  [run.id, run.created_at.slice(0, 19), wordOf(run).padEnd(11), shown(`${run.title} (${submitterOf(run)})`)].join('  ')

async function cancel(id: string | undefined, values: Parameters<typeof open>[0]): Promise<number> {
  if (id === undefined) throw new UsageError('runs cancel takes the id of one run.')
  readRunId(id)
  const { client, output } = await open(values)
  const path = `/blueprints/runs/${id}/`
  const answer = await sendUntilAnswered(client, 'POST', `${path}cancel/`)
  // An earlier try, whose answer was lost, may have cancelled it: a run that a user cancelled is a success.
  const before = answer.status === 409 ? await readRun(client, path) : null
  const found = before?.cancelled_by == null ? readAnswer(client, answer, runSchema) : before
  output.json(found)
  output.line(`${found.id}  ${shown(found.title)}: cancelled by ${shown(found.cancelled_by ?? '')}`)
  return exitCodes.done
}
