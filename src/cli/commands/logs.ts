import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { endWithoutReader } from '../../without-reader.ts'
import { flag, readArguments, readRunId, readTimeoutMs, text } from '../arguments.ts'
import { type Client, openClient, read } from '../client.ts'
import { endedRuns } from '../ended-runs.ts'
import { type ExitCode, exitCodes, UsageError } from '../exit.ts'
import { inOptions } from '../options-for-headers.ts'
import { type Output, openOutput, shown } from '../output.ts'
import { isOver, type Run, readTagged, runSummary, type Tagged, whereItIs } from '../runs.ts'

/** `gatewright logs`: shows the outcome of one run. */

export const usage = `gatewright logs [-f] [ID] [OPTIONS]
gatewright logs -f --all [OPTIONS]

Prints the logs of a run; without ID, of the newest that you may see. The exit code is that of the run: 0 applied or
planned, 1 refused, failed or cancelled, 3 not over yet. With --all, it prints one line for each run that ends, of those
that you may see, and its exit code says nothing of them.

  -f, --follow         waits for its end, also while the service is away
  --all                every run, from now on
  --timeout SECONDS    how long (default 600; with --all until it is interrupted)
  --json               the run as one JSON document on standard output
`

const options = { follow: { ...flag, short: 'f' }, all: flag, timeout: text, json: flag } as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [id, ...others] = positionals
  if (others.length > 0) throw new UsageError('logs takes one run.')
  if (id !== undefined) readRunId(id)
  const output = openOutput()
  if (values.all === true) {
    if (values.follow !== true || id !== undefined) throw new UsageError('--all is for logs -f, without a run.')
    return followAll(
      output,
      values.timeout === undefined ? undefined : readTimeoutMs(values.timeout, 600),
      values.json === true,
    )
  }
  const endsAt = performance.now() + readTimeoutMs(values.timeout, 600)
  const leftMs = () => Math.max(1, endsAt - performance.now())
  const client = await openClient()
  const withinMs = () => (values.follow === true ? leftMs() : Math.min(leftMs(), 30_000))
  const path = `/blueprints/runs/${id ?? (await newest(client, withinMs()))}/`
  const readAgain = (known?: Tagged) =>
    readTagged(client, path, { withinMs: withinMs(), onWait: output.waiting }, known)
  let tagged = await readAgain()
  if (values.follow === true) endWithoutReader(() => codeOf(tagged.run))
  for (
    let waitMs = 200;
    values.follow === true && !isOver(tagged.run) && leftMs() > 1;
    waitMs = Math.min(2 * waitMs, 2_000)
  ) {
    output.waiting(whereItIs(tagged.run), tagged.run.progress)
    // A service of an earlier version does not wait.
    if (tagged.etag === null) await delay(Math.min(waitMs, leftMs()))
    tagged = await readAgain(tagged)
  }
  const found = tagged.run
  if (values.json === true) output.json(JSON.stringify(found, null, 2))
  else {
    for (const line of found.logs) output.line(shown(inOptions(line)))
    output.line(`${found.id}  ${shown(found.title)}: ${wordFor(found)}`)
  }
  return codeOf(found)
}

const longestMs = 10 * 365 * 86_400_000

/** One line for each run that ends. */
async function followAll(output: Output, timeoutMs = longestMs, isJson: boolean): Promise<ExitCode> {
  const client = await openClient()
  const endsAt = performance.now() + timeoutMs
  endWithoutReader(() => exitCodes.done)
  const onMissed = () => output.note('Some runs were missed: gatewright runs lists them.')
  for await (const ended of endedRuns(client, { endsAt, onWait: output.waiting, onMissed })) {
    if (isJson) output.json(JSON.stringify(ended))
    else output.line(`${ended.id}  ${ended.finished_at ?? ''}  ${shown(ended.title)}: ${wordFor(ended)}`)
  }
  return exitCodes.done
}

const latest = z.object({ results: z.array(runSummary) })

async function newest(client: Client, withinMs: number): Promise<string> {
  const { results } = await read(client, '/blueprints/runs/?page_size=1', latest, { withinMs })
  const [first] = results
  if (first === undefined) throw new UsageError('There are no runs.')
  return first.id
}

type Outcome = Pick<Run, 'state' | 'mode' | 'applied' | 'reason'>

const isFine = ({ state, mode, applied, reason }: Outcome): boolean =>
  state === 'done' && (mode === 'plan' ? reason === null : applied === true)

function wordFor(run: Outcome): string {
  if (!isOver(run)) return `${run.state}, its outcome is not known yet`
  if (isFine(run)) return run.mode === 'plan' ? 'planned' : 'applied'
  return run.state === 'done' ? 'refused, nothing was changed' : `${run.state}, nothing was changed`
}

const codeOf = (run: Run): ExitCode => {
  if (!isOver(run)) return exitCodes.unknown
  return isFine(run) ? exitCodes.done : exitCodes.refused
}
