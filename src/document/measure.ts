import { documentLimits, Find, KeyOf } from './document.ts'
import { Expression, ForbiddenName, isTag, TagError } from './tags.ts'

/**
 * Aliases and tags let a short text stand for a large document. It is measured as it is written out: a value that stands in
 * several places counts each time.
 */

/** A field name that is forbidden, in YAML as in JSON: code that copies fields one by one would set the prototype. */
export const forbiddenName = '__proto__'

export type Sizes = Readonly<Record<'nodes' | 'bytes' | 'depth', number>>

const unlimited: Sizes = { nodes: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY, depth: 1_000 }

/**
 * @returns the lists and mappings that hold tags
 * @throws {TagError} for a value that is larger when it is written out
 */
export function taggedIn(value: unknown, sizes: Sizes = unlimited): ReadonlySet<object> {
  const tagged = new Set<object>()
  let [nodes, bytes] = [0, 0]
  const addText = (text: string): true => {
    bytes += Buffer.byteLength(text)
    if (bytes > sizes.bytes) throw new TagError(undefined, `is longer than ${sizes.bytes} bytes, written out`)
    return true
  }
  const visit = (each: unknown, depth: number): boolean => {
    nodes += 1
    if (nodes > sizes.nodes) throw new TagError(undefined, `holds more than ${sizes.nodes} nodes, written out`)
    if (typeof each === 'string') addText(each)
    if (typeof each !== 'object' || each === null) return false
    if (depth > sizes.depth) throw new TagError(undefined, `is nested deeper than ${sizes.depth}, written out`)
    const isFound = visitAll(each, depth)
    if (isFound && !isTag(each)) tagged.add(each)
    return isFound || isTag(each)
  }
  const visitAll = (each: object, depth: number): boolean => {
    if (each instanceof KeyOf) return addText(each.id)
    if (each instanceof Find) {
      visit(each.model, depth + 1)
      return visit(each.identifiers, depth + 1) || true
    }
    if (each instanceof Expression)
      return typeof each.content === 'string' ? addText(each.content) : visitAll(each.content, depth) || true
    let isFound = false
    for (const [name, inner] of Array.isArray(each) ? each.entries() : Object.entries(each)) {
      if (name === forbiddenName && sizes !== unlimited) throw new ForbiddenName()
      if (typeof name === 'string') visit(name, depth)
      isFound = visit(inner, depth + 1) || isFound
    }
    return isFound
  }
  visit(value, 1)
  return tagged
}

/** @throws {TagError} when the document, written out, is larger than documents may be */
export const measure = (value: unknown): void => void taggedIn(value, documentLimits)
