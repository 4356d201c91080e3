import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../db/client.ts'
import { isConnectionLost } from '../db/errors.ts'
import { Problem } from '../errors.ts'
import { causeOf, type Logger } from '../log.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { type Now, parseRevision, readNow, textOf } from './revision.ts'

type Parts = { readonly db: Db; readonly queue: ApplyQueue; readonly log: Logger }

/** A waiter. `known` is the state of the run, or the digest of the revision. `resolve` gets the new one. */
type Waiter = { readonly run?: string; readonly known: string; readonly resolve: (now?: Now) => void }

/** The state of a run, as a text, in a snapshot. */
export type Standing = { readonly run: string; readonly known: string; readonly snapshot: string }

/** Asks the database and the queue at intervals for all waiters of this process, and not at all without any. */
export class Watch {
  readonly #parts: Parts
  readonly #everyMs: number
  readonly #waiters = new Set<Waiter>()
  /** The snapshot of the last question: the next one asks for changes since then. */
  #since: string | undefined
  #loop: Promise<void> | undefined
  readonly #closing = new AbortController()

  constructor(parts: Parts, everyMs: number) {
    this.#parts = parts
    this.#everyMs = everyMs
  }

  /** @throws {Problem} `unavailable` when the database does not answer */
  async standing(run: string): Promise<Standing> {
    const now = await readNow(this.#parts, null, [run])
    return { run, known: standingIn(now, run), snapshot: now.snapshot }
  }

  /** Waits until the run has another state, time is up, or the signal comes. @returns whether it has */
  async untilRunChanged({ run, known, snapshot }: Standing, forMs: number, signal: AbortSignal): Promise<boolean> {
    return (await this.#wait({ run, known }, snapshot, forMs, signal)) !== undefined
  }

  /**
   * Waits until the revision is another one, time is up, or the signal comes. It may be another one without a difference that
   * the caller sees.
   *
   * @param since a revision; without one, and with one of another installation, nothing is waited for
   * @returns the revision, older than anything that is read afterwards
   * @throws {Problem} `unavailable` when the database does not answer
   */
  async untilChanged(since: string | undefined, forMs: number, signal: AbortSignal): Promise<string> {
    const known = since === undefined ? undefined : parseRevision(since)
    const now = await readNow(this.#parts, known?.snapshot ?? null, [])
    if (now.isChanged || now.digest !== known?.digest || forMs <= 0) return textOf(now)
    return textOf((await this.#wait({ known: now.digest }, now.snapshot, forMs, signal)) ?? now)
  }

  /** Ends all waits. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const { resolve } of this.#waiters) resolve()
    await this.#loop
  }

  /** @returns the new state, once it is another one */
  async #wait(
    waiting: Omit<Waiter, 'resolve'>,
    snapshot: string,
    forMs: number,
    signal: AbortSignal,
  ): Promise<Now | undefined> {
    if (this.#closing.signal.aborted || signal.aborted) return undefined
    const { promise, resolve } = Promise.withResolvers<Now | undefined>()
    const waiter: Waiter = { ...waiting, resolve }
    if (this.#waiters.size === 0) this.#since = snapshot
    this.#waiters.add(waiter)
    this.#loop ??= this.#work()
    const timer = setTimeout(resolve, forMs, undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    const now = await promise
    clearTimeout(timer)
    this.#waiters.delete(waiter)
    return now
  }

  async #work(): Promise<void> {
    const { signal } = this.#closing
    while (this.#waiters.size > 0) {
      await delay(this.#everyMs, undefined, { ref: false, signal }).catch(() => {})
      if (signal.aborted) break
      if (this.#waiters.size > 0) await this.#ask()
    }
    this.#loop = undefined
  }

  async #ask(): Promise<void> {
    const runs = new Set([...this.#waiters].flatMap(({ run }) => run ?? []))
    try {
      const now = await readNow(this.#parts, this.#since ?? null, [...runs])
      this.#since = now.snapshot
      for (const { run, known, resolve } of this.#waiters) {
        if (run === undefined ? now.isChanged || now.digest !== known : runs.has(run) && standingIn(now, run) !== known)
          resolve(now)
      }
    } catch (error) {
      if (error instanceof Problem || isConnectionLost(error))
        this.#parts.log.debug({ cause: causeOf(error) }, 'cannot ask what has changed')
      else this.#parts.log.error({ err: error }, 'cannot ask what has changed')
    }
  }
}

/** The state of a run: '' when it is gone. */
const standingIn = ({ runs }: Now, run: string): string => runs.get(run) ?? ''
