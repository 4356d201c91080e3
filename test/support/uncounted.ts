import type { Tally } from '../../src/runs/tally.ts'

/** The tally of tests that ask for no metrics. */
export const uncounted: Tally = { ended: () => {}, attemptFailed: () => {}, workerStarted: () => {} }
