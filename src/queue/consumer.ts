import { type Job, UnrecoverableError } from 'bullmq'
import type { Db } from '../db/client.ts'
import type { ApplyWorker, Backend } from './backend.ts'
import { type ApplyJob, applyQueue, type JobResult, probeName } from './define.ts'
import { beat } from './heartbeat.ts'

type Ended = JobResult & { readonly state: string }

/**
 * Takes jobs from the queue, several at once. A probe leaves a heartbeat; any other job works on its run. The dashboard
 * shows what the run says: `{applied, logs}` as the result of the job, and `logs` as its log. The job of a cancelled or
 * failed run fails, so that it does not look successful.
 *
 * @param work on the run with this id; returns undefined when there is no such run
 */
export function startConsumer(
  backend: Backend,
  db: Db,
  concurrency: number,
  work: (run: string) => Promise<Ended | undefined>,
): Promise<ApplyWorker> {
  return backend.openWorker(
    applyQueue,
    async (job) => {
      if (job.name !== probeName) return finish(job, await work(job.data.run))
      await beat(db)
      return { applied: false, logs: ['a worker takes jobs'] }
    },
    { concurrency },
  )
}

async function finish(job: Job<ApplyJob>, ended: Ended | undefined): Promise<JobResult> {
  const { state, applied, logs } = ended ?? {
    state: 'vanished',
    applied: false,
    logs: ['vanished: there is no such run'],
  }
  await job.log(logs.join('\n'))
  if (state !== 'done') throw new UnrecoverableError(`${state}: ${logs.join('; ')}`)
  return { applied, logs }
}
