import type { MutantsOf } from '../mutant.ts'

const revision = 'test/waits/revision.test.ts'
const waits = 'test/waits/waits.test.ts'

/** When a request that waits is answered, and with whose rights. */
export default {
  'src/waits/revision.ts': [
    {
      from: 'AND NOT pg_visible_in_snapshot(${column}::text::xid8, since.at))`',
      to: 'AND ${column} >= pg_snapshot_xmax(since.at)::text::bigint)`',
      why: 'a transaction that began before others and commits after them is missed',
      tests: [revision],
    },
    {
      from: "OR ${changed('run_attempts', 'recorded_in')} AS",
      to: 'AS',
      why: 'an attempt that fails is no change',
      tests: [revision],
    },
    {
      from: 'JSON.stringify([found.parts, isPaused, known])',
      to: 'JSON.stringify([found.parts, known])',
      why: 'a pause is no change',
      tests: [revision],
    },
    {
      from: "concat_ws(' ', state, attempts, id IN (SELECT id FROM free))",
      to: "concat_ws(' ', state, attempts)",
      why: 'a run that a worker has locked stands as before',
      tests: [revision],
    },
  ],
  'src/waits/watch.ts': [
    {
      from: 'if (now.isChanged || now.digest !== known?.digest || forMs <= 0) return textOf(now)',
      to: 'if (now.digest !== known?.digest || forMs <= 0) return textOf(now)',
      why: 'what has changed before the request came is waited for',
      tests: [waits],
    },
    {
      from: 'for (const { resolve } of this.#waiters) resolve()',
      to: '',
      why: 'a server that stops waits for those that wait',
      tests: [waits],
    },
  ],
  'src/waits/waits.ts': [
    {
      from: 'const leave = () => gone.abort()',
      to: 'const leave = () => {}',
      why: 'a client that is gone keeps its place',
      tests: [waits],
    },
  ],
  'src/api/runs.ts': [
    {
      from: "reply.header('Gatewright-Revision', await waits.untilChanged(request, reply, since, of))",
      to: "reply.header('Gatewright-Revision', await waits.untilChanged(request, reply, since, of)); return",
      why: 'a list that was waited for is read with the rights from before',
      tests: [waits],
    },
  ],
} satisfies MutantsOf
