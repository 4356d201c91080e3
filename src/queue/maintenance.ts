import { randomUUID } from 'node:crypto'
import { repeat } from '../db/rounds.ts'
import type { Logger } from '../log.ts'
import type { ApplyQueue } from './backend.ts'
import { applyQueue, probeName } from './define.ts'
import { answered } from './enqueue.ts'

/** Readiness reports a stopped worker after `consumedWithinS` (`api/health.ts`). */
export const probeEveryMs = 4_000
/** The interval while the queue is away: submissions are refused until a worker has taken a probe. */
const retryEveryMs = 250

/** Each worker has a probe of its own: a killed worker leaves none for which the next one would have to wait. */
const probeId = `${probeName}-${randomUUID()}`

/**
 * Adds a probe, unless that of this process still waits. The queue's own scheduler goes by the clock of a worker: a clock that is
 * an hour ahead would postpone all probes by an hour.
 */
export async function addProbe(queue: ApplyQueue): Promise<void> {
  const opts = { jobId: probeId, removeOnComplete: true, removeOnFail: true }
  await answered(queue.add(probeName, { run: '' }, opts))
}

/** The limit of one call, during which the store does nothing else. */
const removedAtOnce = 1_000

/** Removes finished jobs that are too many or too old. Several workers may do it at once. */
export async function cleanUp(queue: ApplyQueue, kept = applyQueue.kept): Promise<void> {
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

/** The number of rounds from one cleanup to the next. */
const cleanUpEvery = 5

/** Adds probes and cleans up until it is stopped. */
export async function startMaintenance(queue: ApplyQueue, log: Logger): Promise<{ stop(): Promise<void> }> {
  let round = 0
  async function maintain(): Promise<number> {
    await addProbe(queue)
    // Version 0.1.0 let the queue add the probes.
    if (round === 0) await answered(queue.removeJobScheduler(probeName))
    if (round % cleanUpEvery === 0) await cleanUp(queue)
    round += 1
    return probeEveryMs
  }
  const maintenance = repeat(maintain, (error, again) => {
    // The failure is logged once for each outage: other parts report it too.
    if (!again) log.warn({ err: error }, 'the queue is not maintained: its probe and its finished jobs')
    return retryEveryMs
  })
  // Submissions may be refused until a worker has taken a probe: a worker that says that it is ready has added one.
  await maintenance.first
  return maintenance
}
