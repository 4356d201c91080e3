import type { Db } from '../db/client.ts'
import type { Blueprint } from '../document/document.ts'
import type { Logger } from '../log.ts'
import type { Actor } from '../permissions.ts'
import type { Plan } from '../plan/compile.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import type { AwaitedRun } from '../runs/ended.ts'
import type { NewRun } from '../runs/ledger.ts'
import type { Enqueue } from '../runs/reconcile.ts'
import type { Runs, WaitResult } from '../runs/subscribe.ts'
import type { Tally } from '../runs/tally.ts'
import type { Backlog } from './backlog.ts'
import type { WhyNot } from './why-not.ts'

export type Submitter = {
  readonly db: Db
  readonly engine: Engine
  readonly runs: Runs
  readonly backlog: Backlog
  readonly enqueue: Enqueue
  readonly log: Logger
  readonly tally: Tally
  readonly applyWaitMs: number
  /** Entries that one user may have queued in submissions that are not waited for. */
  readonly queuedEntries: number
  readonly whyNot: WhyNot
}

/** A document that was read from a request. Its errors are in `plan`. */
export type Submission = Pick<NewRun, 'title' | 'kind' | 'slug' | 'former'> & {
  readonly plan: Plan
  readonly blueprint: Blueprint
  readonly conditions: Conditions
  /** The actor who submits it, where that is not the caller alone. */
  readonly actor?: Actor
}

/** The way in which the submitter wants it delivered. */
export type Delivery = {
  /** `Idempotency-Key`; null without one. */
  readonly key: string | null
  /** `Prefer: respond-async`: the answer does not wait for the run. */
  readonly isAsync: boolean
  /** `Gatewright-Message`: the reason for it; null without one. */
  readonly message: string | null
}

/**
 * The reason why the outcome is not known yet: a worker has locked the run, none has it, the database went away, or the answer
 * does not wait.
 */
export type Undecided = Extract<WaitResult, 'locked' | 'unknown'> | 'waiting' | 'accepted'

export type Submitted = { readonly id: string; readonly run: AwaitedRun | Undecided }

/** Milliseconds that are left of `applyWaitMs`. */
export type LeftMs = () => number
