import { ErrorCode } from 'bullmq'
import type { Logger } from '../log.ts'
import type { ApplyQueue } from './backend.ts'
import { applyQueue, canaryName, type QueueSpec } from './define.ts'
import { within } from './doorbell.ts'

/** What a worker does for the queue beside working. */

const canaryEveryMs = 2_000

/** Has the queue make a canary job every other second, however many processes ask for it. */
export async function keepCanary(queue: ApplyQueue): Promise<void> {
  const template = { name: canaryName, data: { run: '' }, opts: { removeOnComplete: true, removeOnFail: true } }
  const kept = queue.upsertJobScheduler(canaryName, { every: canaryEveryMs }, template)
  await within(kept.catch(ignoreKeptByAnother))
}

/** Two processes keep it at once, and this one came second: the jobs are there. */
function ignoreKeptByAnother(error: unknown): void {
  const isThere = error instanceof Error && 'code' in error && error.code === ErrorCode.SchedulerJobSlotsBusy
  if (!isThere) throw error
}

const sweepEveryMs = 500
/** Removed in one call: the store does nothing else meanwhile. */
const sweptAtOnce = 1_000

/** Removes the finished jobs that are too many or too old. However many sweep at once, they remove the same. */
export async function sweep(queue: ApplyQueue, kept: QueueSpec['kept'] = applyQueue.kept): Promise<void> {
  for (const state of ['completed', 'failed'] as const) {
    const { age, count } = kept[state]
    // The newest come first.
    const [surplus] = await within(queue.getJobs(state, count, count))
    const surplusMs = surplus?.finishedOn === undefined ? Number.POSITIVE_INFINITY : Date.now() - surplus.finishedOn
    await within(queue.clean(Math.max(0, Math.min(age * 1_000, surplusMs)), sweptAtOnce, state))
  }
}

/** Keeps the canary, which a queue that was wiped gets back, and sweeps, for as long as this process lives. */
export async function startUpkeep(queue: ApplyQueue, log: Logger): Promise<{ stop(): void }> {
  const keep = () => keepCanary(queue).catch((error: unknown) => log.warn({ err: error }, 'no canary yet'))
  await keep()
  const keeping = setInterval(keep, 2 * canaryEveryMs)
  const sweeping = startSweeping(queue, log)
  return {
    stop: () => {
      clearInterval(keeping)
      sweeping.stop()
    },
  }
}

function startSweeping(queue: ApplyQueue, log: Logger): { stop(): void } {
  let timer: NodeJS.Timeout
  let isFailing = false
  async function sweepOnce(): Promise<void> {
    try {
      await sweep(queue)
      isFailing = false
    } catch (error) {
      // Told once: while the queue is away, others say so all the time.
      if (!isFailing) log.warn({ err: error }, 'finished jobs are kept for longer than they should')
      isFailing = true
    }
    next()
  }
  function next(): void {
    timer = setTimeout(sweepOnce, sweepEveryMs)
  }
  next()
  return { stop: () => clearTimeout(timer) }
}
