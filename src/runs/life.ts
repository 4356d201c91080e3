/**
 * The life of a run. The simulation of runs checks each change of a row against it, as one function of state and event.
 *
 *            wait · enqueue (5 at most) · unqueue
 *             ┌──┐
 *             ▼  │      lock                finish ──► done       (applied, or refused with its reason)
 *   record ► queued ─────────► running ────► fail ───► failed     (a bug: an operator must act)
 *             │  ▲               │
 *             │  └───────────────┘ release (the worker died or rolled back: its row lock is gone)
 *             ├──► cancelled            cancel: the API waited too long, the run was queued for an hour, or a user did it;
 *             │                         nothing was applied
 *             └──► failed               a sixth enqueue: five attempts failed
 *
 * The reconciler asks the queue about a run that has waited for long:
 * - its job is still queued: `wait`, and no attempt is counted
 * - the queue has no such job, or a worker took it and has not locked the run: `enqueue`, a new attempt
 * - the new job could not be added: `unqueue`, and the attempt is not counted
 * - the queue is away: no event
 *
 * `running` is not stored. A queued run is running while a worker has locked its row, so the state ends with the worker.
 */

export type RunState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

export type Life = {
  readonly state: RunState
  /** The number of times that it was enqueued: once by the API, then by the reconciler. */
  readonly attempts: number
}

export const maxAttempts = 5

/** A run that has been queued for longer is never applied. */
export const staleAfterS = 3_600

/** A job whose attempt failed comes back after this time, to report the outcome of its run. */
export const comesBackAfterMs = 5_000

/** A run that was left in the queue: its job comes back, and no attempt is counted. */
export class NotYet extends Error {
  readonly afterMs: number
  constructor(message: string, afterMs = comesBackAfterMs, options?: ErrorOptions) {
    super(message, options)
    this.afterMs = afterMs
  }
}

/** Milliseconds after which a run whose turn has not come comes back by itself, if the reconciler does not wake it before. */
export const notItsTurnMs = 10_000

/**
 * Milliseconds after which a run that was not given a lock comes back: sooner while it is young. A whole number: the queue stores
 * no parts of milliseconds.
 */
export const afterLockMs = (ageMs: number): number => Math.min(comesBackAfterMs, Math.max(500, Math.ceil(ageMs / 2)))

export const isFinished = (state: RunState): boolean => state === 'done' || state === 'failed' || state === 'cancelled'

/**
 * Seconds that a run stays queued and unlocked until the reconciler checks its job, and between two such checks. They are few at
 * first, because the submitter of a run still waits after its worker was killed. Then they grow, so that a run that crashes
 * workers leaves time for other runs.
 */
export const patienceS = (attempts: number): number => (attempts <= 3 ? 1 : 5 * 2 ** (attempts - 3))
