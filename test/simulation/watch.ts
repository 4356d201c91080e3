import { isFinished, type Life, maxAttempts, type RunState, staleAfterS } from '../../src/runs/life.ts'
import type { Ended } from '../../src/runs/work.ts'
import { live, type RunEvent } from './life.ts'
import type { World } from './world.ts'

/** The promises about runs, checked at each write and at the end. */

/** A run in the simulated database. */
export type Row = {
  readonly id: string
  state: RunState
  attempts: number
  readonly createdAt: number
  enqueuedAt: number
  applied: boolean | null
  reason: string | null
  logs: readonly string[]
  /** Numbers of the attempts that are recorded as failed. */
  failedAttempts: readonly number[]
}

/** What a client was answered: the end of its run, or that it is not known yet. */
export type Answer = 'applied' | 'refused' | 'failed' | 'cancelled' | 'unknown'

const events = ['wait', 'enqueue', 'unqueue', 'lock', 'release', 'finish', 'fail', 'cancel'] satisfies RunEvent[]

/** The end of a run in one word, as an answer gives it. */
export const endOf = ({ state, applied }: Pick<Ended, 'state'> & { applied: boolean | null }): Answer => {
  if (state === 'done') return applied === true ? 'applied' : 'refused'
  return state === 'failed' || state === 'cancelled' ? state : 'unknown'
}

/**
 * What becomes of a run when it is applied. `torn`: each time something else; `fatal`: its worker dies; `busy`: a
 * statement may run out of time.
 */
export type Fate = 'good' | 'refused' | 'bug' | 'torn' | 'fatal' | 'busy'

/** How a run of this fate cannot end. Any may be cancelled, or fail because no worker finishes it. */
const never: Record<Fate, readonly (Answer | 'vanished')[]> = {
  good: ['refused'],
  busy: ['refused'],
  refused: ['applied'],
  bug: ['applied', 'refused'],
  fatal: ['applied', 'refused'],
  torn: [],
}

export type Watch = ReturnType<typeof newWatch>

export function newWatch(world: () => World) {
  const violations: string[] = []
  const effects = new Map<string, number>()
  const answers = new Map<string, Answer>()
  const reports = new Map<string, Set<string>>()
  const added = new Map<string, Set<number>>()
  /** Runs and attempts of which the queue reported that the job does not wait. */
  const gone = new Set<string>()
  const lost = new Set<string>()
  /** Crashes and failures that may each have used up an attempt of the run without a job. */
  const excuses = new Map<string, number>()

  function broken(what: string): void {
    world().note(`BROKEN: ${what}`)
    violations.push(what)
  }

  /** Whether one event leads from one to the other; a worker's transaction locks the run and finishes it. */
  function isStep(before: Life, after: Life): boolean {
    const isAfter = (life: Life) => life.state === after.state && life.attempts === after.attempts
    return events.some((event) => isAfter(live(before, event)) || isAfter(live(live(before, 'lock'), event)))
  }

  return {
    violations,
    effects,
    answers,
    wrote: (before: Row, after: Row) => {
      const { id, state, attempts, reason } = after
      world().note(`  ${id}: ${before.state} ${before.attempts} -> ${state} ${attempts}`)
      if (!isStep(before, after)) broken(`${id} went from ${before.state} ${before.attempts} to ${state} ${attempts}`)
      if (isFinished(before.state)) broken(`${id} was ${before.state} already`)
      if (attempts > maxAttempts) broken(`${id} has ${attempts} attempts`)
      if (state !== 'failed' || reason !== 'unavailable' || isFinished(before.state)) return
      if (!gone.has(`${id} ${attempts}`)) broken(`${id} failed, and the queue did not report that its job is gone`)
      // The first attempt is that of the API, which may have died before it added the job.
      const jobs = [...(added.get(id) ?? [])].filter((attempt) => attempt > 1).length
      if (jobs + (excuses.get(id) ?? 0) < maxAttempts - 1)
        broken(`${id} failed after only ${jobs} jobs of the reconciler`)
    },
    /** The effect of a run, as it takes place. @param lockedAt when its transaction locked the run */
    applied: (row: Row, lockedAt: number) => {
      world().note(`  ${row.id}: takes effect`)
      effects.set(row.id, (effects.get(row.id) ?? 0) + 1)
      if (lockedAt - row.createdAt > staleAfterS * 1_000) broken(`${row.id} was applied after more than an hour`)
    },
    /** Called after each commit, in which effect and result must be together. */
    committed: (row: Row | undefined) => {
      if (row === undefined) return
      const [count, wanted] = [effects.get(row.id) ?? 0, row.state === 'done' && row.applied === true ? 1 : 0]
      if (count !== wanted) broken(`${row.id} is ${row.state}, applied ${row.applied}, and has ${count} effects`)
    },
    vanished: (id: string) => {
      world().note(`  ${id}: its record is lost`)
      lost.add(id)
    },
    added: (id: string, attempt: number) => added.set(id, (added.get(id) ?? new Set()).add(attempt)),
    asked: (id: string, attempt: number, isQueued: boolean) => {
      if (!isQueued) gone.add(`${id} ${attempt}`)
    },
    excused: (id: string) => excuses.set(id, (excuses.get(id) ?? 0) + 1),
    answered: (id: string, answer: Answer) => {
      world().note(`the client of ${id} is answered: ${answer}`)
      answers.set(id, answer)
    },
    /** What a job showed as the end of its run. */
    reported: (id: string, ended: Ended | undefined) => {
      const report = ended === undefined ? 'vanished' : endOf(ended)
      world().note(`a job of ${id} reports: ${report}`)
      reports.set(id, (reports.get(id) ?? new Set()).add(report))
    },
    /** Called at the end. @param row undefined: it was never recorded, or a crash of the database lost it */
    check: (id: string, row: Row | undefined, fate: Fate = 'good') => {
      const end = row === undefined ? 'vanished' : endOf(row)
      if (never[fate].includes(end)) broken(`${id}, which is ${fate}, ended as ${end}`)
      if (end === 'unknown') broken(`${id} has not ended`)
      if (row !== undefined && end === 'failed') {
        const failed = new Set(row.failedAttempts)
        for (let attempt = 1; attempt <= row.attempts; attempt += 1)
          if (!failed.has(attempt)) broken(`${id} failed, and its attempt ${attempt} is not recorded`)
      }
      const count = effects.get(id) ?? 0
      if (count !== (end === 'applied' ? 1 : 0)) broken(`${id} ended as ${end}, and has ${count} effects`)
      const answer = answers.get(id)
      const isTrue = answer === undefined || answer === 'unknown' || answer === end
      if (!isTrue && !(answer === 'cancelled' && end === 'vanished'))
        broken(`${id} was answered with ${answer}, and ended as ${end}`)
      for (const report of reports.get(id) ?? [])
        if (report !== end && !(report === 'vanished' && lost.has(id)))
          broken(`a job reported ${id} as ${report}, and it ended as ${end}`)
      return end
    },
  }
}
