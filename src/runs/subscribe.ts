import pg from 'pg'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { isConnectionLost, isTransient } from '../db/errors.ts'
import { inTime } from '../db/in-time.ts'
import { repeat } from '../db/rounds.ts'
import type { Logger } from '../log.ts'
import { type AwaitedRun, notifiedRun, readRuns, runChannel } from './ended.ts'
import { lockedRuns } from './ledger.ts'
import { isFinished } from './life.ts'

/**
 * Waits for the ends of runs. A waiting request gets the contents of the row: NOTIFY brings a copy that PostgreSQL made of it, or a
 * poll reads it, because a notification may get lost.
 */

/** A finished run; `vanished` when there is none, for example after a crash of PostgreSQL. */
export type RunEnd = AwaitedRun | 'vanished'

type Wait = {
  readonly budgetMs: number
  /** Whether the caller has just recorded the run: its present state is not read. */
  readonly isQueued?: boolean
  /** Ends the wait. */
  readonly stop?: AbortSignal
}

export type Runs = {
  /** @returns undefined when the run has not ended in time, and when the wait was stopped */
  untilEnd(id: string, wait: Wait): Promise<RunEnd | undefined>
  close(): Promise<void>
}

/** Milliseconds between two reads of one run: few at first, then more. */
const pollAfterMs = [200, 200, 400, 800, 1_000] as const
const tickMs = 50

type Followed = { polls: number; pollAt: number; readonly waiting: Set<(run: RunEnd) => void> }

export function followRuns(db: Db, url: string, log: Logger): Runs {
  const followed = new Map<string, Followed>()
  const woken = new Set<string>()
  const listener = listen(url, log, (payload) => {
    const run = notifiedRun(payload)
    if (typeof run === 'object') report(run.id, run)
    else if (run !== undefined) wake(run)
  })
  let ticker: NodeJS.Timeout | undefined

  /** Reads the run now, if it is waited for. */
  function wake(id: string): void {
    if (!followed.has(id)) return
    // Runs that are woken together are read together.
    if (woken.size === 0)
      setImmediate(() => {
        void read([...woken])
        woken.clear()
      })
    woken.add(id)
  }

  async function read(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    // The next poll reads again after a failed read.
    const rows = await inTime(readRuns(db, ids)).catch((error: unknown) => {
      if (!isConnectionLost(error)) log.error({ err: error }, 'cannot read runs')
    })
    if (rows === undefined) return
    const found = new Map(rows.map((run) => [run.id, run]))
    for (const id of ids) report(id, found.get(id) ?? 'vanished')
  }

  function report(id: string, run: RunEnd): void {
    if (run !== 'vanished' && !isFinished(run.state)) return
    for (const end of followed.get(id)?.waiting ?? []) end(run)
    followed.delete(id)
  }

  function poll(): void {
    if (followed.size === 0) {
      clearInterval(ticker)
      ticker = undefined
      return
    }
    const now = performance.now()
    const toPoll = [...followed].filter(([, { pollAt }]) => pollAt <= now)
    for (const [, each] of toPoll) {
      each.pollAt = now + (pollAfterMs[each.polls] ?? 1_000)
      each.polls += 1
    }
    void read(toPoll.map(([id]) => id))
  }

  return {
    untilEnd: async (id, { budgetMs, isQueued = false, stop }) => {
      const fresh = () => ({ polls: 0, pollAt: performance.now() + pollAfterMs[0], waiting: new Set<() => void>() })
      const { waiting } = followed.getOrInsertComputed(id, fresh)
      const { promise, resolve } = Promise.withResolvers<RunEnd | undefined>()
      waiting.add(resolve)
      ticker ??= setInterval(poll, tickMs).unref()
      if (!isQueued) wake(id)
      const timer = setTimeout(resolve, budgetMs, undefined)
      stop?.addEventListener('abort', () => resolve(undefined))
      const run = await promise
      clearTimeout(timer)
      waiting.delete(resolve)
      if (waiting.size === 0 && followed.get(id)?.waiting === waiting) followed.delete(id)
      return run
    },
    close: async () => {
      clearInterval(ticker)
      await listener.close()
    },
  }
}

/**
 * The end of the wait for a run: the finished run; `cancelled` or `vanished`, both certainly not applied; `locked` by a worker;
 * `unknown` because the database is away.
 */
export type WaitResult = AwaitedRun | 'cancelled' | 'vanished' | 'locked' | 'unknown'

/** A cancel waits for a worker that has locked the run. */
export const longestCancelMs = 2_500

/**
 * Waits for a run that another request has submitted: that request cancels it, should it take too long.
 *
 * @returns `locked` when a worker has it and has not ended in time, `waiting` when none has it yet
 */
export async function awaitOther(db: Db, runs: Runs, id: string, budgetMs: number): Promise<WaitResult | 'waiting'> {
  const run = await runs.untilEnd(id, { budgetMs })
  if (run !== undefined) return run
  const locked = await inTime(lockedRuns(db, [id])).catch(() => undefined)
  if (locked === undefined) return 'unknown'
  return locked.has(id) ? 'locked' : 'waiting'
}

/** @param cancel cancels the run in a transaction; returns whether it did */
export async function cancelOrRead(
  db: Db,
  id: string,
  cancel: (tx: Tx) => Promise<boolean>,
  cancelMs = longestCancelMs,
): Promise<WaitResult> {
  const timeouts = { lockMs: Math.ceil(cancelMs * 0.8), statementMs: Math.ceil(cancelMs) }
  try {
    if (await transaction(db, cancel, { timeouts })) return 'cancelled'
    const [run] = await inTime(readRuns(db, [id]))
    if (run === undefined) return 'vanished'
    return isFinished(run.state) ? run : 'unknown'
  } catch (error) {
    if (isConnectionLost(error)) return 'unknown'
    if (isTransient(error)) return 'locked'
    throw error
  }
}

const pingEveryMs = 5_000
const pingTimeoutMs = 3_000

/** Listens on one connection, which is opened again when it is lost. */
function listen(url: string, log: Logger, onPayload: (payload: string) => void): { close(): Promise<void> } {
  let client: pg.Client | undefined
  let isClosed = false
  let isLost = false

  /** Listens. @throws when the connection is lost */
  async function session(): Promise<never> {
    const { promise: lost, reject } = Promise.withResolvers<never>()
    client = new pg.Client({
      connectionString: url,
      application_name: 'gatewright-listen',
      keepAlive: true,
      connectionTimeoutMillis: 2_000,
      query_timeout: pingTimeoutMs,
    })
    client.on('notification', ({ payload = '' }) => onPayload(payload))
    client.on('error', reject)
    client.on('end', reject)
    let pinging: NodeJS.Timeout | undefined
    try {
      await Promise.race([client.connect(), lost])
      await client.query(`LISTEN ${runChannel}`)
      if (isLost) log.info('listening for the ends of runs again')
      isLost = false
      // A connection that died silently gets nothing, and reports nothing.
      pinging = setInterval((each: pg.Client) => void each.query('SELECT 1').catch(reject), pingEveryMs, client).unref()
      return await lost
    } finally {
      clearInterval(pinging)
      client.end().catch(() => {})
    }
  }

  const sessions = repeat(session, (error) => {
    // One line for an outage.
    if (!isClosed && !isLost && error !== undefined)
      log.warn(
        { err: error },
        'the connection that hears of the ends of runs is lost: runs are polled until it is back',
      )
    isLost = true
    return 300
  })
  return {
    close: async () => {
      isClosed = true
      void sessions.stop()
      await client?.end().catch(() => {})
    },
  }
}
