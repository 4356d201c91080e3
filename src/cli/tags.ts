import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { resolve as resolvePath } from 'node:path'
import { readVariable } from '../config.ts'
import type { Caller } from '../document/scope.ts'
import { type Expression, TagError } from '../document/tags.ts'
import { reasonOf } from '../start-error.ts'

/** `!Env`, `!File` and `--context`: what only the side of the caller has. */

export type Given = {
  /** Paths of `!File` are relative to it. */
  readonly folder: string
  readonly context: ReadonlyMap<string, string>
  /** Values of `!Env` and `!File` are added: output does not show them. */
  readonly secrets: Set<string>
}

/** @returns `isUsed`: whether the document has a value of the caller in it */
export function callerSide({ folder, context, secrets }: Given): { readonly caller: Caller; isUsed(): boolean } {
  let isUsed = false
  const given = {
    get: (name: string) => {
      const value = context.get(name)
      isUsed ||= value !== undefined
      return value
    },
  }
  const read = (tag: Expression, name: string) => {
    isUsed = true
    const value = tag.name === '!Env' ? variable(tag, name) : readValue(tag, resolvePath(folder, name))
    if (value !== undefined && value.length >= shortestSecret) secrets.add(value)
    return value
  }
  return { caller: { read, context: given }, isUsed: () => isUsed }
}

/** Shorter texts are not hidden: they would blot out words that have nothing to do with them. */
const shortestSecret = 4

function variable(tag: Expression, name: string): string | undefined {
  if (!/^[A-Za-z_]\w*$/.test(name)) throw new TagError(tag, `${JSON.stringify(name)} is no name of a variable.`)
  return readVariable(name)
}

const maxFileBytes = 1_048_576

/** Without the line break at its end, which editors add. */
function readValue(tag: Expression, path: string): string | undefined {
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
