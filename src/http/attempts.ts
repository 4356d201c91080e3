import { setImmediate, setTimeout } from 'node:timers/promises'
import { inTime } from '../db/in-time.ts'

/** Of one address, of tokens that have not been valid before. The others wait for their turn. */
const atOnce = 8
/** Tokens that were valid. Beyond it, the oldest is forgotten. */
const remembered = 10_000
const batch = { everyMs: 1_000, tokens: 1_000 } as const

type Door = { inside: number; readonly waiting: Set<() => void> }

type UnderWay = {
  /** Whether the token is looked up: false when it was judged without. Rejects when it came to neither. */
  readonly begun: Promise<boolean>
  /** Whether the token is valid; null when that is not known. */
  readonly outcome: Promise<boolean | null>
  /** Those who come in the same turn are looked up together with it. A later one may know of a change since then. */
  isJoined: boolean
}

type Limits = {
  /** Failures of one address within a window, after which its attempts cost no query of their own. */
  readonly max: number
  readonly windowMs: number
  readonly validOf: ValidOf
}

/** @returns those of the digests whose tokens authenticate */
export type ValidOf = (digests: readonly string[]) => Promise<ReadonlySet<string>>

/**
 * Attempts to authenticate, in this process. A token that was valid before is looked up at once. Others of one address are
 * looked up a few at a time, and count when they fail. After too many, one query a second judges those of all such
 * addresses together: a wrong one costs no query, and a valid one waits for a second at most, once.
 */
export class Attempts {
  readonly #limits: Limits
  readonly #valid = new Set<string>()
  readonly #underWay = new Map<string, UnderWay>()
  readonly #doors = new Map<string, Door>()
  #failures = new Map<string, number>()
  #windowEndsAt = 0
  #next: { readonly digests: Set<string>; readonly valid: Promise<ReadonlySet<string>> } | null = null
  #judgedAt = Number.NEGATIVE_INFINITY

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** @param digest of the token @param ask looks the token up @returns null for a token that does not authenticate */
  async authenticate<Found>(address: string, digest: string, ask: () => Promise<Found | null>): Promise<Found | null> {
    if (this.#valid.has(digest)) return this.#ask(address, digest, ask)
    const first = this.#underWay.get(digest)
    if (first === undefined) return this.#first(address, digest, ask)
    const isValid = await (first.isJoined ? first.begun : first.outcome)
    return isValid === false ? null : this.#ask(address, digest, ask)
  }

  /** Whether a failed attempt of this address may cost another query. */
  mayAsk(address: string): boolean {
    return !this.#hasFailed(address)
  }

  /** The first of several with the same token at the same time. */
  async #first<Found>(address: string, digest: string, ask: () => Promise<Found | null>): Promise<Found | null> {
    const [begun, outcome] = [Promise.withResolvers<boolean>(), Promise.withResolvers<boolean | null>()]
    begun.promise.catch(() => {})
    const attempt: UnderWay = { begun: begun.promise, outcome: outcome.promise, isJoined: true }
    const begin = () => {
      begun.resolve(true)
      void setImmediate().then(() => {
        attempt.isJoined = false
      })
      return ask()
    }
    this.#underWay.set(digest, attempt)
    try {
      const found = await this.#attempt(address, digest, begin)
      begun.resolve(false)
      outcome.resolve(found !== null)
      return found
    } catch (error) {
      begun.reject(error)
      throw error
    } finally {
      outcome.resolve(null)
      this.#underWay.delete(digest)
    }
  }

  async #attempt<Found>(address: string, digest: string, ask: () => Promise<Found | null>): Promise<Found | null> {
    if (!this.#hasFailed(address)) {
      const leave = await this.#enter(address)
      try {
        // Those before it may have failed meanwhile.
        if (!this.#hasFailed(address)) return await this.#ask(address, digest, ask)
      } finally {
        leave()
      }
    }
    return (await this.#isValid(digest)) ? this.#ask(address, digest, ask) : null
  }

  async #ask<Found>(address: string, digest: string, ask: () => Promise<Found | null>): Promise<Found | null> {
    const found = await ask()
    this.#valid.delete(digest)
    if (found === null) this.#failures.set(address, (this.#failures.get(address) ?? 0) + 1)
    else this.#valid.add(digest)
    for (const forgotten of [this.#valid, this.#failures])
      if (forgotten.size > remembered) for (const oldest of forgotten.keys().take(1)) forgotten.delete(oldest)
    return found
  }

  #hasFailed(address: string): boolean {
    const now = performance.now()
    if (now >= this.#windowEndsAt) {
      this.#failures = new Map()
      this.#windowEndsAt = now + this.#limits.windowMs
    }
    return (this.#failures.get(address) ?? 0) >= this.#limits.max
  }

  async #enter(address: string): Promise<() => void> {
    const door = this.#doors.getOrInsertComputed(address, () => ({ inside: 0, waiting: new Set() }))
    if (door.inside < atOnce) door.inside += 1
    else {
      const { promise, resolve } = Promise.withResolvers<void>()
      door.waiting.add(resolve)
      try {
        await inTime(promise)
      } finally {
        door.waiting.delete(resolve)
      }
    }
    return () => {
      const [next] = door.waiting
      if (next !== undefined) {
        door.waiting.delete(next)
        next()
        return
      }
      door.inside -= 1
      if (door.inside === 0) this.#doors.delete(address)
    }
  }

  /** Together with the others that came since the last time. Of more than a query takes, the rest is refused. */
  async #isValid(digest: string): Promise<boolean> {
    this.#next ??= this.#openBatch()
    const { digests, valid } = this.#next
    if (digests.size >= batch.tokens && !digests.has(digest)) return false
    digests.add(digest)
    return (await valid).has(digest)
  }

  #openBatch() {
    const digests = new Set<string>()
    const pauseMs = Math.max(0, this.#judgedAt + batch.everyMs - performance.now())
    const valid = setTimeout(pauseMs).then(() => {
      this.#next = null
      this.#judgedAt = performance.now()
      return inTime(this.#limits.validOf([...digests]))
    })
    return { digests, valid }
  }
}
