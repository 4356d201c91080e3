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
  let sweeping: NodeJS.Timeout
  const sweepOn = () => {
    sweeping = setTimeout(async () => {
      await sweep(queue).catch((error: unknown) => log.warn({ err: error }, 'finished jobs are kept for longer'))
      sweepOn()
    }, sweepEveryMs)
  }
  sweepOn()
  return {
    stop: () => {
      clearInterval(keeping)
      clearTimeout(sweeping)
    },
  }
}

const sweepEveryMs = 500
