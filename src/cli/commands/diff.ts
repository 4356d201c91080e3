import { readArguments, sendHelp, sendOptions } from '../arguments.ts'
import { sendFiles } from '../send.ts'

/** `gatewright diff`: what stands against the files, field by field. */

export const usage = `gatewright diff FILE... [OPTIONS]

Compares what stands with the files, field by field, and changes nothing. Of a secret it says only whether it differs.

${sendHelp}`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, sendOptions)
  return sendFiles(positionals, values, { title: 'diff', mode: 'plan', isDiff: true })
}
