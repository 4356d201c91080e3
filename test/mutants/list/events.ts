import type { MutantsOf } from '../mutant.ts'

const order = 'test/events/order.test.ts'
const limits = 'test/events/limits.test.ts'
const sight = 'test/events/sight.test.ts'
const streams = 'test/events/streams.test.ts'

/** Streams of events: nothing is omitted, and nobody sees more than the list shows. */
export default {
  'src/runs/positions.ts': [
    {
      from: 'transaction < max && !open.has(transaction)',
      to: 'transaction < max',
      why: 'what commits later than it began is omitted',
      tests: [order],
    },
  ],
  'src/events/event.ts': [
    {
      from: 'idOf(changed.after ?? 0n,',
      to: 'idOf(changed.in ?? 0n,',
      why: 'a reader that comes back omits what had begun before the last event and was committed behind it',
      tests: [order],
    },
    {
      from: '(since === null || !isVisible(since, BigInt(recorded.in)))',
      to: '!(since === null || !isVisible(since, BigInt(recorded.in)))',
      why: 'a new run is not queued',
      tests: [order, streams],
    },
  ],
  'src/runs/changes.ts': [
    {
      from: '(SELECT ${key}, ${column} AS place FROM ${table} WHERE ${column} = ANY(${open}::bigint[]))',
      to: '(SELECT ${key}, ${column} AS place FROM ${table} WHERE ${column} = ANY(${open}::bigint[]) AND false)',
      why: 'what was open at the last read is never read',
      tests: [order],
    },
  ],
  'src/events/conditions.ts': [
    {
      from: 'seen[number] === true',
      to: 'seen[number] !== null',
      why: 'each reader is sent the runs of all',
      tests: [sight],
    },
  ],
  'src/events/streams.ts': [
    {
      from: "if (actor === null) return this.end('rights')",
      to: 'if (actor === null) return',
      why: 'a stream goes on without its token',
      tests: [limits],
    },
    {
      from: 'if (!isEmpty && taken === this.#takenBefore) {',
      to: 'if (!isEmpty && taken < this.#takenBefore) {',
      why: 'a reader that does not read keeps its stream',
      tests: [limits],
    },
  ],
} satisfies MutantsOf
