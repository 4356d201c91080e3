import type { Sums } from '../db/sums.ts'
import type { Registry } from '../models/registry.ts'
import { type Metric, observed, seriesOf } from '../series.ts'
import { type CauseClass, causeClasses } from './cause.ts'
import type { Outcome } from './outcome.ts'
import { whyCodes } from './why.ts'

/** Counts of runs, by the process that ends them. */

/** A run that ended, whether anything waited for it or not. */
export type EndedRun = {
  readonly mode: Mode
  /** The provider's kind, or `blueprint`. */
  readonly kind: string
  readonly outcome: Ending
  /** A code of the closed catalogue; of a cancelled run, the code of `why.ts`; null when there is none. */
  readonly reason: string | null
  /** Milliseconds from its record to the start of the transaction that ended it. Absent when no worker worked on it. */
  readonly queueMs?: number
  /** Milliseconds in the worker. */
  readonly workMs?: number
}

type Mode = 'apply' | 'plan'
const modes: readonly Mode[] = ['apply', 'plan']

/** The end of a run, which may be a plan. */
type Ending = Outcome | 'planned'

export type Tally = {
  ended(run: EndedRun): void
  /** Counts a failed attempt: the run goes on, or has failed with it. */
  attemptFailed(cause: CauseClass): void
  workerStarted(): void
}

const none = 'none'

/** Every combination that a run can end with, for all modes and kinds. */
const ends: readonly (readonly [Mode, Ending, string])[] = [
  ['apply', 'applied', none],
  ['apply', 'unchanged', none],
  ['plan', 'planned', none],
  ...modes.flatMap((mode) => [
    ...(['permission_denied', 'not_found', 'precondition_failed', 'invalid', 'conflict'] as const).map(
      (reason) => [mode, 'refused', reason] as const,
    ),
    ...(['server_error', 'unavailable'] as const).map((reason) => [mode, 'failed', reason] as const),
    ...whyCodes.map((code) => [mode, 'cancelled', code] as const),
  ]),
]

const seconds = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 300] as const

/**
 * The metrics of runs.
 *
 * @param prefix `gatewright_` for the sums of all processes, `gatewright_worker_` for the counts of one worker
 */
export function runMetrics({ kinds }: Pick<Registry, 'kinds'>, prefix: string) {
  const allKinds = [...kinds.keys(), 'blueprint']
  const named = (name: string, help: string) => ({ name: `${prefix}${name}`, help, labels: [], fromZero: [[]] })
  return {
    ended: {
      ...named(
        'runs_ended_total',
        'Runs that ended, by the process that ended them: applied, unchanged, planned, refused (the submitter can fix it), failed (an operator must act), cancelled (nothing was applied).',
      ),
      labels: ['mode', 'kind', 'outcome', 'reason'],
      fromZero: allKinds.flatMap((kind) => ends.map(([mode, outcome, reason]) => [mode, kind, outcome, reason])),
    },
    queueSeconds: {
      ...named('run_queue_seconds', 'From the record of a run until a worker first had it.'),
      buckets: seconds,
    },
    workSeconds: {
      ...named('run_work_seconds', 'From when a worker first had a run to its end, with all tries.'),
      buckets: seconds,
    },
    attemptsFailed: {
      ...named('run_attempts_failed_total', 'Attempts that failed, by the class of their cause.'),
      labels: ['cause'],
      fromZero: causeClasses.map((cause) => [cause]),
    },
    workerStarts: named('worker_starts_total', 'Starts of worker processes.'),
  } satisfies Readonly<Record<string, Metric>>
}

/** Counts in this process, and for all processes. */
export function openTally(sums: Pick<Sums, 'add'>, registry: Pick<Registry, 'kinds'>): Tally {
  const metrics = runMetrics(registry, 'gatewright_')
  const observe = (metric: Metric, ms: number | undefined) => {
    if (ms === undefined) return
    for (const [series, by] of observed(metric, Math.max(0, ms) / 1_000)) sums.add(series, by)
  }
  return {
    ended: ({ mode, kind, outcome, reason, queueMs, workMs }) => {
      const known = registry.kinds.has(kind) || kind === 'blueprint' ? kind : 'other'
      sums.add(seriesOf(metrics.ended, mode, known, outcome, reason ?? none))
      observe(metrics.queueSeconds, queueMs)
      observe(metrics.workSeconds, workMs)
    },
    attemptFailed: (cause) => sums.add(seriesOf(metrics.attemptsFailed, cause)),
    workerStarted: () => sums.add(seriesOf(metrics.workerStarts)),
  }
}
