import { z } from 'zod'
import { Expression } from '../document/tags.ts'
import { ErrorList } from '../errors.ts'
import { unknownName } from '../messages.ts'
import { UsageError } from './exit.ts'
import { readSettings, wrongAt } from './text-file.ts'

/** The caller's values for `!Context`: `--context`, else `--context-file`, else the context file of the environment. */

export type Context = Awaited<ReturnType<typeof readContext>>

const form = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean()], 'Must be text, a number, true or false.'),
)

/** `KEY=VALUE` texts. @throws {UsageError} */
export const readPairs = (pairs: readonly string[] = []) =>
  pairs.map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`--context takes KEY=VALUE, not ${JSON.stringify(pair.slice(0, 100))}.`)
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })

/** @param files the least important first @throws {UsageError} */
export async function readContext(pairs: readonly string[] | undefined, files: readonly string[]) {
  const options = readPairs(pairs)
  const read = await Promise.all(files.map((file) => readSettings(file, form)))
  return {
    values: new Map([...read.flatMap(({ settings }) => Object.entries(settings)), ...options]),
    /** The keys of `--context`. */
    options: options.map(([key]) => key),
    files: read,
    /** The names that documents look up. */
    wanted: new Set<string>(),
  }
}

/** Adds the names of `!Context` in a document, also those in branches that are not taken. */
export function addWanted(written: unknown, wanted: Set<string>, seen = new Set<object>()): void {
  if (typeof written !== 'object' || written === null || seen.has(written)) return
  seen.add(written)
  const content = written instanceof Expression ? written.content : written
  if (written instanceof Expression && written.name === '!Context')
    wanted.add(typeof content === 'string' ? (content.split(/\s/)[0] ?? '') : String(Object.values(content)[0]))
  if (typeof content === 'object') for (const each of Object.values(content)) addWanted(each, wanted, seen)
}

/**
 * Refuses keys that no document looks up.
 *
 * @param isPart whether other documents, which are not read, may look up those of files
 * @throws {UsageError} with the place of each
 */
export async function refuseUnused({ options, files, wanted }: Context, isPart: boolean): Promise<void> {
  const unused = (keys: readonly string[]) => keys.filter((key) => !wanted.has(key))
  const why = (key: string) =>
    unknownName('key', key, wanted).replace(/^Unknown key/, 'No file has !Context of this name')
  const lines = unused(options).map((key) => `--context ${key}: ${why(key)}`)
  for (const { settings, ...source } of isPart ? [] : files) {
    const errors = new ErrorList()
    for (const key of unused(Object.keys(settings))) errors.add([key], 'unknown_field', why(key))
    if (errors.any) lines.push((await wrongAt(source, errors)).message)
  }
  if (lines.length > 0) throw new UsageError(lines.join('\n'))
}
