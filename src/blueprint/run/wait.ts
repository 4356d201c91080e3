import pg from 'pg'
import { textsIn } from '../../db/announce.ts'
import { type Db, type Tx, transaction } from '../../db/client.ts'
import { isConnectionLost, isTransient } from '../../db/failures.ts'
import type { Logger } from '../../log.ts'
import { isFinished } from './life.ts'
import { cancel, type Run, readRuns, runChannel } from './record.ts'

/**
 * Waiting for a run. The answer always comes from its row; what wakes the waiter is whichever comes first: NOTIFY from
 * the worker, the queue's own event, or a look of ours, because each of the other two gets lost at times.
 */

/**
 * A finished run; or taken back, or taken away by a crash of PostgreSQL, and in both cases certainly not applied; or
 * held by a worker; or unknown, because the database is away.
 */
export type Collected = Run | 'cancelled' | 'lost' | 'held' | 'unknown'

export type Waiter = {
  /** Look at this run now: the queue says that its job ended. */
  wake(id: string): void
  /** Do not wait for this run any longer: its doorbell could not be rung. */
  giveUp(id: string): void
  /**
   * @param budgetMs how long to wait before taking the run back
   * @returns the finished run; `cancelled` when it was taken back, `lost` as soon as its row is seen to be gone;
   *   `held` or `unknown` when nobody can say yet
   */
  collect(id: string, budgetMs: number): Promise<Collected>
  /** Runs that somebody in this process waits for. */
  readonly waiting: number
  close(): Promise<void>
}

/** Milliseconds between looks at one run: quick at first, then calm. */
const lookAfterMs = [50, 100, 200, 400, 800, 1_000] as const
const tickMs = 50
const untaken = 'not applied: no worker took it in time'
/** How long a cancel waits for a worker that has the run. */
const cancelTimeouts = { lockMs: 2_000, statementMs: 2_500, idleMs: 4_000 }

type Pending = { looks: number; lookAt: number; settle: (run: Run | 'lost' | undefined) => void }

export function startWaiter(db: Db, url: string, log: Logger): Waiter {
  const pending = new Map<string, Pending>()
  const woken = new Set<string>()
  const listener = listen(url, log, wake)

  function wake(id: string): void {
    if (!pending.has(id)) return
    // Those that come together are read together.
    if (woken.size === 0) setImmediate(lookAtWoken)
    woken.add(id)
  }

  function lookAtWoken(): void {
    const ids = [...woken]
    // Who is told again while this look is under way looks again: an attempt that failed may have told him before.
    woken.clear()
    void look(ids)
  }

  async function look(ids: readonly string[]): Promise<void> {
    const known = ids.filter((id) => pending.has(id))
    if (known.length === 0) return
    // A failed look is not an answer: the next tick looks again.
    const runs = await readRuns(db, known).catch((error: unknown) => {
      if (!isConnectionLost(error)) log.error({ err: error }, 'cannot read runs')
    })
    if (runs === undefined) return
    const found = new Map(runs.map((run) => [run.id, run]))
    for (const id of known) {
      const run = found.get(id) ?? 'lost'
      if (run === 'lost' || isFinished(run.state)) pending.get(id)?.settle(run)
    }
  }

  const ticker = setInterval(() => {
    const now = Date.now()
    const due = [...pending].filter(([, waiter]) => waiter.lookAt <= now)
    for (const [, waiter] of due) {
      waiter.lookAt = now + (lookAfterMs[waiter.looks] ?? 1_000)
      waiter.looks += 1
    }
    void look(due.map(([id]) => id))
  }, tickMs)
  ticker.unref()

  function wait(id: string, budgetMs: number): Promise<Run | 'lost' | undefined> {
    return new Promise((resolve) => {
      const end = (run: Run | 'lost' | undefined) => {
        clearTimeout(timer)
        pending.delete(id)
        resolve(run)
      }
      const timer = setTimeout(end, budgetMs, undefined)
      pending.set(id, { looks: 0, lookAt: Date.now() + lookAfterMs[0], settle: end })
    })
  }

  return {
    wake,
    giveUp: (id) => pending.get(id)?.settle(undefined),
    collect: async (id, budgetMs) =>
      (await wait(id, budgetMs)) ?? (await cancelOrCollect(db, id, (tx) => cancel(tx, id, untaken))),
    get waiting() {
      return pending.size
    },
    close: async () => {
      clearInterval(ticker)
      await listener.close()
    },
  }
}

/** @param cancel takes the run back inside a transaction, and says whether it did */
export async function cancelOrCollect(db: Db, id: string, cancel: (tx: Tx) => Promise<boolean>): Promise<Collected> {
  try {
    if (await transaction(db, cancel, cancelTimeouts)) return 'cancelled'
    const [run] = await readRuns(db, [id])
    if (run === undefined) return 'lost'
    return isFinished(run.state) ? run : 'unknown'
  } catch (error) {
    if (isConnectionLost(error)) return 'unknown'
    if (isTransient(error)) return 'held'
    throw error
  }
}

/** One connection that listens, for ever: it is opened again whenever it is lost. */
function listen(url: string, log: Logger, heard: (id: string) => void): { close(): Promise<void> } {
  let client: pg.Client | undefined
  let timer: NodeJS.Timeout | undefined
  let closed = false

  async function open(): Promise<void> {
    const opened = new pg.Client({
      connectionString: url,
      application_name: 'gatewright-listen',
      keepAlive: true,
      connectionTimeoutMillis: 2_000,
    })
    client = opened
    opened.on('notification', ({ payload = '' }) => textsIn(payload).forEach(heard))
    opened.on('error', again)
    opened.on('end', again)
    try {
      await opened.connect()
      await opened.query(`LISTEN ${runChannel}`)
    } catch (error) {
      again(error)
    }
  }

  function again(error?: unknown): void {
    if (closed || timer !== undefined) return
    if (error !== undefined) log.warn({ err: error }, 'listening again shortly: until then runs are looked at')
    client?.removeAllListeners()
    client?.on('error', () => {})
    client?.end().catch(() => {})
    timer = setTimeout(() => {
      timer = undefined
      void open()
    }, 300)
    timer.unref()
  }

  void open()
  return {
    close: async () => {
      closed = true
      clearTimeout(timer)
      await client?.end().catch(() => {})
    },
  }
}
