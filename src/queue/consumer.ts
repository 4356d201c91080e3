import type { Queryable } from '../db/client.ts'
import type { ApplyWorker, Backend } from './backend.ts'
import { applyQueue, canaryName } from './define.ts'
import { beat } from './heartbeat.ts'

/**
 * Takes the jobs of the queue, a few at a time: what each rang for is worked on, and a canary leaves a heartbeat.
 *
 * @param work on the run of this id; what it answers is how the job ended
 */
export function startConsumer(
  backend: Backend,
  db: Queryable,
  concurrency: number,
  work: (run: string) => Promise<string>,
): Promise<ApplyWorker> {
  return backend.openWorker(
    applyQueue,
    async (job) => {
      if (job.name !== canaryName) return work(job.data.run)
      await beat(db)
      return 'consumed'
    },
    { concurrency },
  )
}
