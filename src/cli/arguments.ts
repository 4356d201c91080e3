import { type ParseArgsConfig, parseArgs } from 'node:util'
import { nearest } from '../messages.ts'
import { UsageError } from './exit.ts'

type Options = NonNullable<ParseArgsConfig['options']>

/**
 * @param options those of the command, beside `--env` and `--verbose`
 * @throws {UsageError} for one that it does not have, and for an empty value, as a variable has that is not set
 */
export function readArguments<const Known extends Options>(args: readonly string[], options: Known) {
  try {
    const all = { ...options, env: text, verbose: flag }
    const read = parseArgs({ args: [...args], options: all, allowPositionals: true })
    // A job may have no message.
    const empty = Object.entries(read.values).find(([name, value]) => name !== 'message' && [value].flat().includes(''))
    if (empty !== undefined) throw new UsageError(`--${empty[0]}: May not be empty.`)
    return read
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error))
    const [, unknown] = /^Unknown option '(-[^']*)'/.exec(message) ?? []
    if (unknown === undefined) throw new UsageError(message)
    const known = Object.keys(options).map((name) => `--${name}`)
    const near = nearest(unknown, known)
    throw new UsageError(`Unknown option '${unknown}'.${near === undefined ? '' : ` Did you mean ${near}?`}`)
  }
}

/** The values of options: one, one each time that the option is repeated, or none. */
export const text = { type: 'string' } as const
export const texts = { type: 'string', multiple: true } as const
export const flag = { type: 'boolean' } as const

/** The options of every command that reads files. */
export const fileOptions = {
  context: texts,
  'context-file': text,
  'files-from': text,
  json: flag,
  summary: text,
} as const

export const fileHelp = `  FILE...              files, folders (their .yaml, .yml and .json files, sorted), or - for standard input; without one, the
                       folder of gatewright.yaml
  --context KEY=VALUE  the value of !Context KEY; repeat it for more
  --context-file FILE  more of them: keys and values, as YAML or JSON
  --files-from DIR     !File may read below DIR too, else only below the folder of its document
  --json               one JSON document on standard output
  --summary FILE       writes a Markdown summary, for a pull request
`

/** The options of the commands that send files, or the document of a former run. */
const sendOptions = {
  ...fileOptions,
  owner: text,
  stack: text,
  'allow-grants': flag,
  'allow-takeover': flag,
  each: flag,
  'keep-going': flag,
  timeout: text,
  reset: flag,
} as const

export const sendHelp = `${fileHelp}  --owner LABEL        you manage the applications and providers under this label (default: GATEWRIGHT_OWNER)
  --stack NAME         the files are all that this stack manages (default: stack of gatewright.yaml)
  --allow-grants       give rights to users whom the file does not name
  --allow-takeover     include what another owner or stack manages, or another user made; it is yours afterwards
  --each               send each file on its own: what one file would create is not there in the plan of the next
  --keep-going         with --each: go on behind a file that is refused
  --timeout SECONDS    how long to wait for the outcome of each file (default 120)
  --reset              fields that the files do not name go back to their defaults, except for secrets, generated values and members
`

export const planOptions = { ...sendOptions, out: text, full: flag } as const
export const applyOptions = {
  ...sendOptions,
  'allow-deletes': text,
  message: text,
  'no-wait': flag,
  'plan-file': text,
} as const
export const allOptions = { ...planOptions, ...applyOptions } as const

/** @throws {UsageError} */
export const readTimeoutMs = (text: string | undefined, defaultS = 120): number =>
  1_000 * readCount('--timeout', text ?? String(defaultS), 86_400, 'number of seconds')

/** @throws {UsageError} */
export function readRunId(text: string): string {
  if (/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)) return text
  throw new UsageError(`${JSON.stringify(text.slice(0, 100))} is no id of a run: gatewright runs lists them.`)
}

/** @throws {UsageError} for a number that is not between 1 and `max` */
export function readCount(name: string, text: string, max: number, what = 'number'): number {
  if (!/^\d{1,6}$/.test(text) || Number(text) < 1 || Number(text) > max)
    throw new UsageError(`${name} takes a whole ${what} from 1 to ${max}.`)
  return Number(text)
}
