import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { resolve as resolvePath } from 'node:path'
import { defineScalarTag, defineSequenceTag, type TagDefinition } from 'js-yaml'
import { readVariable } from '../config.ts'
import { Find, KeyOf } from '../document/document.ts'
import { type MoreTags, placeAt } from '../document/yaml.ts'
import { reasonOf } from '../start-error.ts'

/** `!Env`, `!File`, `!Context`, `!Format` and `!If`: replaced by their values before a file is sent. */

const tagNames = ['!Env', '!File', '!Context', '!Format', '!If'] as const
type TagName = (typeof tagNames)[number]

type Place = { readonly line: number; readonly column: number }

/** A tag with what stands behind it. Of an `!If`, only the branch that is taken is resolved. */
class CallerTag {
  readonly name: TagName
  readonly place: Place
  readonly content: string | readonly unknown[]
  constructor(name: TagName, place: Place, content: string | readonly unknown[]) {
    this.name = name
    this.place = place
    this.content = content
  }
}

/** A mistake in a file, with its place. */
export class TagError extends Error {
  override readonly name = 'TagError'
  readonly place: Place
  constructor({ place, name }: CallerTag, why: string) {
    super(`${name}: ${why}`)
    this.place = place
  }
}

export type Scope = {
  /** Paths of `!File` are relative to it. */
  readonly folder: string
  readonly context: ReadonlyMap<string, string>
  /** Values of `!Env` and `!File` are added: output does not show them. */
  readonly secrets: Set<string>
}

/** Reads the tags as `CallerTag`. The parser calls the definitions in the order of the events, one call for each. */
export const callerTags: MoreTags = (events, text) => {
  const places = events.flatMap((event) => {
    if (!('tagStart' in event) || event.tagStart < 0) return []
    const name = text.slice(event.tagStart, event.tagEnd)
    return tagNames.some((each) => each === name) ? [placeAt(text, event.tagStart)] : []
  })
  if (places.length === 0) return []
  const nextPlace = () => places.shift() ?? { line: 1, column: 1 }
  return tagNames.flatMap((name): TagDefinition[] => [
    defineScalarTag<CallerTag>(name, {
      resolve: (source) => new CallerTag(name, nextPlace(), source),
      identify: () => false,
    }),
    defineSequenceTag<{ place: Place; items: unknown[] }, CallerTag>(name, {
      create: () => ({ place: nextPlace(), items: [] }),
      addItem: ({ items }, item) => {
        items.push(item)
      },
      finalize: ({ place, items }) => new CallerTag(name, place, items),
      identify: () => false,
    }),
  ])
}

/** @throws {TagError} for what has no value */
export function resolveTags(value: unknown, scope: Scope): unknown {
  if (value instanceof CallerTag) return evaluate(value, scope)
  if (value instanceof KeyOf) return value
  if (value instanceof Find) return new Find(value.model, resolveFields(value.identifiers, scope))
  if (Array.isArray(value)) return value.map((item) => resolveTags(item, scope))
  return typeof value === 'object' && value !== null ? resolveFields(value, scope) : value
}

const resolveFields = (value: object, scope: Scope): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolveTags(inner, scope)]))

function evaluate(tag: CallerTag, scope: Scope): unknown {
  switch (tag.name) {
    case '!Env':
      return named(tag, scope, (name) => {
        if (!/^[A-Za-z_]\w*$/.test(name)) throw new TagError(tag, `${JSON.stringify(name)} is no name of a variable.`)
        return secret(readVariable(name), scope)
      })
    case '!File':
      return named(tag, scope, (path) => secret(readValue(tag, resolvePath(scope.folder, path)), scope))
    case '!Context':
      return named(tag, scope, (key) => scope.context.get(key))
    case '!Format':
      return format(tag, scope)
    case '!If': {
      const { content } = tag
      if (typeof content === 'string' || content.length !== 3)
        throw new TagError(tag, 'takes a list of three: [condition, value if true, value if false].')
      const [condition, yes, no] = content
      return resolveTags(isTrue(resolveTags(condition, scope)) ? yes : no, scope)
    }
    default:
      return tag.name satisfies never
  }
}

const missing: Readonly<Partial<Record<TagName, (name: string) => string>>> = {
  '!Env': (name) => `the variable ${name} is not set, or is empty, and there is no default.`,
  '!File': (path) => `there is no file ${path}, and there is no default.`,
  '!Context': (key) => `there is no --context ${key}=VALUE, and there is no default.`,
}

/** `!Tag NAME`, `!Tag NAME default text`, `!Tag [NAME]` and `!Tag [NAME, default]`. A path may hold spaces. */
function named(tag: CallerTag, scope: Scope, read: (name: string) => string | undefined): unknown {
  const { name: tagName, content } = tag
  const words = typeof content !== 'string' ? content : tagName === '!File' ? [content] : splitDefault(content)
  const [name, initial] = words
  if (typeof name !== 'string' || name === '' || words.length > 2)
    throw new TagError(tag, `takes a name, and a default if you like: ${tagName} [NAME, default].`)
  const found = read(name)
  if (found !== undefined) return found
  if (words.length === 1) throw new TagError(tag, missing[tagName]?.(name) ?? 'has no value.')
  return resolveTags(initial, scope)
}

const splitDefault = (text: string): string[] => /^(\S+)\s+(.+)$/s.exec(text)?.slice(1) ?? [text]

/** Shorter texts are not hidden: they would blot out words that have nothing to do with them. */
const shortestSecret = 4

function secret(value: string | undefined, { secrets }: Scope): string | undefined {
  if (value !== undefined && value.length >= shortestSecret) secrets.add(value)
  return value
}

const maxFileBytes = 1_048_576

/** Without the line break at its end, which editors add. */
function readValue(tag: CallerTag, path: string): string | undefined {
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

function format(tag: CallerTag, scope: Scope): string {
  const [template, ...values] = typeof tag.content === 'string' ? [tag.content] : tag.content
  const pattern = resolveTags(template, scope)
  if (typeof pattern !== 'string') throw new TagError(tag, 'takes a text with %s, then its values.')
  let used = 0
  const text = pattern.replace(/%(.?)/gs, (whole, kind: string) => {
    if (kind === '%') return '%'
    if (kind !== 's')
      throw new TagError(tag, `${JSON.stringify(whole)} is unknown: it takes %s, and %% for a percent sign.`)
    const value = resolveTags(values[used], scope)
    used += 1
    if (!['string', 'number', 'boolean'].includes(typeof value))
      throw new TagError(tag, `its value ${used} is missing, or is no text, number or boolean.`)
    return String(value)
  })
  if (used < values.length) throw new TagError(tag, `has ${values.length} values for ${used} %s.`)
  return text
}

/** Variables are texts, so some texts are false. */
const isTrue = (value: unknown): boolean =>
  !(
    value === null ||
    value === false ||
    value === 0 ||
    ['', '0', 'false', 'no', 'off'].includes(String(value).toLowerCase())
  )
