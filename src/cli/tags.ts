import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { resolve as resolvePath } from 'node:path'
import { readVariable } from '../config.ts'
import type { Caller } from '../document/scope.ts'
import { type Expression, TagError } from '../document/tags.ts'
import { reasonOf } from '../start-error.ts'
import type { Context } from './context.ts'
import { shortestSecret } from './output.ts'
import { isBelow } from './text-file.ts'

/** `!Env`, `!File` and `--context`: values that only the caller has. */

export type GivenValues = { readonly context: Context; readonly filesFrom: string | null }

type Given = GivenValues & {
  /** The folder of the document. Paths of `!File` are relative to it. */
  readonly folder: string
  /** Values of `!Env` and `!File` are added: output does not show them. */
  readonly secrets: Set<string>
}

/** @returns `isUsed`: whether the document has a value of the caller in it */
export function callerSide({ folder, filesFrom, context, secrets }: Given) {
  const roots = filesFrom === null ? [folder] : [folder, filesFrom]
  let isUsed = false
  const get = (name: string) => {
    const value = context.values.get(name)
    isUsed ||= value !== undefined
    context.wanted.add(name)
    return value
  }
  const read = (tag: Expression, name: string) => {
    isUsed = true
    const value = tag.name === '!Env' ? variable(tag, name) : readValue(tag, resolvePath(folder, name), roots)
    if (value !== undefined && value.length >= shortestSecret) secrets.add(value)
    return value
  }
  return { caller: { read, context: { get } } satisfies Caller, isUsed: () => isUsed }
}

function variable(tag: Expression, name: string): string | undefined {
  if (!/^[A-Za-z_]\w*$/.test(name)) throw new TagError(tag, `${JSON.stringify(name)} is no name of a variable.`)
  return readVariable(name)
}

const maxFileBytes = 1_048_576

/** Reads a file without the line break at its end, which editors add. @param roots the folders below which it may be */
function readValue(tag: Expression, path: string, roots: readonly string[]): string | undefined {
  // A document of another author must not take files of the machine that applies it.
  if (!isBelow(roots, path))
    throw new TagError(tag, `${path} is not below ${roots.join(' or ')}: --files-from DIR lets it read below DIR.`)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return undefined
  if (!stats.isFile()) throw new TagError(tag, `${path} is no file.`)
  if (stats.size > maxFileBytes) throw new TagError(tag, `${path} is longer than ${maxFileBytes} bytes.`)
  try {
    const bytes = readFileSync(path)
    if (!isUtf8(bytes)) throw new TagError(tag, `${path} is not UTF-8.`)
    return bytes.toString('utf8').replace(/\r?\n$/, '')
  } catch (error) {
    if (error instanceof TagError) throw error
    throw new TagError(tag, `${path} cannot be read (${reasonOf(error)}).`)
  }
}
