import { endWithoutReader } from '../../without-reader.ts'
import { flag, readArguments, readRunId, text } from '../arguments.ts'
import { type Client, open } from '../client.ts'
import { type ExitCode, exitCodes, UsageError } from '../exit.ts'
import { inOptions } from '../options-for-headers.ts'
import { shown } from '../output.ts'
import { followRun, isFine, isOver, type Run, readRun, readRuns, wordOf } from '../runs.ts'

export const usage = `gatewright logs [-f] [ID] [OPTIONS]

Prints the logs of a run; without ID, of the newest that you may see. The exit code is that of the run: 0 applied or
planned, 1 refused, failed or cancelled, 3 not over yet.

  -f, --follow         waits for its end, also while the service is away
  --timeout SECONDS    how long (default 600)
  --json               the run as one JSON document on standard output
`

const options = { follow: { ...flag, short: 'f' }, timeout: text, json: flag } as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [id, ...others] = positionals
  if (others.length > 0) throw new UsageError('logs takes one run.')
  if (id !== undefined) readRunId(id)
  const { client, output } = await open(values, 600)
  const endsAt = performance.now() + client.timeoutMs
  const leftMs = () => Math.max(1, endsAt - performance.now())
  const isFollowed = values.follow === true
  const once = isFollowed ? client : { ...client, timeoutMs: Math.min(client.timeoutMs, 30_000) }
  const path = `/blueprints/runs/${id ?? (await newest(once))}/`
  let found: Run | undefined
  if (isFollowed) endWithoutReader(() => codeOf(found))
  found = isFollowed ? await followRun(client, path, leftMs) : await readRun(once, path)
  output.json(found)
  for (const line of found.logs) output.line(shown(inOptions(line)))
  output.line(`${found.id}  ${shown(found.title)}: ${sentenceOf(found)}`)
  return codeOf(found)
}

async function newest(client: Client): Promise<string> {
  const [first] = await readRuns(client, { page_size: '1' })
  if (first === undefined) throw new UsageError('There are no runs.')
  return first.id
}

function sentenceOf(run: Run): string {
  if (!isOver(run)) return `${wordOf(run)}, its outcome is not known yet`
  return isFine(run) ? wordOf(run) : `${wordOf(run)}, nothing was changed`
}

function codeOf(run: Run | undefined): ExitCode {
  if (run === undefined || !isOver(run)) return exitCodes.unknown
  return isFine(run) ? exitCodes.done : exitCodes.refused
}
