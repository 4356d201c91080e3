import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { isSilent, type KnownProcess, readProcesses } from '../db/presence.ts'
import { activeRuns } from '../queue/active.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import type { Progress } from '../queue/define.ts'
import { readPause } from '../queue/pause.ts'
import { readNow } from '../runs/changes.ts'
import { Conditions } from './conditions.ts'
import { progressEvent, runningEvent, type StreamEvent } from './event.ts'
import type { Reader } from './reader.ts'

/**
 * How things stand now: which runs are at work and how far, whether the queue is paused, which workers there are. Each
 * reader is told at its start, and then what is other than before. A reader that comes back is told all of it again.
 */

/** A run that is at work for so long is `running`. */
export const shownAfterMs = 1_000
const [runsEveryMs, partsEveryMs] = [1_000, 2_000]

type Parts = { readonly db: Db; readonly queue: ApplyQueue }
type Paced = <Result>(read: () => Promise<Result>) => Promise<Result>

export class Present {
  readonly #parts: Parts
  readonly #paced: Paced
  /** When a job was first seen at work, by run and attempt. */
  #since = new Map<string, number>()
  /** The last that each reader was told of each thing, as text. */
  #told = new Map<Reader, Map<string, string>>()
  /** The queue and the workers, as they were last read: what there is, and its event. */
  #things = new Map<string, StreamEvent>()
  #runsAt = Number.NEGATIVE_INFINITY
  #partsAt = Number.NEGATIVE_INFINITY

  /** @param paced limits how often the database is read */
  constructor(parts: Parts, paced: Paced) {
    this.#parts = parts
    this.#paced = paced
  }

  async tell(readers: readonly Reader[]): Promise<void> {
    // A reader may have left while something was read for it.
    const here = new Set(readers)
    for (const reader of this.#told.keys()) if (!here.has(reader)) this.#told.delete(reader)
    const now = performance.now()
    if (now - this.#runsAt >= runsEveryMs) {
      this.#runsAt = now
      await this.#tellRuns(readers)
    }
    const operators = readers.filter(({ seesQueue }) => seesQueue)
    if (operators.length === 0) return
    if (now - this.#partsAt >= partsEveryMs) {
      this.#partsAt = now
      await this.#readParts()
    }
    for (const reader of operators)
      for (const [what, event] of this.#things) this.#tellOnce(reader, what, event.data, [event])
  }

  forget(reader: Reader): void {
    this.#told.delete(reader)
  }

  reset(): void {
    this.#since.clear()
    this.#things.clear()
    this.#partsAt = Number.NEGATIVE_INFINITY
    this.#runsAt = Number.NEGATIVE_INFINITY
  }

  async #tellRuns(readers: readonly Reader[]): Promise<void> {
    // While the queue is away, nothing is told of what is at work.
    const active = await activeRuns(this.#parts.queue).catch(() => undefined)
    if (active === undefined) return
    const now = performance.now()
    const keyOf = ({ run, attempt }: { run: string; attempt: number }) => `${run} ${attempt}`
    this.#since = new Map(active.map((each) => [keyOf(each), this.#since.get(keyOf(each)) ?? now]))
    const atWork = active.filter((each) => now - (this.#since.get(keyOf(each)) ?? now) >= shownAfterMs)
    if (atWork.length === 0) return
    const conditions = new Conditions(readers)
    const progressOf = new Map<string, Progress | null>(atWork.map(({ run, progress }) => [run, progress]))
    const rows = await this.#paced(() => readNow(this.#parts.db, [...progressOf.keys()], conditions.all))
    const locked = rows.filter(({ isLocked }) => isLocked)
    for (const reader of readers)
      for (const row of conditions.seenBy(reader, locked)) {
        const progress = progressOf.get(row.id) ?? null
        const what = `run ${row.id} ${row.attempts}`
        this.#tellOnce(reader, what, '', [runningEvent(row, progress)])
        if (progress !== null)
          this.#tellOnce(reader, `${what} progress`, JSON.stringify(progress), [progressEvent(row.id, progress)])
      }
    this.#forgetRuns(new Set(locked.map(({ id, attempts }) => `run ${id} ${attempts}`)))
  }

  /** Of runs that are at work no more, nothing needs to be kept. */
  #forgetRuns(kept: ReadonlySet<string>): void {
    for (const told of this.#told.values())
      for (const what of told.keys())
        if (what.startsWith('run ') && !kept.has(what.replace(/ progress$/, ''))) told.delete(what)
  }

  async #readParts(): Promise<void> {
    const { db, queue } = this.#parts
    const pause = await readPause(queue, db).catch(() => undefined)
    if (pause !== undefined) {
      const { name: by = null, since, reason = null } = pause?.by ?? {}
      const data = { paused: pause !== null, by, since: since?.toISOString() ?? null, reason }
      this.#things.set('queue', { event: 'queue', data: JSON.stringify(data) })
    }
    const workers = await this.#paced(() => inTime(readProcesses(db, 'workers')))
    const known = new Set(workers.map(({ id }) => `worker ${id}`))
    for (const each of workers)
      this.#things.set(`worker ${each.id}`, workerEvent(each, isSilent(each) ? 'silent' : 'heard'))
    for (const [what, { data }] of this.#things)
      if (what.startsWith('worker ') && !known.has(what))
        this.#things.set(what, { event: 'worker', data: JSON.stringify({ ...JSON.parse(data), state: 'gone' }) })
  }

  #tellOnce(reader: Reader, what: string, state: string, events: readonly StreamEvent[]): void {
    const told = this.#told.get(reader) ?? new Map<string, string>()
    this.#told.set(reader, told)
    if (told.get(what) === state) return
    told.set(what, state)
    void reader.send(events)
  }
}

const workerEvent = (worker: KnownProcess, state: 'heard' | 'silent'): StreamEvent => ({
  event: 'worker',
  data: JSON.stringify({
    ...{ id: worker.id, host: worker.host, version: worker.version, format: worker.format, slots: worker.slots },
    ...{ started_at: worker.startedAt.toISOString(), state },
  }),
})
