/** The two sides of a change as texts for people: lists by their items, and long texts from where they differ. */

/** Characters of a text at most, unless it takes more to tell it from the others. */
const shownLength = 60
/** Characters before and after a place where texts differ. */
const context = 12
/** Items of one list at most. */
const maxItems = 10

export type Sides = { readonly removed: readonly string[]; readonly added: readonly string[] }

/** JSON, on one line. */
export const asJson = (value: unknown): string => JSON.stringify(value) ?? 'null'

/** @returns the items of each list that the other does not have, with their number; null when only the order differs, or one is no list */
export function itemsOf(from: unknown, to: unknown): Sides | null {
  if (!Array.isArray(from) || !Array.isArray(to)) return null
  // By their text: a list may have thousands of items.
  const [before, after] = [from.map(asJson), to.map(asJson)]
  const [removed, added] = [lacking(before, after), lacking(after, before)]
  if (removed.length + added.length === 0) return null
  const shown = removed.slice(0, maxItems)
  const changed = new Set([...removed, ...added])
  const kept = before.filter((item) => !changed.has(item))
  const cut = cutApart([...shown, ...added.slice(0, maxItems)], kept)
  return {
    removed: withMore(cut.slice(0, shown.length), removed.length),
    added: withMore(cut.slice(shown.length), added.length),
  }
}

/** Each item as often as it is missing in `others`. */
function lacking(items: readonly string[], others: readonly string[]): string[] {
  const left = new Map<string, number>()
  for (const other of others) left.set(other, (left.get(other) ?? 0) + 1)
  return items.filter((item) => {
    const count = left.get(item) ?? 0
    if (count > 0) left.set(item, count - 1)
    return count === 0
  })
}

const withMore = (shown: readonly string[], count: number): string[] =>
  count > shown.length ? [...shown, `${count - shown.length} more`] : [...shown]

/** Both texts from the same place, so that what differs is seen. */
export function cutSides(from: string, to: string): readonly [string, string] {
  const [one = '', other = ''] = cutApart([from, to])
  return [one, other]
}

/**
 * Texts that differ still do when they are cut: of each, every place is shown where it begins to differ from another.
 *
 * @param others texts that are not shown, such as the items that a list keeps
 */
function cutApart(texts: readonly string[], others: readonly string[] = []): string[] {
  if (texts.every(({ length }) => length <= shownLength)) return [...texts]
  const ends = texts.map((text) => Math.max(-1, ...others.map((other) => sameStart(text, other))))
  return texts.map((text) => {
    const places = texts.flatMap((other, index) => {
      const same = sameStart(text, other)
      // Where the other text leaves those that are not shown: up to there, this one is the same.
      const end = ends[index] ?? -1
      return [...(text === other ? [] : [same]), ...(end >= 0 && end <= same ? [end] : [])]
    })
    return cutAt(
      text,
      [...new Set(places)].sort((one, other) => one - other),
    )
  })
}

function sameStart(one: string, other: string): number {
  const most = Math.min(one.length, other.length)
  let same = 0
  while (same < most && one[same] === other[same]) same += 1
  return same
}

/** @param places to be shown, in order */
function cutAt(text: string, places: readonly number[]): string {
  const [first = 0] = places
  const parts = [{ start: first + context < shownLength ? 0 : first - context, end: first + context }]
  for (const place of places.slice(1)) {
    const last = parts.at(-1)
    if (last === undefined || place - context > last.end) parts.push({ start: place - context, end: place + context })
    else last.end = place + context
  }
  const [left, last] = [shownLength - parts.reduce((sum, { start, end }) => sum + end - start, 0), parts.at(-1)]
  if (last !== undefined && left > 0) last.end += left
  const shown = parts.map(({ start, end }) => text.slice(whole(text, start, -1), whole(text, end, 1))).join('…')
  return `${parts[0]?.start === 0 ? '' : '…'}${shown}${(last?.end ?? 0) < text.length ? '…' : ''}`
}

/** A character of two units is not cut in its middle. @returns the place, or the one beside it */
const whole = (text: string, at: number, step: 1 | -1): number =>
  at > 0 && at < text.length && /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1)) ? at + step : at
