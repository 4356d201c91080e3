import { createHash } from 'node:crypto'
import { base62 } from '../../src/ids.ts'

/**
 * Reproducible random numbers (sfc32, https://pracrand.sourceforge.net/RNG_engines.txt). Each row has a generator of its
 * own, from the seed, the stream and the row's number, so a row does not depend on those before it.
 */
export class Random {
  #a: number
  #b: number
  #c: number
  #d: number

  constructor(key: Key, unit: number) {
    this.#a = key[0]
    this.#b = key[1] ^ unit
    this.#c = key[2]
    this.#d = 1
    // Spreads the row's number over all bits.
    for (let round = 0; round < 12; round += 1) this.#next()
  }

  #next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#d) | 0
    this.#d = (this.#d + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** A number from 0 up to 1. */
  fraction(): number {
    return this.#next() / 2 ** 32
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit)
  }

  /** The same as `below`, but low numbers are more frequent. */
  skewed(limit: number): number {
    return Math.floor(this.fraction() ** 2 * limit)
  }

  chance(probability: number): boolean {
    return this.fraction() < probability
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[this.below(items.length)] ?? items[0]
  }

  text(length: number, alphabet: string = base62): string {
    let text = ''
    for (let count = 0; count < length; count += 1) text += alphabet[this.below(alphabet.length)]
    return text
  }

  /** Version 4. @param at makes it version 7, of that time */
  uuid(at?: Date): string {
    const bytes = Buffer.alloc(16)
    for (let offset = 0; offset < 16; offset += 4) bytes.writeUInt32BE(this.#next(), offset)
    if (at !== undefined) bytes.writeUIntBE(at.getTime(), 0, 6)
    bytes[6] = (at === undefined ? 0x40 : 0x70) | ((bytes[6] ?? 0) & 0x0f)
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
    const hex = bytes.toString('hex')
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
  }
}

type Key = readonly [number, number, number]

/** @param name of the stream: streams of one seed are independent */
export function stream(seed: number, name: string): (unit: number) => Random {
  const digest = createHash('sha256').update(`gatewright seed ${seed} ${name}`).digest()
  const key: Key = [digest.readInt32BE(0), digest.readInt32BE(4), digest.readInt32BE(8)]
  return (unit) => new Random(key, unit)
}
