import { RedisQueueBackend } from 'bullmq'
import type { ApplyQueue } from './backend.ts'

/** The reasons, by the first word of the error that Redis answers. */
const refusals: Readonly<Record<string, string>> = {
  OOM: 'Redis is full (maxmemory)',
  READONLY: 'this Redis is a replica, which takes no changes',
  MISCONF: 'Redis cannot write to its disk',
  NOREPLICAS: 'Redis has fewer replicas than it asks for',
}

/** @returns why Redis took no command; undefined for another error */
const whyRefused = (error: unknown): string | undefined =>
  refusals[error instanceof Error ? (error.message.split(' ', 1)[0] ?? '') : '']

/** The sentence about a queue that does not answer. */
export const queueSilent =
  'The queue does not answer: does its server run, and is REDIS_URL, or else DATABASE_URL, right?'

/** A sentence about a queue that answers, and takes no job. @param why that of `whyNoJobs` */
export const acceptsNone = (why: string): string => `The queue answers, but accepts no jobs: ${why}.`

/** The sentence of readiness about a queue of which a call failed. */
export function queueFailed(error: unknown): string {
  const why = whyRefused(error)
  return why === undefined ? queueSilent : acceptsNone(why)
}

/** Seconds; longer than the time between two calls. */
const keptS = 60

/**
 * Writes to the store of the queue as a new job does: a store may answer all questions, and take no job. If the queue is on
 * PostgreSQL, the database itself is checked (`db/accepts-changes.ts`).
 *
 * @returns why it takes none; null when it does
 * @throws when it does not answer
 */
export async function whyNoJobs(queue: ApplyQueue): Promise<string | null> {
  const backend = queue.getBackend()
  if (!(backend instanceof RedisQueueBackend)) return null
  const client = await backend.client
  try {
    await client.set(backend.toKey('readiness'), '', { EX: keptS })
    return null
  } catch (error) {
    const why = whyRefused(error)
    if (why === undefined) throw error
    return why
  }
}
