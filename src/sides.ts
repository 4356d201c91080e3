import { isDeepStrictEqual } from 'node:util'

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
  const removed = lacking(from, to)
  const added = lacking(to, from)
  return removed.length + added.length === 0 ? null : { removed: cutList(removed), added: cutList(added) }
}

/** Each item as often as it is missing in `others`. */
function lacking(items: readonly unknown[], others: readonly unknown[]): unknown[] {
  const left = [...others]
  return items.filter((item) => {
    const at = left.findIndex((other) => isDeepStrictEqual(other, item))
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

function cutList(items: readonly unknown[]): string[] {
  const more = items.length - maxItems
  const shown = items.slice(0, maxItems).map((item) => cutAt(asJson(item), 0))
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
