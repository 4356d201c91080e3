/** The two sides of a change as texts for people: lists by their items, and long texts from where they differ. */

/** Characters of one side at most, without its ellipses. */
const shownLength = 60
/** Characters before the first difference. */
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
  return removed.length + added.length === 0 ? null : { removed: cutList(removed), added: cutList(added) }
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

function cutList(items: readonly string[]): string[] {
  const more = items.length - maxItems
  const shown = items.slice(0, maxItems).map((item) => cutAt(item, 0))
  return more > 0 ? [...shown, `${more} more`] : shown
}

/** Both texts from the same place, so that what differs is seen. */
export function cutSides(from: string, to: string): readonly [string, string] {
  if (from.length <= shownLength && to.length <= shownLength) return [from, to]
  let same = 0
  while (same < Math.min(from.length, to.length) && from[same] === to[same]) same += 1
  const start = same + context < shownLength ? 0 : Math.max(0, same - context)
  return [cutAt(from, start), cutAt(to, start)]
}

function cutAt(text: string, start: number): string {
  const part = text.slice(start, start + shownLength)
  return `${start > 0 ? '…' : ''}${part}${start + shownLength < text.length ? '…' : ''}`
}
