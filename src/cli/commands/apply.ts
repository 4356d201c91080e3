import { applyOptions, readArguments, sendHelp } from '../arguments.ts'
import { sendFiles } from '../send.ts'

export const usage = `gatewright apply [FILE...] [OPTIONS]

Applies files, in one transaction: all of them, or nothing. With --each, each file is applied in one of its
own; it stops at the first that is not applied. A service that restarts meanwhile is waited for, and no file is applied twice.

${sendHelp}  --allow-deletes N    delete the N objects that left the files, without a plan
  --message TEXT       why: a line of at most 300 characters, kept with each run; write no secret
  --no-wait            end as soon as each file is recorded: the outcome is not known then (exit code 0)
  --plan-file FILE     apply exactly the plan that "plan --out FILE" kept, or nothing
`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, applyOptions)
  return sendFiles('apply', positionals, values)
}
