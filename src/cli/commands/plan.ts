import { planOptions, readArguments, runHelp } from '../arguments.ts'
import { sendFiles } from '../send.ts'

/** `gatewright plan`: shows the effects that an apply would have. */

export const usage = `gatewright plan FILE... | --run ID [OPTIONS]

Reports what apply would do, and changes nothing. The files are one document, in their order: a file may name
what another one creates. The tag of a plan is for "apply --if-match TAG", which then does exactly what was planned.

${runHelp}  --out FILE           writes the tag, for "apply --plan-file FILE"
`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, planOptions)
  return sendFiles('plan', positionals, values)
}
