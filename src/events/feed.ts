import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../db/client.ts'
import { isConnectionLost } from '../db/errors.ts'
import { noAnswer } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import { causeOf, type Logger } from '../log.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { readChanges } from '../runs/changes.ts'
import { before, isVisible, type Snapshot } from '../runs/positions.ts'
import type { Runs } from '../runs/subscribe.ts'
import { limitTime } from '../time-limit.ts'
import { Conditions } from './conditions.ts'
import { eventsOf, longestAwayS, type RunEvent, type StreamEvent } from './event.ts'
import { Present } from './present.ts'
import type { Reader } from './reader.ts'

export type Joined = {
  /** What was visible before the first event, unless it is behind. */
  readonly position: Snapshot
  readonly now: Date
  /** It is sent what it has missed. */
  readonly isBehind: boolean
  /** Why it could not go on where it was. */
  readonly reset: 'too_old' | 'unknown_id' | null
}

type Cursor = { readonly after: bigint; readonly atS: number }
type Live = { readonly reader: Reader; held: StreamEvent[] | undefined }
type Joining = {
  readonly reader: Reader
  readonly cursor: Cursor | null
  resolve(joined: Joined): void
  reject(error: Problem): void
  readonly isOver: () => boolean
}
type Batch = {
  readonly events: readonly RunEvent[]
  readonly conditions: Conditions
  readonly position: Snapshot
  readonly now: Date
  readonly written: bigint
}
/** Readers that were away, and what they missed. `until`: from there on they get what all get. */
type CatchingUp = {
  readonly members: readonly { readonly live: Live; readonly after: bigint; readonly until: Snapshot }[]
  from: Snapshot
  isWaiting: boolean
}

/** Ten reads a second, all together. */
const readEveryMs = 100
/** What is recorded is not notified of. */
const pollEveryMs = 300
const againAfterMs = 1_000
const joinsWithinMs = 5_000
/** Events that wait for a reader that catches up. */
const mostHeld = 2_000

const closing = () => new Problem('unavailable', 'The server is stopping. Try again shortly.', { retryAfterS: 1 })

type Parts = { readonly db: Db; readonly runs: Runs; readonly queue: ApplyQueue; readonly log: Logger }

/**
 * The events of the ledger for all readers of this process: one loop, which reads at most ten times a second whatever the
 * number of readers, and not at all without any. A read asks for each run which of the readers may see it.
 */
export class Feed {
  readonly #parts: Parts
  readonly #present: Present
  readonly #live = new Map<Reader, Live>()
  #joining: Joining[] = []
  #catchingUp: CatchingUp[] = []
  #conditions = new Conditions([])
  #areConditionsOld = false
  /** What was sent last, after PostgreSQL had it on disk. */
  #told: Batch | undefined
  #read: Snapshot | undefined
  /** Where the present row of portions began. */
  #since: Snapshot | undefined
  #pending: Batch[] = []
  #loop: Promise<void> | undefined
  #isClosed = false
  #wake: () => void = () => {}
  #readAt = Number.NEGATIVE_INFINITY

  constructor(parts: Parts) {
    this.#parts = parts
    this.#present = new Present(parts, (read) => this.#paced(read))
  }

  /**
   * Sends a reader all events from now on, or from where it was, until it leaves.
   *
   * @param id the last that it has seen; null for none
   * @throws {Problem} `unavailable` when the database is away
   */
  async join(reader: Reader, cursor: Cursor | 'unknown' | null): Promise<Joined> {
    if (this.#isClosed) throw closing()
    const { promise, resolve, reject } = Promise.withResolvers<Joined>()
    let isOver = false
    const joining = { reader, cursor: cursor === 'unknown' ? null : cursor, resolve, reject, isOver: () => isOver }
    this.#joining.push(joining)
    this.#start()
    this.#wake()
    const joined = await limitTime(promise, joinsWithinMs, () => {
      isOver = true
      throw noAnswer()
    })
    return cursor === 'unknown' ? { ...joined, reset: 'unknown_id' } : joined
  }

  leave(reader: Reader): void {
    this.#live.delete(reader)
    this.#present.forget(reader)
    if (this.#live.size === 0) this.#wake()
  }

  /** What the reader may see is another than before. */
  conditionChanged(): void {
    this.#areConditionsOld = true
  }

  /** Up to where a reader has all events; undefined while it catches up. */
  placeOf(reader: Reader): { readonly position: Snapshot; readonly now: Date } | undefined {
    const live = this.#live.get(reader)
    return live === undefined || live.held !== undefined ? undefined : this.#told
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const { reject } of this.#joining.splice(0)) reject(closing())
    this.#wake()
    await this.#loop
  }

  #start(): void {
    if (this.#isClosed) return
    this.#loop ??= this.#work().finally(() => {
      this.#loop = undefined
      if (this.#joining.length > 0) this.#start()
    })
  }

  async #work(): Promise<void> {
    const stop = this.#parts.runs.onEnd(() => this.#wake())
    this.#told = undefined
    this.#forgetRead()
    try {
      while (!this.#isClosed && (this.#live.size > 0 || this.#joining.length > 0)) await this.#round()
    } finally {
      stop()
      this.#present.reset()
      this.#catchingUp = []
    }
  }

  async #round(): Promise<void> {
    try {
      this.#admit()
      const isPart = await this.#readLive()
      const isCatchingUp = await this.#catchUp()
      await this.#present.tell(
        [...this.#live.values()].flatMap(({ reader, held }) => (held === undefined ? reader : [])),
      )
      if (!isPart && !isCatchingUp) await this.#pause(this.#pending.length > 0 ? readEveryMs : pollEveryMs)
    } catch (error) {
      if (!isConnectionLost(error) && !(error instanceof Problem))
        this.#parts.log.error({ err: error }, 'cannot read events')
      else this.#parts.log.debug({ cause: causeOf(error) }, 'cannot read events')
      // A crash of PostgreSQL may give numbers of transactions again that were not on disk.
      this.#forgetRead()
      await this.#pause(againAfterMs)
    }
  }

  #forgetRead(): void {
    this.#pending = []
    this.#read = this.#told?.position
    this.#since = this.#told?.position
  }

  /** Takes in who has come. What was read for the others is read again, for all. */
  #admit(): void {
    const { position, now } = this.#told ?? {}
    if (position === undefined || now === undefined) return
    const coming = this.#joining.filter(({ isOver }) => !isOver())
    this.#joining = []
    if (coming.length === 0 && !this.#areConditionsOld) return
    const members = coming.flatMap(({ reader, cursor, resolve }) => {
      const reset = cursor === null ? null : whyReset(cursor, position, now)
      const isBehind = cursor !== null && reset === null
      const live: Live = { reader, held: isBehind ? [] : undefined }
      this.#live.set(reader, live)
      resolve({ position, now, isBehind, reset })
      return isBehind ? [{ live, after: cursor.after, until: position }] : []
    })
    if (members.length > 0) {
      const least = members.reduce((found, { after }) => (after < found ? after : found), position.max)
      this.#catchingUp.push({ members, from: before(least), isWaiting: false })
    }
    this.#areConditionsOld = false
    this.#conditions = new Conditions([...this.#live.keys()])
    this.#forgetRead()
  }

  /** @returns whether there is more */
  async #readLive(): Promise<boolean> {
    const { db } = this.#parts
    const conditions = this.#conditions
    // Beyond all transactions: only where things stand.
    const from = this.#read ?? before(2n ** 62n)
    const changes = await this.#paced(() => readChanges(db, from, conditions.all))
    const { position, now, written, isPart } = changes
    const events = this.#read === undefined ? [] : eventsOf(changes, this.#since ?? from)
    this.#pending.push({ events, conditions, position, now, written })
    this.#read = position
    if (!isPart) this.#since = position
    while (this.#pending[0] !== undefined && this.#pending[0].written <= changes.flushed) {
      const batch = this.#pending.shift()
      if (batch !== undefined) this.#tell(batch)
    }
    return isPart
  }

  #tell(batch: Batch): void {
    this.#told = batch
    if (batch.events.length === 0) return
    for (const live of this.#live.values()) {
      const seen = batch.conditions.seenBy(live.reader, batch.events)
      if (seen.length === 0) continue
      if (live.held === undefined) void live.reader.send(seen)
      else if (live.held.length + seen.length > mostHeld) live.reader.tooSlow()
      else live.held.push(...seen)
    }
  }

  /** Reads a portion of what readers have missed. @returns whether there is more to read at once */
  async #catchUp(): Promise<boolean> {
    const group = this.#catchingUp.find(({ isWaiting }) => !isWaiting)
    if (group === undefined) return false
    const members = group.members.filter(({ live }) => this.#live.get(live.reader) === live)
    if (members.length === 0) {
      this.#catchingUp.splice(this.#catchingUp.indexOf(group), 1)
      return false
    }
    const conditions = new Conditions(members.map(({ live }) => live.reader))
    const changes = await this.#paced(() => readChanges(this.#parts.db, group.from, conditions.all))
    const events = eventsOf(changes, null)
    const sent = members.map(({ live, after, until }) =>
      live.reader.send(
        conditions
          .seenBy(live.reader, events)
          .filter(({ place, transaction }) => place >= after && isVisible(until, transaction)),
      ),
    )
    group.from = changes.position
    if (changes.isPart) {
      group.isWaiting = true
      void Promise.all(sent).finally(() => {
        group.isWaiting = false
        this.#wake()
      })
      return this.#catchingUp.some(({ isWaiting }) => !isWaiting)
    }
    this.#catchingUp.splice(this.#catchingUp.indexOf(group), 1)
    for (const { live } of members) {
      void live.reader.send(live.held ?? [])
      live.held = undefined
    }
    return this.#catchingUp.length > 0
  }

  /** No read starts sooner than a tenth of a second after the one before it. */
  async #paced<Result>(read: () => Promise<Result>): Promise<Result> {
    const waitMs = this.#readAt + readEveryMs - performance.now()
    if (waitMs > 0) await delay(waitMs, undefined, { ref: false })
    this.#readAt = performance.now()
    return read()
  }

  async #pause(forMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = setTimeout(resolve, forMs)
    timer.unref()
    await promise
    clearTimeout(timer)
    this.#wake = () => {}
  }
}

/** An id that this database cannot have given is of another one, or of a time that was taken back. */
function whyReset({ after, atS }: Cursor, { max }: Snapshot, now: Date): Joined['reset'] {
  if (after > max) return 'unknown_id'
  return now.getTime() / 1_000 - atS > longestAwayS ? 'too_old' : null
}
