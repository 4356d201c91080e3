import { createInterface } from 'node:readline/promises'
import { comparedName } from '../../names.ts'
import { flag, readArguments, readRunId, text } from '../arguments.ts'
import { type Client, open } from '../client.ts'
import { deliver } from '../deliver.ts'
import { UsageError } from '../exit.ts'
import { printPlans, printResult, printTotals } from '../report.ts'
import { readRun } from '../runs.ts'
import { checkedMessage, finish, redacted } from '../send.ts'
import { knownStack, readStack, stackName } from './stack.ts'

export const usage = `gatewright rollback [OPTIONS]

Plans the run before the last one of the stack, shows what would change, and applies exactly that once it is confirmed. The
recorded state comes back: what the last run created is deleted, what it deleted is created again. Secrets stay as they are.
A second rollback goes back to where the first one was: a pipeline, whose jobs run again, names the run with --to.

  --to RUN             another run, as "gatewright runs --stack NAME" lists it
  --plan               only shows it: exit code 2 when something would change
  --yes                applies it without a question
  --stack NAME         the stack (default: that of gatewright.yaml)
  --message TEXT       why: a line of at most 300 characters, kept with the run
  --timeout SECONDS    how long to wait for each of the two outcomes (default 120)
  --json               one JSON document on standard output
`

const options = { to: text, plan: flag, yes: flag, stack: text, message: text, timeout: text, json: flag } as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  if (positionals.length > 0) throw new UsageError('rollback takes no names: --to RUN goes back to this run.')
  if (values.plan === true && values.yes === true) throw new UsageError('Use either --plan or --yes.')
  const message = checkedMessage(values.message)
  const to = values.to === undefined ? undefined : readRunId(values.to)
  const { client, output } = await open(values, 120)
  const id = await (to === undefined ? runBefore(client, values.stack) : checkedRun(client, to, values.stack))
  const path = `/blueprints/runs/${id}/apply/`
  const document = { file: `run ${id}`, method: 'POST', path, isYaml: false, owner: undefined, parts: [] } as const
  const send = async (mode: 'plan' | 'apply', headers: Record<string, string>) =>
    redacted(await deliver(client, document, { mode, headers, isReset: false, waits: true }), output)
  const planned = await send('plan', {})
  printPlans(output, [planned], false)
  const { outcome, etag } = planned
  if (outcome !== 'changes' || etag === null || values.plan === true || !(await isConfirmed(values)))
    return finish([planned], output, 'plan')
  const applied = await send('apply', { ...message, 'if-match': etag })
  printTotals(output, [applied], true)
  printResult(output, applied)
  return finish([applied], output, 'apply')
}

/** @throws {UsageError} when the stack has none */
async function runBefore(client: Client, sent: string | undefined): Promise<string> {
  const stack = await readStack(client, await stackName(sent))
  if (stack.run_before !== null) return stack.run_before
  throw new UsageError(`Stack ${stack.name} has no run before the last one: --to RUN names another.`)
}

/** @throws {UsageError} for a run that was not applied, and for one of another stack */
async function checkedRun(client: Client, id: string, sent: string | undefined): Promise<string> {
  const { mode, applied, stack = null } = await readRun(client, `/blueprints/runs/${id}/`)
  if (mode !== 'apply' || applied !== true) throw new UsageError(`Run ${id} was not applied: nothing goes back to it.`)
  const own = await knownStack(sent)
  if (own !== undefined && stack !== comparedName(own))
    throw new UsageError(`Run ${id} is of ${stack === null ? 'no stack' : `stack ${stack}`}, and not of ${own}.`)
  return id
}

/** Asks a user at a terminal. Elsewhere nothing is applied without `--yes`. */
async function isConfirmed({ yes, json }: { readonly yes?: boolean; readonly json?: boolean }): Promise<boolean> {
  if (yes === true) return true
  if (json === true || !process.stdin.isTTY || !process.stderr.isTTY) {
    process.stderr.write('Nothing is applied without --yes.\n')
    return false
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question('Apply this? [y/N] ')).trim())
  } finally {
    terminal.close()
  }
}
