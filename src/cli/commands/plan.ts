import { planOptions, readArguments, sendHelp } from '../arguments.ts'
import { sendFiles } from '../send.ts'

export const usage = `gatewright plan [FILE...] [OPTIONS]

Reports what apply would do, and changes nothing. The files are one document: a file may name what another one creates,
before it or behind it. It prints what changes alone: + is created, ~ changed, - deleted.

${sendHelp}  --full               all fields of new objects, and long texts and lists as wholes
  --out FILE           keeps the plan, for "apply --plan-file FILE", which then does exactly what was planned
`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, planOptions)
  return sendFiles('plan', positionals, values)
}
