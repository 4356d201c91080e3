import { isObject, own } from '../json-object.ts'
import { count, type Evaluation, type Frame, itemsOf, KeyValue, type Scope } from './scope.ts'
import { type Expression, isTag, TagError } from './tags.ts'

/** `!Enumerate`, with `!Index` and `!Value` inside it, and `!AtIndex`. */

const usage = 'takes a list or mapping, SEQ or MAP, and what becomes of each item.'

export function* enumerate(
  tag: Expression,
  scope: Scope,
  evaluate: (value: unknown, scope: Scope) => Evaluation,
): Evaluation {
  const [listed, kind, template] = itemsOf(tag, usage, 3, 3)
  // The list itself is outside of the tag: depth 0 there would be the tag.
  const list = yield* evaluate(listed, { ...scope, frames: [undefined, ...scope.frames] })
  const form = yield* evaluate(kind, scope)
  const output = typeof form === 'string' ? form.toUpperCase() : undefined
  if (output !== 'SEQ' && output !== 'MAP') throw new TagError(tag, usage)
  if (isTag(list)) throw new TagError(tag, 'its list may not depend on !KeyOf or !Find: only its items may.')
  const items: unknown[] = []
  const merged: Record<string, unknown> = {}
  for (const frame of framesOf(tag, list)) {
    count(scope, 1)
    const value = yield* evaluate(template, { ...scope, frames: [frame, ...scope.frames] })
    if (output === 'SEQ') items.push(value)
    else merge(merged, fieldsOf(tag, value), scope)
  }
  return output === 'SEQ' ? items : merged
}

function framesOf(tag: Expression, list: unknown): readonly NonNullable<Frame>[] {
  if (Array.isArray(list)) return list.map((value, index) => ({ index, value }))
  if (!isObject(list) || list instanceof KeyValue) throw new TagError(tag, usage)
  return Object.entries(list).map(([index, value]) => ({ index, value }))
}

/** The fields of an item of a MAP: a mapping, or a pair of name and value. */
function fieldsOf(tag: Expression, value: unknown): Readonly<Record<string, unknown>> {
  if (Array.isArray(value) && value.length === 2) {
    const [name, inner] = value
    if (typeof name === 'string' || typeof name === 'number') return Object.fromEntries([[String(name), inner]])
  } else if (isObject(value) && !isTag(value) && !(value instanceof KeyValue)) return value
  throw new TagError(tag, 'as a MAP, each item becomes a mapping, or a list of a name and a value.')
}

/** Adds fields: mappings with the same name are merged, lists are joined, other values are replaced. */
function merge(into: Record<string, unknown>, fields: Readonly<Record<string, unknown>>, scope: Scope): void {
  for (const [name, value] of Object.entries(fields)) {
    const there = own(into, name)
    let merged = value
    if (Array.isArray(there) && Array.isArray(value)) {
      count(scope, there.length + value.length)
      merged = [...there, ...value]
    } else if (isPlain(there) && isPlain(value)) {
      count(scope, Object.keys(there).length)
      const copy = { ...there }
      merge(copy, value, scope)
      merged = copy
    }
    count(scope, 1)
    Object.defineProperty(into, name, { value: merged, enumerable: true, writable: true, configurable: true })
  }
}

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isObject(value) && !isTag(value) && !(value instanceof KeyValue)

/** The item of `!Index` and `!Value`. `!Value 1` is that of the `!Enumerate` around the innermost one. */
export function frameOf(tag: Expression, frames: readonly Frame[]): NonNullable<Frame> {
  const depth = typeof tag.content === 'string' && /^\d{1,3}$/.test(tag.content) ? Number(tag.content) : undefined
  if (depth === undefined) throw new TagError(tag, `takes a depth: ${tag.name} 0 is of the innermost !Enumerate.`)
  const frame = frames[depth]
  if (frame !== undefined) return frame
  const around = `${tag.name} ${depth + 1} is of the one around it`
  throw depth < frames.length
    ? new TagError(tag, `stands in the list of its own !Enumerate: ${around}.`)
    : new TagError(tag, `stands in ${frames.length} !Enumerate: there is no depth ${depth}.`)
}

/** @returns undefined when there is none. A negative index counts from the end of a list */
export function itemAt(tag: Expression, from: unknown, at: unknown): { readonly value: unknown } | undefined {
  if (Array.isArray(from)) {
    const index = typeof at === 'string' && /^-?\d{1,9}$/.test(at) ? Number(at) : at
    if (!Number.isSafeInteger(index)) throw new TagError(tag, `${JSON.stringify(at)} is no index of a list.`)
    const position = Number(index) < 0 ? from.length + Number(index) : Number(index)
    return position in from ? { value: from[position] } : undefined
  }
  if (!isPlain(from)) throw new TagError(tag, 'its first item is neither a list nor a mapping.')
  if (typeof at !== 'string' && typeof at !== 'number') throw new TagError(tag, 'its index is no text or number.')
  return Object.hasOwn(from, String(at)) ? { value: own(from, String(at)) } : undefined
}
