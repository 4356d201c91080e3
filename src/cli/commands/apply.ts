import {
  flag,
  readArguments,
  resetHelp,
  resetOption,
  runHelp,
  runOption,
  sendHelp,
  sendOptions,
  text,
} from '../arguments.ts'
import { UsageError } from '../exit.ts'
import { planFile } from '../plan-file.ts'
import { sendFiles } from '../send.ts'

/** `gatewright apply`: applies files. */

export const usage = `gatewright apply FILE... | --run ID [OPTIONS]

Applies files, in this order, in one transaction: all of them, or nothing. With --each, each file is applied in one of its
own; it stops at the first that is not applied. A service that restarts meanwhile is waited for, and no file is applied twice.

${sendHelp}${resetHelp}${runHelp}  --no-wait            end as soon as each file is recorded: the outcome is not known then (exit code 0)
  --if-match TAG       apply the files exactly as this plan said, or refuse it
  --plan-file FILE     the same by what "plan --out FILE" wrote; with --each, by the tag of each file
`

const options = {
  ...sendOptions,
  ...runOption,
  ...resetOption,
  'no-wait': flag,
  'if-match': text,
  'plan-file': text,
} as const

export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArguments(args, options)
  return sendFiles(positionals, values, {
    title: 'apply',
    mode: 'apply',
    waits: values['no-wait'] !== true,
    tagFor: tagsOf(values['if-match'] ?? null, values['plan-file']),
  })
}

/** @throws {UsageError} for both, and for a text that is no tag */
function tagsOf(tag: string | null, file: string | undefined) {
  if (tag !== null && file !== undefined) throw new UsageError('Use either --if-match or --plan-file.')
  if (tag !== null && !/^"?[\w-]{22}"?$/.test(tag))
    throw new UsageError('--if-match takes the tag of a plan, of 22 characters.')
  const read = file === undefined ? null : planFile.read(file)
  return (name: string, count: number): string | null => {
    if (tag !== null && count > 1) throw new UsageError('A tag is of one plan: with --each, use --plan-file.')
    return read === null ? tag : read(name)
  }
}
