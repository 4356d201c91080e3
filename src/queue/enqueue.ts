import { SpanKind } from '@opentelemetry/api'
import type { JobState } from 'bullmq'
import { Problem } from '../errors.ts'
import type { RunQueue } from '../runs/reconcile.ts'
import { limitTime } from '../time-limit.ts'
import { contextOf, currentHeaders, inSpan } from '../tracing.ts'
import { queueFailed } from './accepts-jobs.ts'
import type { ApplyQueue } from './backend.ts'
import { applyQueue, jobId, type Progress, progress } from './define.ts'

/** A queue that does not answer in this time is away. */
const answersWithinMs = 900

/**
 * States of a job that no worker has taken. A job of a paused queue is `waiting` too. A worker took a `delayed` one, and its
 * attempt failed (`consumer.ts`).
 */
const untaken: ReadonlySet<string> = new Set(['waiting', 'prioritized'] satisfies JobState[])

/** The runs in the queue. The first three throw a {@link Problem}, `unavailable`, when the queue is away. */
export const runQueue = (
  queue: ApplyQueue,
): RunQueue & {
  readonly progressOf: (run: { readonly id: string }, attempt: number) => Promise<Progress | null>
} => ({
  /** Adds the job that wakes a worker for a run. It may have been added all the same when this fails. */
  enqueue: async (run, attempt) => {
    // BullMQ takes jobs without a priority first, then those of a lower number.
    const options = { jobId: jobId(run.id, attempt), ...(run.priority && { priority: run.priority }) }
    const span = { kind: SpanKind.PRODUCER, attributes: messageAttributes('send', run.id, options.jobId) }
    await inSpan(`send ${applyQueue.name}`, span, contextOf(run.trace), () => {
      const trace = currentHeaders()
      return answered(queue.add(run.title, { run: run.id, ...(trace && { trace }) }, options))
    })
  },
  /** Whether the job of this attempt still waits: no worker took it, it has not ended, and the queue has it. */
  isQueued: async (run, attempt) => untaken.has(await answered(queue.getJobState(jobId(run.id, attempt)))),
  /** Makes a delayed job ready. One that has vanished, or is not delayed, is left to the reconciler. */
  wake: async (run, attempt) => {
    const job = await answered(queue.getJob(jobId(run.id, attempt)))
    await job?.promote().catch(() => {})
  },
  /**
   * The progress of the run of this attempt, as its job shows it; null when that is not known: it has not begun, its document is
   * small, or the queue is away.
   */
  progressOf: async (run, attempt) => {
    const job = await answered(queue.getJob(jobId(run.id, attempt))).catch(() => undefined)
    return progress.safeParse(job?.progress).data ?? null
  },
})

/** Attributes after the conventions of OpenTelemetry for messages. */
export const messageAttributes = (operation: 'send' | 'process', run: string, job: string) => ({
  'messaging.system': 'bullmq',
  'messaging.operation.type': operation,
  'messaging.operation.name': operation,
  'messaging.destination.name': applyQueue.name,
  'messaging.message.id': job,
  'gatewright.run.id': run,
})

/** Limits the time of a call to the queue. @throws {Problem} `unavailable` for every failure */
export async function answered<Result>(call: Promise<Result>): Promise<Result> {
  const away = (cause?: unknown): never => {
    throw new Problem('unavailable', `${queueFailed(cause)} Try again shortly.`, { retryAfterS: 1, cause })
  }
  return await limitTime(call.catch(away), answersWithinMs, away)
}
