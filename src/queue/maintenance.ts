import { ErrorCode } from 'bullmq'
import type { Logger } from '../log.ts'
import type { ApplyQueue } from './backend.ts'
import { applyQueue, probeName, type QueueSpec } from './define.ts'
import { answered } from './enqueue.ts'

/** Readiness reports a stopped worker after `consumedWithinS` (`api/health.ts`). */
export const probeEveryMs = 4_000

/** Lets the queue add a probe job at intervals. Every worker calls this, and there is one probe. */
export async function keepProbe(queue: ApplyQueue): Promise<void> {
  const template = { name: probeName, data: { run: '' }, opts: { removeOnComplete: true, removeOnFail: true } }
  const kept = queue.upsertJobScheduler(probeName, { every: probeEveryMs }, template)
  await answered(kept.catch(ignoreKeptByAnother))
}

/** Another process added the probe at the same moment. */
function ignoreKeptByAnother(error: unknown): void {
  const isThere = error instanceof Error && 'code' in error && error.code === ErrorCode.SchedulerJobSlotsBusy
  if (!isThere) throw error
}

/** Limit of one call, during which the store does nothing else. */
const removedAtOnce = 1_000

/** Removes finished jobs that are too many or too old. Several workers may do it at once. */
export async function cleanUp(queue: ApplyQueue, kept: QueueSpec['kept'] = applyQueue.kept): Promise<void> {
  for (const state of ['completed', 'failed'] as const) {
    const { age, count } = kept[state]
    let removed = removedAtOnce
    while (removed === removedAtOnce) {
      // The newest come first.
      const [surplus] = await answered(queue.getJobs(state, count, count))
      const surplusMs = surplus?.finishedOn === undefined ? Number.POSITIVE_INFINITY : Date.now() - surplus.finishedOn
      const jobs = await answered(queue.clean(Math.max(0, Math.min(age * 1_000, surplusMs)), removedAtOnce, state))
      removed = jobs.length
    }
  }
}

const everyMs = 5_000
/** Rounds between two that clean up. */
const cleanUpEvery = 4

/** Cleans up, and adds the probe again when the queue was wiped, until it is stopped. */
export async function startMaintenance(queue: ApplyQueue, log: Logger): Promise<{ stop(): void }> {
  let isFailing = false
  let round = 0
  async function maintain(): Promise<void> {
    try {
      await keepProbe(queue)
      if (round % cleanUpEvery === 0) await cleanUp(queue)
      round += 1
      isFailing = false
    } catch (error) {
      // Logged once for each outage: others report it too.
      if (!isFailing) log.warn({ err: error }, 'the queue is not maintained: its probe and its finished jobs')
      isFailing = true
    }
  }
  await maintain()
  const timer = setInterval(maintain, everyMs)
  return { stop: () => clearInterval(timer) }
}
