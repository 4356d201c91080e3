import type { JobState } from 'bullmq'
import { Problem } from '../errors.ts'
import type { ApplyQueue } from './backend.ts'
import { jobId } from './define.ts'

/** Milliseconds: a queue that does not answer by then is away. */
const ringWithinMs = 900

/**
 * Rings for a run: adds the job that wakes a worker.
 *
 * @throws {Problem} `unavailable` when the queue is away; the job may have been added all the same
 */
export async function ring(
  queue: ApplyQueue,
  run: { readonly id: string; readonly title: string },
  ringNumber: number,
): Promise<void> {
  await within(queue.add(run.title, { run: run.id }, { jobId: jobId(run.id, ringNumber) }))
}

/** Taken by no worker yet. BullMQ calls the jobs of a paused queue `waiting` too. */
const inLine: ReadonlySet<string> = new Set(['waiting', 'prioritized', 'delayed'] satisfies JobState[])

/**
 * Whether the job of this ring stands in line: then its run is not lost, however long the line is.
 *
 * @returns false when a worker took it, dead or alive, when it ended, and when the queue does not know it
 * @throws {Problem} `unavailable` when the queue is away: nobody can say
 */
export async function standsInLine(
  queue: ApplyQueue,
  run: { readonly id: string },
  ringNumber: number,
): Promise<boolean> {
  return inLine.has(await within(queue.getJobState(jobId(run.id, ringNumber))))
}

/** Both for one queue: what the reconciler needs of it. */
export const doorbell = (queue: ApplyQueue) => ({
  ring: (run: { readonly id: string; readonly title: string }, ringNumber: number) => ring(queue, run, ringNumber),
  standsInLine: (run: { readonly id: string }, ringNumber: number) => standsInLine(queue, run, ringNumber),
})

/** Bounds a call to the queue, and calls every failure of it what it is: the queue is away. */
export async function within<Result>(call: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ringWithinMs} ms`)), ringWithinMs)
  })
  try {
    return await Promise.race([call, late])
  } catch (error) {
    throw new Problem('unavailable', 'The queue is away. Try again shortly.', { retryAfterS: 1, cause: error })
  } finally {
    clearTimeout(timer)
    call.catch(() => {})
  }
}
