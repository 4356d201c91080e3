import { flag, readArguments, sendHelp, sendOptions } from '../arguments.ts'
import { sendFiles } from '../send.ts'

/** `gatewright diff`: compares the installation with the files, field by field. */

export const usage = `gatewright diff FILE... [OPTIONS]

Compares what stands with the files, field by field, and changes nothing. Of a secret it says only whether it differs.

${sendHelp}  --all                the files are all that there is: fields that they do not name are compared with their defaults, and what
                       the owner manages and no file has is listed
`

const options = { ...sendOptions, all: flag } as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  const { all: isAll = false, ...others } = values
  return sendFiles(positionals, { ...others, reset: isAll }, { title: 'diff', mode: 'plan', isDiff: true, isAll })
}
