import { pino } from 'pino'
import { comesBackAfterMs, NotYet } from '../../src/runs/life.ts'
import { reconcile } from '../../src/runs/reconcile.ts'
import { work } from '../../src/runs/work.ts'
import { uncounted } from '../support/uncounted.ts'
import { reconcilerLedger, type Stage, workerLedger } from './ledgers.ts'
import type { Job } from './queue.ts'

/** The worker's process: it runs the product's `work` and `reconcile`. */

const silent = pino({ level: 'silent' })
/** The same as `everyMs` in src/runs/reconcile.ts. */
const everyMs = { busy: 500, idle: 2_000 } as const

/** A worker, which starts again after each crash. */
export function startWorker(stage: Stage, name: string, concurrency: number): void {
  const { world, queue, flaw } = stage
  const process = world.start(name)
  process.atCrash.push(() => stage.startLater(() => startWorker(stage, name, concurrency)))
  const ledger = reconcilerLedger(stage, process)
  let taken = 0

  const worker = {
    ledger: workerLedger(stage, process),
    log: silent,
    tally: uncounted,
    pause: (leastMs: number) => world.sleep(process, leastMs * world.random.between(1, 2)),
  }
  async function take(job: Job): Promise<void> {
    const ended = await work(worker, job.run).catch((error: unknown) =>
      error instanceof NotYet ? error.afterMs : comesBackAfterMs,
    )
    if (typeof ended === 'number') await queue.comeBack(process, job, ended)
    else await queue.end(process, job, ended)
  }

  const runQueue = {
    wake: async () => {},
    enqueue: ({ id }: { id: string }, attempt: number) => queue.enqueue(process, id, attempt),
    isQueued: async ({ id }: { id: string }, attempt: number) => {
      if (flaw === 'every job is taken for queued') return true
      const asking = queue.isQueued(process, id, attempt)
      return flaw === 'job of unknown state is taken for gone' ? asking.catch(() => false) : asking
    },
  }
  async function round(): Promise<number> {
    if ((await ledger.waiting()) === 0) return everyMs.idle
    await ledger.cancelStale()
    await reconcile(ledger, runQueue, worker)
    return everyMs.busy
  }

  const start = async () => {
    // A worker that cannot do this ends, and is started again.
    await ledger.cancelStale().catch(() => world.crash(process))
    if (!process.isAlive) return
    queue.join({
      process,
      isFree: () => taken < concurrency,
      take: (job) => {
        taken += 1
        const free = () => {
          taken -= 1
          queue.deliver()
        }
        return take(job).then(free, free)
      },
    })
    for (;;) await world.sleep(process, await round().catch(() => everyMs.busy))
  }
  world.wake(process, () => void start())
}
