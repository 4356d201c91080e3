import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { readArguments, readTimeoutMs } from '../arguments.ts'
import { type Client, openClient, read } from '../client.ts'
import { type ExitCode, exitCodes, UsageError } from '../exit.ts'
import { openOutput, shown } from '../output.ts'
import { isOver, type Run, readRun, runSummary, whereItIs } from '../runs.ts'

/** `gatewright logs`: what became of one run. */

export const usage = `gatewright logs [-f] [ID] [OPTIONS]

Prints the logs of a run; without ID, of the newest that you may see. The exit code is that of the run: 0 applied or
planned, 1 refused, failed or cancelled, 3 not over yet.

  -f, --follow         waits for its end, also while the service is away
  --timeout SECONDS    how long (default 600)
  --json               the run as one JSON document on standard output
`

const options = {
  follow: { type: 'boolean', short: 'f' },
  timeout: { type: 'string' },
  json: { type: 'boolean' },
} as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [id, ...others] = positionals
  if (others.length > 0) throw new UsageError('logs takes one run.')
  if (id !== undefined && !/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id))
    throw new UsageError(`${JSON.stringify(id.slice(0, 100))} is no id of a run: gatewright runs lists them.`)
  const output = openOutput()
  const endsAt = performance.now() + readTimeoutMs(values.timeout, 600)
  const leftMs = () => Math.max(1, endsAt - performance.now())
  const client = await openClient()
  const withinMs = () => (values.follow === true ? leftMs() : Math.min(leftMs(), 30_000))
  const path = `/blueprints/runs/${id ?? (await newest(client, withinMs()))}/`
  const readOnce = () => readRun(client, path, { withinMs: withinMs(), onWait: output.waiting })
  let found = await readOnce()
  for (
    let waitMs = 200;
    values.follow === true && !isOver(found) && leftMs() > 1;
    waitMs = Math.min(2 * waitMs, 2_000)
  ) {
    output.waiting(whereItIs(found), found.progress)
    await delay(Math.min(waitMs, leftMs()))
    found = await readOnce()
  }
  if (values.json === true) output.json(JSON.stringify(found, null, 2))
  else {
    for (const line of found.logs) output.line(shown(line))
    output.line(`${found.id}  ${shown(found.title)}: ${wordFor(found)}`)
  }
  return codeOf(found)
}

const latest = z.object({ results: z.array(runSummary) })

async function newest(client: Client, withinMs: number): Promise<string> {
  const { results } = await read(client, '/blueprints/runs/?page_size=1', latest, { withinMs })
  const [first] = results
  if (first === undefined) throw new UsageError('There are no runs.')
  return first.id
}

const isFine = ({ state, mode, applied, reason }: Run): boolean =>
  state === 'done' && (mode === 'plan' ? reason === null : applied === true)

function wordFor(run: Run): string {
  if (!isOver(run)) return `${run.state}, its outcome is not known yet`
  if (isFine(run)) return run.mode === 'plan' ? 'planned' : 'applied'
  return run.state === 'done' ? 'refused, nothing was changed' : `${run.state}, nothing was changed`
}

const codeOf = (run: Run): ExitCode => {
  if (!isOver(run)) return exitCodes.unknown
  return isFine(run) ? exitCodes.done : exitCodes.refused
}
