import { SpanKind } from '@opentelemetry/api'
import { DelayedError, type Job, UnrecoverableError } from 'bullmq'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import type { Load } from '../db/presence.ts'
import { runPath } from '../paths.ts'
import { comesBackAfterMs, NotYet } from '../runs/life.ts'
import { contextOf, failSpan, inSpan, type TraceHeaders } from '../tracing.ts'
import { type Backend, closeInTime, closeWithinMs } from './backend.ts'
import { type ApplyJob, applyQueue, type JobResult, type Progress, probeName, runJob } from './define.ts'
import { messageAttributes } from './enqueue.ts'
import { beat, beatNowAndThen } from './heartbeat.ts'

type JobEnd = Omit<JobResult, 'run'>

type Work = (run: string, onProgress: (progress: Progress) => void) => Promise<JobEnd | undefined>

export type Consumer = Load & {
  /** Opens its connections to the queue anew. Jobs that it has go on. */
  reopen(): Promise<void>
  close(): Promise<void>
}

/**
 * Takes jobs from the queue, several at once. A probe leaves a heartbeat; any other job works on its run. A job ends when its run
 * has ended, and never earlier, so that it shows the outcome of the run: as its result when the run is `done`, as its failure
 * when the run is `cancelled`, `failed` or vanished (docs/adr/0033-a-job-ends-with-its-run.md).
 *
 * @param work works on the run with this id, and reports its progress; returns undefined when there is no such run, and throws
 * when the run has not ended
 * @param onTaken called for each job
 */
export async function startConsumer(
  backend: Backend,
  db: Db,
  concurrency: number,
  work: Work,
  onTaken: () => void = () => {},
): Promise<Consumer> {
  const beatLater = beatNowAndThen(db)
  let taken = 0
  let tookAny = false

  async function take(job: Job<ApplyJob>, token: string | undefined): Promise<JobResult | null> {
    if (job.name === probeName) {
      await inTime(beat(db))
      return null
    }
    beatLater()
    const { data } = runJob.safeParse(job.data)
    return data === undefined ? gone : workOn(job, token, data, work)
  }

  const open = () =>
    backend.openWorker(
      async (job, token) => {
        taken += 1
        tookAny = true
        onTaken()
        try {
          return await take(job, token)
        } finally {
          taken -= 1
        }
      },
      { concurrency },
    )
  let worker = await open()
  return {
    slots: () => concurrency,
    busy: () => taken,
    hasTaken: () => {
      const took = tookAny
      tookAny = false
      return took
    },
    reopen: async () => {
      const old = worker
      worker = await open()
      void closeInTime(old, closeWithinMs.worker)
    },
    close: () => worker.close(),
  }
}

/** The result of a job that was made by hand and names no run. */
const gone: JobResult = { run: '', state: 'gone', applied: false, reason: null }

async function workOn(
  job: Job<ApplyJob>,
  token: string | undefined,
  { run, trace }: { readonly run: string; readonly trace?: TraceHeaders | undefined },
  work: Work,
): Promise<JobResult> {
  const consumer = { kind: SpanKind.CONSUMER, attributes: messageAttributes('process', run, job.id ?? '') }
  const ended = await inSpan(`process ${applyQueue.name}`, consumer, contextOf(trace ?? null), async (span) => {
    const end = await work(run, reportProgress(job))
    const { state, applied, reason } = end ?? vanished
    span.setAttributes({ 'gatewright.run.state': state, 'gatewright.run.applied': applied })
    if (reason !== null) span.setAttribute('gatewright.code', reason)
    if (state === 'failed') failSpan(span, reason ?? state)
    return end
  }).catch(async (error: unknown) => {
    // The log of the worker has the reason. It is not shown here: it is not the outcome.
    await job.log(`this attempt failed, and the run is still queued: see ${runPath(run)}`)
    await job.moveToDelayed(Date.now() + (error instanceof NotYet ? error.afterMs : comesBackAfterMs), token)
    throw new DelayedError()
  })
  return report(job, run, ended)
}

/** Shorter runs end before a reader could see their progress. */
const shownFrom = 200
const shownEveryMs = 500

/** Shows the progress of the run on its job, from time to time and at the last entry. BullMQ makes an event of it. */
function reportProgress(job: Job<ApplyJob>): (progress: Progress) => void {
  let next = 0
  // The reports are sent one after the other, so that the last one stays.
  let sending = Promise.resolve()
  return (progress) => {
    const { done, total } = progress
    const now = performance.now()
    if (total < shownFrom || (now < next && done < total)) return
    next = now + shownEveryMs
    // The dashboard draws the percentage. A report is lost while the queue is away: the run goes on.
    const percent = Math.floor((100 * done) / total)
    sending = sending.then(() => job.updateProgress({ ...progress, progress: percent })).catch(() => {})
  }
}

const vanished: JobEnd = { state: 'vanished', applied: false, reason: null }

/** Shows the end of the run on its job. @throws an error when the run is not done, so that its job does not look successful */
async function report(job: Job<ApplyJob>, id: string, ended: JobEnd = vanished): Promise<JobResult> {
  const { state, applied, reason } = ended
  const run = runPath(id)
  if (state === 'done') return { run, state, applied, reason }
  // A failed job has no result, which would name its run.
  await job.log(`see ${run}`)
  const outcome = reason === null || reason === state ? state : `${state}, ${reason}`
  throw new UnrecoverableError(outcome)
}
