import type { MutantsOf } from '../mutant.ts'

const workers = 'test/queue/workers.test.ts'

/** Which workers there are, and which of them are silent. */
export default {
  'src/db/presence.ts': [
    {
      from: 'seenS > silentAfterS',
      to: 'false',
      why: 'a silent worker is shown as one that works',
      tests: [workers],
    },
    {
      from: 'slots = excluded.slots, busy = excluded.busy,',
      to: 'slots = excluded.slots,',
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
      from: "silent !== ''",
      to: "silent === ''",
      why: 'the page says that all workers are heard when one is silent',
      tests: [workers],
    },
  ],
} satisfies MutantsOf
