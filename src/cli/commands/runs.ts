import { flag, readArguments, readCount, readTimeoutMs, text } from '../arguments.ts'
import { openClient } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { openOutput, shown } from '../output.ts'
import { type RunSummary, readMe, readRuns, wordOf } from '../runs.ts'

/** `gatewright runs`: lists runs with their outcomes. */

export const usage = `gatewright runs [OPTIONS]

Lists your runs, the newest first; with the permission view_run, all runs.

  --limit N            how many (default 20, at most 100)
  --state STATE        queued, done, failed or cancelled
  --mode MODE          apply or plan
  --slug SLUG          of the application with this slug
  --owner LABEL        submitted under this owner
  --search TEXT        with each of these words in the title
  --request-id ID      of this job of yours: what GATEWRIGHT_REQUEST_ID was
  --submitter KEY      of the user with this key; with --request-id, the one whose job it is
  --changed OBJECT     that changed the object of this kind and name, such as application:grafana
  --timeout SECONDS    how long the service may be away (default 30)
  --json               one JSON document on standard output
`

const options = {
  limit: text,
  state: text,
  mode: text,
  slug: text,
  owner: text,
  search: text,
  'request-id': text,
  submitter: text,
  changed: text,
  timeout: text,
  json: flag,
} as const

/** The parameters of the list that have another name than their option. */
const parameters: Readonly<Record<string, string>> = { 'request-id': 'request_id', changed: 'object' }

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  if (positionals.length > 0) throw new UsageError('runs takes no names: gatewright logs ID prints one run.')
  const { limit, timeout, json: _, env: __, ...filters } = values
  const query: Record<string, string> = { page_size: String(readCount('--limit', limit, { initial: 20, max: 100 })) }
  for (const [option, value] of Object.entries(filters)) query[parameters[option] ?? option] = value
  const withinMs = readTimeoutMs(timeout, 30)
  const output = openOutput(values)
  const client = await openClient(output, values)
  if (query.request_id !== undefined) query.submitter ??= String((await readMe(client, withinMs)).pk)
  const found = await readRuns(client, query, withinMs)
  output.json(found)
  for (const each of found) output.line(lineOf(each))
  return exitCodes.done
}

const lineOf = ({ id, created_at: createdAt, submitter_name: submitter, title, ...run }: RunSummary): string =>
  [id, createdAt.slice(0, 19), wordOf(run).padEnd(11), shown(`${title} (${submitter ?? 'service'})`)].join('  ')
