import { DelayedError, type Job, UnrecoverableError } from 'bullmq'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { runPath } from '../paths.ts'
import type { ApplyWorker, Backend } from './backend.ts'
import { type ApplyJob, applyQueue, type JobResult, probeName } from './define.ts'
import { beat } from './heartbeat.ts'

/** How a run ended. */
type Ended = Omit<JobResult, 'run'>

/** A job whose attempt came to nothing comes back after this time, to report what became of its run. */
export const comesBackAfterMs = 5_000

/**
 * Takes jobs from the queue, several at once. A probe leaves a heartbeat; any other job works on its run. A job ends when
 * its run has ended, and never earlier, so that it shows the outcome of the run: as its result when the run is `done`, as
 * its failure when the run is `cancelled`, `failed` or vanished (docs/adr/0033-a-job-ends-with-its-run.md).
 *
 * @param work on the run with this id; returns undefined when there is no such run, and throws when the run has not ended
 */
export function startConsumer(
  backend: Backend,
  db: Db,
  concurrency: number,
  work: (run: string) => Promise<Ended | undefined>,
): Promise<ApplyWorker> {
  return backend.openWorker(
    applyQueue,
    async (job, token) => {
      if (job.name !== probeName) return workOn(job, token, work)
      await beat(db)
      return null
    },
    { concurrency },
  )
}

const jobData = z.object({ run: z.guid() })

async function workOn(
  job: Job<ApplyJob>,
  token: string | undefined,
  work: (run: string) => Promise<Ended | undefined>,
): Promise<JobResult> {
  const { success, data } = jobData.safeParse(job.data)
  if (!success) return report(job, undefined)
  const ended = await work(data.run).catch(async () => {
    // Why is in the log of the worker. It is not shown: it is not the outcome.
    await job.log(`this attempt came to nothing, and the run is still queued: see ${runPath(data.run)}`)
    await job.moveToDelayed(Date.now() + comesBackAfterMs, token)
    throw new DelayedError()
  })
  return report(job, ended, data.run)
}

const vanished: Ended = {
  state: 'vanished',
  applied: false,
  reason: null,
  logs: ['there is no such run, and nothing was applied'],
}

/** Shows the end of the run on its job. @throws so that a job of a run that is not done does not look successful */
async function report(job: Job<ApplyJob>, ended: Ended = vanished, id?: string): Promise<JobResult> {
  const { state, reason, logs } = ended
  const run = id === undefined ? '' : runPath(id)
  await job.log([...logs, ...(id === undefined ? [] : [`see ${run}`])].join('\n'))
  if (state === 'done') return { run, ...ended }
  const outcome = reason === null || reason === state ? state : `${state}, ${reason}`
  throw new UnrecoverableError(`${outcome}: ${logs.join('; ')}`)
}
