import { flag, readArguments, readRunId, readTimeoutMs, text } from '../arguments.ts'
import { openClient, readAnswer, sendUntilAnswered } from '../client.ts'
import { exitCodes, UsageError } from '../exit.ts'
import { openOutput, shown } from '../output.ts'
import { readRun, run as runSchema } from '../runs.ts'

/** `gatewright cancel`: cancels a run that waits. */

export const usage = `gatewright cancel ID [OPTIONS]

Cancels a run that no worker has taken yet: it is not applied, and an apply that waits for it ends with 1. It is for your
runs; for those of others you need the permission manage_queue. The exit code is 1 when a worker has it, or it has ended.

  --timeout SECONDS    how long the service may be away (default 30)
  --json               the run as one JSON document on standard output
`

const options = { timeout: text, json: flag } as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const [id, ...others] = positionals
  if (id === undefined || others.length > 0) throw new UsageError('cancel takes the id of one run.')
  readRunId(id)
  const output = openOutput(values)
  const client = await openClient(output, values)
  const withinMs = readTimeoutMs(values.timeout, 30)
  const path = `/blueprints/runs/${id}/`
  const answer = await sendUntilAnswered(client, 'POST', `${path}cancel/`, withinMs)
  // An earlier try, whose answer was lost, may have cancelled it: a run that a user cancelled is a success.
  const before = answer.status === 409 ? await readRun(client, path, withinMs) : null
  const found = before?.cancelled_by == null ? readAnswer(client, answer, runSchema) : before
  output.json(found)
  output.line(`${found.id}  ${shown(found.title)}: cancelled by ${shown(found.cancelled_by ?? '')}`)
  return exitCodes.done
}
