import type { Condition } from '../runs/changes.ts'
import type { StreamEvent } from './event.ts'

/** One reader of events. */
export type Reader = {
  /** Which runs it may see. */
  readonly condition: Condition
  /** Whether it gets events of the queue and of workers. */
  readonly seesQueue: boolean
  /** @returns waits until it has room for more, or is gone */
  send(events: readonly StreamEvent[]): Promise<void>
  /** Ends it. */
  tooSlow(): void
}
