/**
 * The life of a run, as one pure function of state and event, so that it can be read in one place and simulated.
 *
 *            stand · ring (5 at most) · miss
 *             ┌──┐
 *             ▼  │      lock                finish ──► done       (applied, or refused with its reason)
 *   record ► queued ─────────► running ────► fail ───► failed     (a surprise: somebody should look)
 *             │  ▲               │
 *             │  └───────────────┘ release (the worker died or rolled back: its row lock is gone)
 *             ├──► cancelled            cancel: the waiting API gave up, and nothing was applied
 *             └──► failed               a sixth ring: the five before came to nothing
 *
 * The reconciler asks the queue about a run whose patience is over. Its job stands in line: `stand`, nothing is counted.
 * The queue has no such job, or a worker took it and does not hold the run: `ring`, a new job, and it counts. That job
 * could not be added: `miss`, and it does not count after all. The queue is away: nothing happens to the run.
 *
 * `running` is not stored: it is a queued run whose row some transaction has locked, so it cannot outlive its worker.
 */

export type RunState = 'queued' | 'running' | 'done' | 'failed' | 'cancelled'

export type Life = {
  readonly state: RunState
  /** How often the doorbell was rung, by the API and then by the reconciler. */
  readonly rings: number
}

export type RunEvent = 'stand' | 'ring' | 'miss' | 'lock' | 'release' | 'finish' | 'fail' | 'cancel'

/** The doorbell is rung this often before a run fails. */
export const maxRings = 5

export const isFinished = (state: RunState): boolean => state === 'done' || state === 'failed' || state === 'cancelled'

/** @returns the life after the event; the same object when the event changes nothing: a duplicate, or too late */
export function live(life: Life, event: RunEvent): Life {
  const { state, rings } = life
  switch (event) {
    case 'stand':
      return life
    case 'ring':
      if (state !== 'queued') return life
      return rings < maxRings ? { state, rings: rings + 1 } : { state: 'failed', rings }
    case 'miss':
      return state === 'queued' && rings > 0 ? { state, rings: rings - 1 } : life
    case 'lock':
      return state === 'queued' ? { state: 'running', rings } : life
    case 'release':
      return state === 'running' ? { state: 'queued', rings } : life
    case 'finish':
      return state === 'running' ? { state: 'done', rings } : life
    case 'fail':
      return state === 'running' ? { state: 'failed', rings } : life
    case 'cancel':
      return state === 'queued' ? { state: 'cancelled', rings } : life
    default:
      return event satisfies never
  }
}

/**
 * Seconds that a run stays queued and unlocked before the queue is asked about its job; then they begin anew. Quick at
 * first, because a worker that was killed left it and its submitter waits; then patient, because a run that brings its
 * workers down is to leave the other runs some time.
 */
export const patienceS = (rings: number): number => (rings <= 3 ? 1 : 5 * 2 ** (rings - 3))
