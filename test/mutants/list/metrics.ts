import type { MutantsOf } from '../mutant.ts'

const ofRuns = 'test/api/metrics-of-runs.test.ts'
const gauges = 'test/api/metrics-gauges.test.ts'
const tally = 'test/runs/tally.test.ts'
const sums = 'test/db/sums.test.ts'

/** What an alert stands on. */
export default {
  'src/runs/work.ts': [
    {
      from: 'task.isUnchanged = result.applied && result.audited.length === 0',
      to: 'task.isUnchanged = false',
      why: 'a run that changed nothing is counted as one that did',
      tests: [ofRuns],
    },
    {
      from: 'worker.tally.attemptFailed(causeClass(error))',
      to: '',
      why: 'failed attempts are counted nowhere',
      tests: [tally],
    },
  ],
  'src/runs/submit.ts': [
    {
      from: "if (end === 'cancelled') tally.ended(",
      to: "if (end === 'vanished') tally.ended(",
      why: 'runs that the API cancelled are counted nowhere',
      tests: [ofRuns],
    },
  ],
  'src/runs/reconcile.ts': [
    {
      from: "tally.ended({ kind: run.kind, mode: run.mode, outcome: 'failed', reason: 'unavailable' })",
      to: '',
      why: 'runs that no worker finished are counted nowhere',
      tests: [tally],
    },
  ],
  'src/db/sums.ts': [
    {
      from: 'for (const [series, by] of written) unwritten.set(series, (unwritten.get(series) ?? 0) + by)',
      to: '',
      why: 'what is counted while the database is away is lost',
      tests: [sums],
    },
  ],
  'src/series.ts': [
    {
      from: '...fromZero.map((values) => seriesOf(metric, ...values)), ...counted',
      to: '...counted',
      why: 'a series of failures begins at 1, and an alert on its increase misses the first',
      tests: [ofRuns],
    },
  ],
  'src/api/metrics.ts': [
    {
      from: 'if (sinceS !== null && !isPaused)',
      to: 'if (sinceS !== null)',
      why: 'a paused queue looks as if its workers were stuck',
      tests: [gauges],
    },
  ],
  'src/process-metrics.ts': [
    {
      from: 'for (const name of misnamed) registry.removeSingleMetric(name)',
      to: '',
      why: 'promtool refuses the scrape',
      tests: [ofRuns],
    },
  ],
} satisfies MutantsOf
