import type { Inspect } from '../http/readiness.ts'
import type { RunList } from '../lists/runs.ts'
import type { Registry } from '../models/registry.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import type { Retention } from '../runs/retention.ts'
import type { Submitter } from '../submissions/submission.ts'
import type { Live } from '../views/one-run.ts'
import type { Waits } from '../waits/waits.ts'

/** What the pages are made of. */
export type Sources = Pick<Submitter, 'db' | 'engine'> & {
  readonly registry: Registry
  readonly runs: RunList
  readonly submitter: Submitter
  readonly queue: ApplyQueue
  readonly inspect: Inspect
  readonly retention: Retention
  readonly waits: Waits
  readonly live: Live
}
