import { isObject, type JsonObject, own } from './json-object.ts'

/**
 * The two sides of a change as texts for readers: lists by their items, objects by their members, long texts from where they
 * differ.
 */

export type Sides = { readonly from?: unknown; readonly to?: unknown }

/** A difference at a path. Without `from`, an item or member was added; without `to`, it was removed. */
export type Difference = { readonly path: string; readonly from?: string; readonly to?: string }

/** Characters before and after a place where texts differ. */
const context = 12

/** @property kept the items of the list that are the same on both sides */
type DifferenceAt = { readonly path: string; readonly sides: Sides; readonly kept?: readonly unknown[] }

/**
 * @property length characters of a text, unless more are needed to distinguish it from another
 * @property most differences of each kind: added, removed, changed
 */
type TextForm = { readonly length?: number; readonly most?: number; readonly textOf?: (value: unknown) => string }

/**
 * Lists how two values of a field differ. All surfaces that show a change list these.
 *
 * @param name the field: paths begin with it
 * @returns `more`: how many differences are not listed
 */
export function differences(
  name: string,
  { from, to }: Sides,
  { length = 160, most = 10, textOf = asText }: TextForm = {},
): { readonly listed: readonly Difference[]; readonly more: number } {
  const found = (markerText(from) ?? markerText(to)) ? [] : between(name, from, to, true)
  const all = found.length > 0 ? found : [{ path: name, sides: { from, to } }]
  const kinds = Map.groupBy(all, ({ sides }) => Object.keys(sides).join())
  const some = new Set([...kinds.values()].flatMap((each) => each.slice(0, most)))
  const paths = Map.groupBy(
    all.filter((each) => some.has(each)),
    ({ path }) => path,
  )
  const listed = [...paths.values()].flatMap((there) => {
    const texts = there.flatMap(({ sides }) => Object.values(sides).map(textOf))
    const cut = cutApart(texts, there[0]?.kept?.map(textOf) ?? [], length).values()
    return there.map(({ path, sides }): Difference => {
      return { path, ...Object.fromEntries(Object.keys(sides).map((side) => [side, cut.next().value])) }
    })
  })
  return { listed, more: all.length - some.size }
}

/** @param isField items of the list of a field are compared as wholes; one inside of an object may differ in a member */
function between(path: string, from: unknown, to: unknown, isField = false): DifferenceAt[] {
  if (asJson(from) === asJson(to)) return []
  if (isObject(from) && isObject(to)) return inMembers(path, from, to)
  if (!Array.isArray(from) || !Array.isArray(to)) return [{ path, sides: { from, to } }]
  const [removed, added] = [lacking(from, to), lacking(to, from)]
  // Only the order differs.
  if (removed.size + added.size === 0) return [{ path, sides: { from, to } }]
  const places = [...removed]
  if (
    !isField &&
    places.every((at) => added.has(at) && isObject(from[at]) && isObject(to[at])) &&
    removed.size === added.size
  )
    return places.flatMap((at) => between(`${path}.${at}`, from[at], to[at]))
  const kept = from.filter((_, at) => !removed.has(at))
  return [
    ...places.map((at) => ({ path, sides: { from: from[at] }, kept })),
    ...[...added].map((at) => ({ path, sides: { to: to[at] }, kept })),
  ]
}

function inMembers(path: string, from: JsonObject, to: JsonObject): DifferenceAt[] {
  return [...new Set([...Object.keys(from), ...Object.keys(to)])].sort().flatMap((name) => {
    const inner = `${path}.${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)}`
    if (!Object.hasOwn(from, name)) return [{ path: inner, sides: { to: to[name] } }]
    if (!Object.hasOwn(to, name)) return [{ path: inner, sides: { from: from[name] } }]
    return between(inner, from[name], to[name])
  })
}

/** The indexes of the items that the other list does not have, or has less often. */
function lacking(items: readonly unknown[], others: readonly unknown[]): Set<number> {
  // Items are compared by their text: a list may have thousands of them.
  const left = Map.groupBy(others, asJson)
  return new Set(items.flatMap((item, at) => (left.get(asJson(item))?.pop() === undefined ? [at] : [])))
}

/** Whether two lists have the same items, in any order. */
export const isSameSet = (one: unknown, other: unknown): boolean =>
  Array.isArray(one) && Array.isArray(other) && one.length === other.length && lacking(one, other).size === 0

/** JSON on one line. The database orders members otherwise than a document does. */
const asJson = (value: unknown): string =>
  (typeof value === 'object' ? JSON.stringify(value, inOrder) : JSON.stringify(value)) ?? 'null'

const inOrder = (_: string, value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))) : value

/** Markers in the place of a value that is not reported (apply/changes.ts). */
const markers = { set_by_server: 'set by the server', not_shown: '(not shown)' } as const

/** @returns the words for a marker; undefined for a value */
export function markerText(value: unknown): string | undefined {
  const [[name, is] = [], another] = isObject(value) ? Object.entries(value) : []
  return is === true && another === undefined ? own(markers, name) : undefined
}

export const asText = (value: unknown): string => markerText(value) ?? asJson(value)

/** A text, cut where it would be longer. @param most characters */
export const cutTo = (most: number, text: string): string =>
  text.length <= most ? text : `${text.slice(0, most).toWellFormed()}…`

/**
 * Shortens texts so that they still differ: each shows every place where it begins to differ from another.
 *
 * @param others texts that are not shown, such as the items that a list keeps
 */
function cutApart(texts: readonly string[], others: readonly string[], most: number): string[] {
  if (texts.every(({ length }) => length <= most)) return [...texts]
  const ends = texts.map((text) => Math.max(-1, ...others.map((other) => sameStart(text, other))))
  return texts.map((text) => {
    const places = texts.flatMap((other, index) => {
      const same = sameStart(text, other)
      // The place where the other text leaves those that are not shown: up to there, this one is the same.
      const end = ends[index] ?? -1
      return [...(text === other ? [] : [same]), ...(end >= 0 && end <= same ? [end] : [])]
    })
    return cutAt(
      text,
      [...new Set(places)].sort((one, other) => one - other),
      most,
    )
  })
}

function sameStart(one: string, other: string): number {
  const most = Math.min(one.length, other.length)
  let same = 0
  while (same < most && one[same] === other[same]) same += 1
  return same
}

/** @param places the indexes to be shown, in order */
function cutAt(text: string, places: readonly number[], most: number): string {
  const [first = 0] = places
  const parts = [{ start: first + context < most ? 0 : first - context, end: first + context }]
  for (const place of places.slice(1)) {
    const last = parts.at(-1)
    if (last === undefined || place - context > last.end) parts.push({ start: place - context, end: place + context })
    else last.end = place + context
  }
  const [left, last] = [most - parts.reduce((sum, { start, end }) => sum + end - start, 0), parts.at(-1)]
  if (last !== undefined && left > 0) last.end += left
  const shown = parts.map(({ start, end }) => text.slice(whole(text, start, -1), whole(text, end, 1))).join('…')
  return `${parts[0]?.start === 0 ? '' : '…'}${shown}${(last?.end ?? 0) < text.length ? '…' : ''}`
}

/** Keeps a character of two units whole. @returns the place, or the one beside it */
const whole = (text: string, at: number, step: 1 | -1): number =>
  at > 0 && at < text.length && /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1)) ? at + step : at
