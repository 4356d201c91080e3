/** A seeded source of all that is random in one simulation. */
export type Random = {
  /** A number from 0, below 1. */
  next(): number
  chance(probability: number): boolean
  /** A number from `least`, below `most`. */
  between(least: number, most: number): number
  /** A whole number, both ends included. */
  whole(least: number, most: number): number
  pick<Item>(items: readonly [Item, ...Item[]]): Item
}

/** Mulberry32: 32 bits of state are enough for a few thousand draws. */
export function seeded(seed: number): Random {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const whole = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    whole,
    chance: (probability) => probability > 0 && next() < probability,
    between: (least, most) => least + next() * (most - least),
    pick: (items) => items[whole(0, items.length - 1)] ?? items[0],
  }
}
