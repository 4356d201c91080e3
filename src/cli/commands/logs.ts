import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { endWithoutReader } from '../../without-reader.ts'
import { flag, readArguments, readRunId, readTimeoutMs, text } from '../arguments.ts'
import { type Client, openClient, read } from '../client.ts'
import { type ExitCode, exitCodes, Unreachable, UsageError } from '../exit.ts'
import { follow } from '../follow.ts'
import { inOptions } from '../options-for-headers.ts'
import { type Output, openOutput, shown } from '../output.ts'
import { isOver, type Run, readRun, runSummary, whereItIs } from '../runs.ts'

/** `gatewright logs`: what became of one run. */

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
  const readOnce = () => readRun(client, path, { withinMs: withinMs(), onWait: output.waiting })
  let found = await readOnce()
  if (values.follow === true) endWithoutReader(() => codeOf(found))
  for (
    let waitMs = 200;
    values.follow === true && !isOver(found) && leftMs() > 1;
    waitMs = Math.min(2 * waitMs, 2_000)
  ) {
    output.waiting(whereItIs(found), found.progress)
    await changed(client, found, { endsAt, onWait: output.waiting }, Math.min(waitMs, leftMs()))
    found = await readOnce()
  }
  if (values.json === true) output.json(JSON.stringify(found, null, 2))
  else {
    for (const line of found.logs) output.line(shown(inOptions(line)))
    output.line(`${found.id}  ${shown(found.title)}: ${wordFor(found)}`)
  }
  return codeOf(found)
}

/** Waits until a run has ended, or so long where no stream says so. */
async function changed(
  client: Client,
  { id }: Run,
  { endsAt, onWait }: { endsAt: number; onWait: Output['waiting'] },
  elseMs: number,
): Promise<void> {
  try {
    for await (const { event, data } of follow(client, `/blueprints/runs/${id}/events/`, { endsAt, awayMs, onWait })) {
      if (event === 'ended') return
      const { data: progress } = progressing.safeParse(data)
      if (progress !== undefined)
        onWait(`run ${id} is running: ${progress.done} of ${progress.total} entries`, progress)
    }
  } catch (error) {
    // A service of an earlier version has no such stream, and one that is away is asked again by the read.
    if (!(error instanceof UsageError || error instanceof Unreachable)) throw error
    await delay(elseMs)
  }
}

const awayMs = 600_000
const longestMs = 10 * 365 * 86_400_000
const progressing = z.object({ done: z.int(), total: z.int() })

/** One line for each run that ends. */
async function followAll(output: Output, timeoutMs = longestMs, isJson: boolean): Promise<ExitCode> {
  const client = await openClient()
  const endsAt = performance.now() + timeoutMs
  endWithoutReader(() => exitCodes.done)
  const printed = new Set<string>()
  for await (const { event, data } of follow(client, '/blueprints/runs/events/', {
    endsAt,
    awayMs,
    onWait: output.waiting,
  })) {
    if (event === 'reset') output.note('Some runs were missed: gatewright runs lists them.')
    if (event !== 'ended') continue
    const { data: ended } = endedRun.safeParse(data)
    if (ended === undefined || printed.has(ended.id)) continue
    // An event may come twice, soon after the first time.
    printed.add(ended.id)
    if (printed.size > mostRemembered) for (const oldest of printed.values().take(1)) printed.delete(oldest)
    if (isJson) output.json(JSON.stringify(data))
    else output.line(`${ended.id}  ${ended.finished_at ?? ''}  ${shown(ended.title)}: ${wordFor(ended)}`)
  }
  return exitCodes.done
}

const mostRemembered = 10_000
const endedRun = runSummary.pick({
  id: true,
  title: true,
  state: true,
  mode: true,
  applied: true,
  reason: true,
  finished_at: true,
})

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
