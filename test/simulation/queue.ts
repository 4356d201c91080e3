import { Problem } from '../../src/errors.ts'
import { jobId } from '../../src/queue/define.ts'
import type { Ended } from '../../src/runs/work.ts'
import type { Watch } from './watch.ts'
import type { Process, World } from './world.ts'

/** BullMQ as runs need it, and all that a queue may do wrong: it duplicates, delays, reorders and loses jobs. */

export type Job = {
  readonly id: string
  readonly run: string
  state: 'waiting' | 'active' | 'delayed' | 'ended'
  taker: Process | undefined
}

export type Taker = {
  readonly process: Process
  isFree(): boolean
  take(job: Job): Promise<void>
}

/** The same as `answered` in src/queue/enqueue.ts. */
const answersWithinMs = 900
/** A job whose worker has died is given to another one. */
const stalledAfterMs = 5_000
const probeEveryMs = 4_000

export type SimulatedQueue = ReturnType<typeof newQueue>

export function newQueue(world: World, watch: Watch) {
  const { random, faults } = world
  const jobs = new Map<string, Job>()
  const takers = new Set<Taker>()
  let isAway = false
  const away = () => new Error('the queue is away')

  async function ask<Result>(process: Process, what: string, request: () => Result): Promise<Result> {
    try {
      const answer = world.call<Result>(process, what, (reply) => (isAway ? reply.fail(away()) : reply.ok(request())))
      return await world.inTime(process, answer, answersWithinMs)
    } catch (error) {
      throw new Problem('unavailable', 'The queue is away. Try again shortly.', { retryAfterS: 1, cause: error })
    }
  }

  function put(job: Job, state: 'waiting' | 'delayed', afterMs: number): void {
    job.state = state
    const wait = random.chance(faults.delay) ? random.between(50, 8_000) : random.between(1, 20)
    world.after(afterMs + wait, () => {
      if (job.state === 'delayed') job.state = 'waiting'
      deliver()
    })
  }

  /** Gives any waiting job to any worker: jobs are not delivered in their order. */
  function deliver(): void {
    if (isAway) return
    const waiting = [...jobs.values()].filter(({ state }) => state === 'waiting')
    const free = [...takers].filter((taker) => taker.isFree())
    const [job, taker] = [waiting[random.whole(0, waiting.length - 1)], free[random.whole(0, free.length - 1)]]
    if (job === undefined || taker === undefined) return
    if (random.chance(faults.duplicate)) {
      world.note(`the queue delivers ${job.id} twice`)
      put(job, 'waiting', 0)
    } else {
      job.state = 'active'
      job.taker = taker.process
      watchStalled(job)
    }
    world.wake(taker.process, () => void taker.take(job))
  }

  function watchStalled(job: Job): void {
    world.after(stalledAfterMs, () => {
      if (job.state !== 'active' || jobs.get(job.id) !== job) return
      if (job.taker?.isAlive === true && !random.chance(faults.duplicate)) return watchStalled(job)
      world.note(`the queue takes ${job.id} for stalled`)
      put(job, 'waiting', 0)
    })
  }

  /** A probe wakes the workers, for jobs that still wait. */
  function probe(): void {
    for (const { state } of jobs.values()) if (state === 'waiting') deliver()
    world.after(probeEveryMs, probe)
  }
  probe()

  return {
    jobs,
    enqueue: (process: Process, run: string, attempt: number) =>
      ask(process, 'enqueue', () => {
        const id = jobId(run, attempt)
        watch.added(run, attempt)
        // It ignores an id that it has seen.
        if (jobs.has(id)) return
        if (random.chance(faults.drop)) return world.note(`the queue loses ${id}`)
        const job: Job = { id, run, state: 'waiting', taker: undefined }
        jobs.set(id, job)
        put(job, 'waiting', 0)
      }),
    isQueued: (process: Process, run: string, attempt: number) =>
      ask(process, 'ask for the job', () => {
        const isQueued = jobs.get(jobId(run, attempt))?.state === 'waiting'
        watch.asked(run, attempt, isQueued)
        return isQueued
      }),
    comeBack: (process: Process, job: Job, afterMs: number) =>
      ask(process, 'delay the job', () => put(job, 'delayed', afterMs)),
    end: (process: Process, job: Job, ended: Ended | undefined) =>
      ask(process, 'end the job', () => {
        watch.reported(job.run, ended)
        job.state = 'ended'
        if (random.chance(faults.duplicate)) put(job, 'waiting', random.between(0, 3_000))
        deliver()
      }),
    join: (taker: Taker) => {
      takers.add(taker)
      taker.process.atCrash.push(() => takers.delete(taker))
      deliver()
    },
    deliver,
    wipe: () => {
      world.note('the queue loses all jobs')
      jobs.clear()
    },
    goAway: (forMs: number) => {
      world.note('the queue is away')
      isAway = true
      world.after(forMs, () => {
        isAway = false
        world.note('the queue is back')
      })
    },
  }
}
