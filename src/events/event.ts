import type { Progress } from '../queue/define.ts'
import type { ChangedRun, Changes, FailedAttempt } from '../runs/changes.ts'
import { isVisible, type Snapshot } from '../runs/positions.ts'

/** What is sent of runs, of the queue and of workers, and how it is numbered. */

export const eventNames = [
  ...(['queued', 'running', 'progress', 'attempt', 'ended'] as const),
  ...(['queue', 'worker', 'reset'] as const),
]
type EventName = (typeof eventNames)[number]

/** `data` is JSON. Events without an id show the present state: a reader that comes back gets it again. */
export type StreamEvent = {
  readonly event: EventName
  readonly id?: string
  readonly data: string
  /** For readers with `view_run`. */
  readonly dataForViewers?: string
  /** A stream of one run sends it once; by default it is the id. */
  readonly once?: string
}

/** An event of a run, and who sees it, by the number of the condition. */
export type RunEvent = StreamEvent & {
  readonly run: string
  readonly seen: readonly (boolean | null)[]
  /** In which it came about. */
  readonly transaction: bigint
  /** In the order of which it is sent: the last change of its row. */
  readonly place: bigint
}

/** A reader that was away for longer starts anew. */
export const longestAwayS = 3_600

/** Clocks are set, and transactions take a while. */
const marginS = 60

/**
 * The id of an event, the same however often it is sent: from which transaction on a reader has to read again that has
 * seen it, when it came about, and what it is.
 */
const idOf = (after: string | bigint, at: Date, what?: string): string =>
  [after, Math.floor(at.getTime() / 1_000), ...(what === undefined ? [] : [what])].join('-')

export const idOfPlace = ({ min }: Snapshot, now: Date): string => idOf(min, now)

const idForm = /^(\d{1,19})-(\d{1,11})(?:-[\w.-]{1,60})?$/

/** @returns null for what is no id of ours */
export function parseId(id: string): { readonly after: bigint; readonly atS: number } | null {
  const [, after, atS] = idForm.exec(id) ?? []
  return after === undefined ? null : { after: BigInt(after), atS: Number(atS) }
}

/**
 * The events of what changed, in the order in which they are sent.
 *
 * @param since whose runs were recorded in its sight are not `queued` again; null: all are
 */
export function eventsOf({ runs, attempts, now }: Pick<Changes, 'runs' | 'attempts' | 'now'>, since: Snapshot | null) {
  const isFresh = (at: string) => now.getTime() - Date.parse(at) < (longestAwayS + marginS) * 1_000
  const ofAttempts = attempts.filter(({ at }) => isFresh(at)).map(attemptEvent)
  const ofRuns = runs.flatMap((run) => {
    const { recorded, changed, finished_at } = run
    const isNew = recorded.in !== null && (since === null || !isVisible(since, BigInt(recorded.in)))
    const place = run.transaction
    return [
      ...(isNew && isFresh(run.created_at) ? [{ ...queuedEvent(run), place }] : []),
      ...(changed.in !== null && finished_at !== null && isFresh(finished_at) ? [{ ...endedEvent(run), place }] : []),
    ]
  })
  // A stable order: of one transaction, the attempt stands before the end.
  return [...ofAttempts, ...ofRuns].toSorted((one, other) => Number(one.place - other.place))
}

function attemptEvent(attempt: FailedAttempt): RunEvent {
  const { run, recorded, cause, seen, attempt: number } = attempt
  const data = { id: run, attempt: number, at: iso(attempt.at), cause: null }
  const transaction = BigInt(recorded.in)
  return {
    ...{ event: 'attempt', run, seen, transaction, place: transaction },
    id: idOf(recorded.after, new Date(attempt.at), `attempt.${number}-${run}`),
    data: JSON.stringify(data),
    dataForViewers: JSON.stringify({ ...data, cause }),
  }
}

export function queuedEvent(run: ChangedRun): Omit<RunEvent, 'place'> {
  const { id, recorded, seen, created_at } = run
  const then = { state: 'queued', applied: null, reason: null, attempts: 1, started_at: null, finished_at: null }
  return {
    ...{ event: 'queued', run: id, seen, transaction: BigInt(recorded.in ?? 0) },
    ...(recorded.after !== null && { id: idOf(recorded.after, new Date(created_at), `queued-${id}`) }),
    data: JSON.stringify(toData({ ...run, ...then })),
  }
}

export function endedEvent(run: ChangedRun): Omit<RunEvent, 'place'> {
  const { id, changed, seen } = run
  return {
    ...{ event: 'ended', run: id, seen, transaction: BigInt(changed.in ?? 0) },
    // A run that ended before it had a position is sent with an id of its own: nothing is read from there on.
    id: idOf(changed.after ?? 0n, new Date(run.finished_at ?? run.created_at), `ended-${id}`),
    data: JSON.stringify(toData(run)),
  }
}

/** A run that waits, as it is now: it may have been enqueued again since it was recorded. */
export const waitingEvent = (run: ChangedRun): Omit<RunEvent, 'place'> => ({
  ...queuedEvent(run),
  data: JSON.stringify(toData(run)),
})

export const runningEvent = (run: ChangedRun, progress: Progress | null): StreamEvent => ({
  event: 'running',
  once: `running ${run.attempts}`,
  data: JSON.stringify({ ...toData({ ...run, state: 'running' }), progress }),
})

export const progressEvent = (run: string, progress: Progress): StreamEvent => ({
  event: 'progress',
  data: JSON.stringify({ id: run, done: progress.done, total: progress.total }),
})

export const resetEvent = (reason: 'too_old' | 'unknown_id'): StreamEvent => ({
  event: 'reset',
  data: JSON.stringify({ reason }),
})

const iso = (at: string): string => new Date(at).toISOString()

/** A run as events show it: the list's fields, without what depends on rights or may be long. */
function toData(run: Omit<ChangedRun, 'state'> & { readonly state: string }) {
  const { id, state, title, mode, kind, slug, owner, applied, reason, submitter, submitter_name } = run
  const { request_id, attempts, created_at, started_at, finished_at } = run
  const [started, finished] = [
    started_at === null ? null : iso(started_at),
    finished_at === null ? null : iso(finished_at),
  ]
  return {
    ...{ id, state, title, mode, kind, slug, owner, applied, reason, submitter, submitter_name },
    ...{ request_id, attempts, created_at: iso(created_at), started_at: started, finished_at: finished },
    queue_ms: msBetween(created_at, started),
    work_ms: msBetween(started, finished),
  }
}

const msBetween = (from: string | null, to: string | null): number | null =>
  from === null || to === null ? null : Date.parse(to) - Date.parse(from)
