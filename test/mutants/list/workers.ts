import type { MutantsOf } from '../mutant.ts'

const workers = 'test/queue/workers.test.ts'

/** Which workers there are, and which of them are silent. */
export default {
  'src/queue/workers.ts': [
    {
      from: 'seenS > silentAfterS',
      to: 'false',
      why: 'a silent worker is shown as one that works',
      tests: [workers],
    },
    {
      from: 'ON CONFLICT (id) DO UPDATE SET seen_at = now(), busy = excluded.busy,',
      to: 'ON CONFLICT (id) DO UPDATE SET seen_at = now(),',
      why: 'a worker shows the jobs that it had at its start',
      tests: [workers],
    },
  ],
  'src/http/readiness.ts': [
    {
      from: "detail: ok && silent !== '' ?",
      to: "detail: !ok && silent !== '' ?",
      why: 'readiness does not warn of a silent worker beside others',
      tests: [workers],
    },
  ],
  'src/dashboard/workers.ts': [
    {
      from: "silent === ''",
      to: "silent !== ''",
      why: 'the page says that all workers are heard when one is silent',
      tests: [workers],
    },
  ],
} satisfies MutantsOf
