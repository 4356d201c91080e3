/**
 * What a mutant does wrong, and the seeds within which it must be caught. Each is made in the simulation's own parts: the
 * product's code is the same for all.
 */
export const flaws = {
  'no state check': 100,
  'no lock': 100,
  'no rollback': 100,
  'effect outside of the transaction': 100,
  'result outside of the transaction': 100,
  'no age check': 5_000,
  'result reported before the commit': 200,
  'unknown commit taken for a success': 200,
  'attempts are not counted': 200,
  'failed enqueue is counted': 1_000,
  'reconciler writes without a check': 100,
  'every job is taken for queued': 200,
  'job of unknown state is taken for gone': 5_000,
  'cancel without a state check': 200,
  'cancel without a lock': 200,
  'refused cancel is not read': 200,
  'enqueued before it is recorded': 200,
} as const

export type Flaw = keyof typeof flaws

export const flawNames = Object.keys(flaws) as Flaw[]
