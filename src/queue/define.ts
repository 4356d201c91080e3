import type { JobsOptions } from 'bullmq'
import { z } from 'zod'
import { type TraceHeaders, traceHeaders } from '../tracing.ts'

/** A job names its run and the trace to which it belongs, and nothing else, so that it holds no secret. */
export type ApplyJob = { readonly run: string; readonly trace?: TraceHeaders }

/** The data of a job that names a run. A job made by hand may hold anything. */
export const runJob = z.object({ run: z.guid(), trace: traceHeaders.optional().catch(undefined) })

/**
 * The result of a job: the outcome of its run, and the run's address. The board shows it to all who may view the queue: it has
 * no sentence of the log, which may hold values.
 */
export type JobResult = {
  /** `/api/v3/blueprints/runs/<id>/` */
  readonly run: string
  readonly state: string
  readonly applied: boolean
  readonly reason: string | null
}

/** The number of entries of a document that are done, and of all. A transaction that is rolled back undoes them all. */
export const progress = z.object({ done: z.int(), total: z.int() })
export type Progress = z.output<typeof progress>

/** A job without a run. It shows that a worker consumes. */
export const probeName = 'probe'

const day = 86_400

export const applyQueue = {
  name: 'apply',
  // Finished jobs: at most `count`, and none older than `age` seconds. The dashboard shows them. The ledger keeps the results.
  kept: { completed: { age: day, count: 1_000 }, failed: { age: 7 * day, count: 5_000 } },
  jobs: {
    // The worker removes them later: docs/adr/0018-finished-jobs-are-cleaned-up.md.
    removeOnComplete: false,
    removeOnFail: false,
    // A job comes back by itself until its run is finished (`consumer.ts`), and the reconciler replaces lost jobs.
    attempts: 1,
    keepLogs: 20,
    // A job fails for its run's reason. The worker's log has the stack of a bug.
    stackTraceLimit: 0,
  } satisfies JobsOptions,
}

/** Each attempt has its own id, because a queue ignores an id that it knows. */
export const jobId = (run: string, attempt: number): string => `run-${run}-${attempt}`
