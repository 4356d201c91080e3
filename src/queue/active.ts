import type { ApplyQueue } from './backend.ts'
import { jobId, type Progress, progress, runJob } from './define.ts'
import { answered } from './enqueue.ts'

/** A run whose job a worker has. The lock of the run's row shows whether a worker works on it by now. */
export type ActiveRun = {
  readonly run: string
  readonly attempt: number
  readonly progress: Progress | null
  /** How long the worker has had it, by the clock of the worker. */
  readonly sinceMs: number
}

/** The most jobs that are read. An installation of the intended size never has more at work at the same time. */
const most = 500

/**
 * The runs whose jobs workers have.
 *
 * @throws {Problem} `unavailable` when the queue is away
 */
export async function activeRuns(queue: ApplyQueue): Promise<ActiveRun[]> {
  const jobs = await answered(queue.getActive(0, most - 1))
  return jobs.flatMap((job) => {
    const { data } = runJob.safeParse(job?.data)
    if (data === undefined) return []
    const attempt = Number(job.id?.slice(jobId(data.run, 0).length - 1))
    const sinceMs = Date.now() - (job.processedOn ?? Date.now())
    return [{ run: data.run, attempt, progress: progress.safeParse(job.progress).data ?? null, sinceMs }]
  })
}
