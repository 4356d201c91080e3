import { z } from 'zod'
import { flag, readArguments, readCount, readTimeoutMs, text } from '../arguments.ts'
import { openClient, read } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { openOutput, shown } from '../output.ts'
import { me, type RunSummary, runSummary, wordOf } from '../runs.ts'

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

/** The parameter of the list for each of these options. */
const filters = {
  state: 'state',
  mode: 'mode',
  slug: 'slug',
  owner: 'owner',
  search: 'search',
  'request-id': 'request_id',
  submitter: 'submitter',
  changed: 'object',
} as const

const page = z.object({ results: z.array(runSummary) })

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  if (positionals.length > 0) throw new UsageError('runs takes no names: gatewright logs ID prints one run.')
  const limit = readCount('--limit', values.limit, { initial: 20, max: 100 })
  const query = new URLSearchParams({ page_size: String(limit) })
  for (const [option, parameter] of Object.entries(filters)) {
    const value = values[option as keyof typeof filters]
    if (value !== undefined) query.set(parameter, value)
  }
  const withinMs = readTimeoutMs(values.timeout, 30)
  const output = openOutput()
  const [client, within] = [await openClient(), { withinMs, onWait: output.waiting }]
  if (values['request-id'] !== undefined && values.submitter === undefined)
    query.set('submitter', String((await read(client, '/core/users/me/', me, within)).user.pk))
  const { results } = await read(client, `/blueprints/runs/?${query}`, page, within)
  if (values.json === true) output.json(JSON.stringify(results, null, 2))
  else for (const each of results) output.line(lineOf(each))
  return exitCodes.done
}

const lineOf = ({ id, created_at: createdAt, submitter_name: submitter, title, ...run }: RunSummary): string =>
  [id, createdAt.slice(0, 19), wordOf(run).padEnd(11), shown(`${title} (${submitter ?? 'service'})`)].join('  ')
