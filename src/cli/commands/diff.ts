import { diffOptions, readArguments, sendHelp } from '../arguments.ts'
import { sendFiles } from '../send.ts'

/** `gatewright diff`: compares the installation with the files, field by field. */

export const usage = `gatewright diff FILE... [OPTIONS]

Compares what stands with the files, field by field, and changes nothing. Of a secret it says only whether it differs.

${sendHelp}  --all                the files are all that there is: fields that they do not name are compared with their defaults, and what
                       the owner manages and no file has is listed
`

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, diffOptions)
  return sendFiles('diff', positionals, values)
}
