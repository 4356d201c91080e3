import type { JobType } from 'bullmq'
import type { ApplyQueue } from './backend.ts'

/** The states of a job in counts: a job of a paused queue is waiting. */
export const jobStates = ['waiting', 'prioritized', 'active', 'delayed', 'failed', 'completed'] as const

export type JobCounts = Readonly<Record<(typeof jobStates)[number], number>>

/** BullMQ on PostgreSQL counts the waiting jobs of a paused queue under this name, which is missing in its types. */
const paused = 'paused' as JobType

/**
 * The ids of the jobs in each state, the newest first.
 *
 * @param most of one state
 */
export async function jobIds(queue: ApplyQueue, most: number): Promise<Map<(typeof jobStates)[number], string[]>> {
  const ofState = (state: (typeof jobStates)[number]) =>
    queue.getRanges(state === 'waiting' ? [state, paused] : [state], 0, most - 1)
  return new Map(await Promise.all(jobStates.map(async (state) => [state, await ofState(state)] as const)))
}

export async function countJobs(queue: ApplyQueue): Promise<JobCounts> {
  const counts = await queue.getJobCounts(...jobStates, paused)
  const of = (state: string) => counts[state] ?? 0
  const { waiting, ...others } = Object.fromEntries(jobStates.map((state) => [state, of(state)])) as JobCounts
  return { ...others, waiting: waiting + of(paused) }
}
