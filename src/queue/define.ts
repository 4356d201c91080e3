import type { JobsOptions } from 'bullmq'

/** A queue: its name, what its jobs carry and how they are kept, in one value, so that nothing is typed twice. */
export type QueueSpec = {
  readonly name: string
  readonly jobs: JobsOptions
  /** Finished jobs: so many of each kind, and none that is older, in seconds. */
  readonly kept: Readonly<Record<'completed' | 'failed', { readonly age: number; readonly count: number }>>
}

/** The doorbell: a job says which run to look at, and nothing else. No secret can be in it. */
export type ApplyJob = { readonly run: string }

/** The job that proves consumption: it carries nothing. */
export const canaryName = 'canary'

const day = 86_400

export const applyQueue: QueueSpec = {
  name: 'apply',
  // The ledger keeps the results; these are what the dashboard shows.
  kept: { completed: { age: day, count: 1_000 }, failed: { age: 7 * day, count: 5_000 } },
  jobs: {
    // Never as they end: docs/adr/0018-finished-jobs-are-swept.md.
    removeOnComplete: false,
    removeOnFail: false,
    // Trying again is the worker's (transient failures) and the reconciler's (lost doorbells), never the queue's.
    attempts: 1,
  },
}

/** A queue ignores an id that it has seen, so every ring has its own. */
export const jobId = (run: string, ring: number): string => `run-${run}-${ring}`

/** @returns the run that a job id rings for, if it does */
export const runOfJob = (id: string): string | undefined => /^run-([0-9a-f-]{36})-\d+$/.exec(id)?.[1]
