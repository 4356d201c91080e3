import { accessSync, constants, existsSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { wantsPlainOutput } from '../config.ts'
import { hidden, withoutPasswords } from '../hidden.ts'
import { reasonOf } from '../start-error.ts'
import { isOfReader } from '../without-reader.ts'
import { UsageError } from './exit.ts'

/** The output of the program: results on standard output, the reasons of waits on standard error. */

const colours = { red: 31, green: 32, yellow: 33, dim: 2, bold: 1 } as const
export type Colour = keyof typeof colours

/** A text of a file without commands for the terminal: control characters are shown, not sent. */
export const shown = (text: string): string =>
  text.replace(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu, (each) =>
    each === '\n' || each === '\t' ? each : `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The same on one line. */
export const oneLine = (text: string): string => shown(text).replace(/\s+/g, ' ')

export type Output = {
  /** A text in a colour, on a terminal that shows colours. */
  paint(colour: Colour, text: string): string
  /** A line on standard output. */
  line(text: string): void
  /** With `--json` the one document, whose texts are redacted already, and no lines; else nothing. */
  json(value: unknown, indent?: number): void
  /** A line on standard error. */
  note(text: string): void
  /** Prints the reason of a wait: on a terminal in the place of the one before, elsewhere once for each reason. */
  waiting(why: string): void
  /** Prints the progress, on a terminal only. */
  progress(done: number, total: number, what: string): void
  /** Hides values from variables and files of the caller. */
  redact(text: string): string
}

/** @param secrets texts that are never printed */
export function openOutput(
  { json: isJson = false }: { readonly json?: boolean } = {},
  secrets: ReadonlySet<string> = new Set(),
): Output {
  const isPlain = wantsPlainOutput()
  const hasColour = process.stdout.isTTY === true && !isPlain
  const isTerminal = process.stderr.isTTY === true && !isPlain
  const hide = redactor(secrets)
  const noted = new Set<string>()
  let hasStatus = false
  /** Writes the line that the next output replaces. Empty: there is none any more. */
  const status = (text: string) => {
    const cut = shown(hide(text)).slice(0, Math.max(20, (process.stderr.columns ?? 80) - 1))
    if (hasStatus || cut !== '') process.stderr.write(`\r\u001b[K${cut}`)
    hasStatus = cut !== ''
  }
  const print = (stream: NodeJS.WriteStream, text: string) => {
    status('')
    stream.write(`${text}\n`)
  }
  return {
    paint: (colour, text) => (hasColour ? `\u001b[${colours[colour]}m${text}\u001b[0m` : text),
    line(text) {
      if (!isJson) print(process.stdout, hide(text))
    },
    json(value, indent = 2) {
      if (isJson) print(process.stdout, JSON.stringify(value, null, indent))
    },
    note: (text) => print(process.stderr, shown(hide(text))),
    waiting(why) {
      if (isTerminal) status(`waiting: ${why}`)
      else if (noted.size < 50 && !noted.has(why)) print(process.stderr, `waiting: ${shown(hide(why))}`)
      noted.add(why)
    },
    progress(done, total, what) {
      if (isTerminal && total > 1) status(done === total ? '' : `${done}/${total} ${what}`)
    },
    redact: hide,
  }
}

/** The shortest text that is hidden: a shorter one would hide parts of unrelated words. */
export const shortestSecret = 4

/**
 * The forms of a secret: as it was given, and as the service may have stored it (fields are trimmed and normalised), each also in
 * quotes.
 */
function formsOf(secret: string): string[] {
  const trimmed = secret.trim()
  const normal = ['NFC', 'NFKC'].map((form) => trimmed.normalize(form))
  const plain = [secret, trimmed, ...normal, ...normal.map((each) => each.replace(/\s+/g, ' '))]
  const all = [...plain, ...plain.map((each) => each.toLowerCase())]
  return all
    .filter((each) => each.length >= shortestSecret)
    .flatMap((each) => [each, JSON.stringify(each).slice(1, -1)])
}

/** Texts whose redaction is remembered: the changes of a document repeat names. */
const mostRemembered = 10_000

/** @returns a function that hides the secrets, the longest first: one may hold another */
function redactor(secrets: ReadonlySet<string>): (text: string) => string {
  const forms = [...new Set([...secrets].flatMap(formsOf))].sort((one, other) => other.length - one.length)
  const remembered = new Map<string, string>()
  return (text) => {
    const before = remembered.get(text)
    if (before !== undefined) return before
    const found = forms.reduce((rest, secret) => rest.replaceAll(secret, hidden), withoutPasswords(text))
    if (remembered.size < mostRemembered) remembered.set(text, found)
    return found
  }
}

/** @throws {UsageError} */
export const writeOut = (file: string, text: string): void =>
  workOnFile(`${file} cannot be written`, () => {
    try {
      writeFileSync(file, text)
    } catch (error) {
      if (!isOfReader(error)) throw error
    }
  })

/** Ends a program before it changes anything that it could not report. @throws {UsageError} */
export const checkOut = (file: string): void =>
  workOnFile(`${file} cannot be written`, () => accessSync(existsSync(file) ? file : dirname(file), constants.W_OK))

/** @param what begins the message when it fails @throws {UsageError} */
export function workOnFile(what: string, work: () => void): void {
  try {
    work()
  } catch (error) {
    throw new UsageError(`${what} (${reasonOf(error)}).`)
  }
}
