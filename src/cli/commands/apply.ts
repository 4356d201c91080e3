import { applyOptions, readArguments, runHelp } from '../arguments.ts'
import { sendFiles } from '../send.ts'

/** `gatewright apply`: applies files. */

export const usage = `gatewright apply FILE... | --run ID [OPTIONS]

Applies files, in this order, in one transaction: all of them, or nothing. With --each, each file is applied in one of its
own; it stops at the first that is not applied. A service that restarts meanwhile is waited for, and no file is applied twice.

${runHelp}  --no-wait            end as soon as each file is recorded: the outcome is not known then (exit code 0)
  --if-match TAG       apply the files exactly as this plan said, or refuse it
  --plan-file FILE     the same by what "plan --out FILE" wrote; with --each, by the tag of each file
`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, applyOptions)
  return sendFiles('apply', positionals, values)
}
