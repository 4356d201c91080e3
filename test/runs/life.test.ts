import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  afterLockMs,
  isFinished,
  live,
  maxAttempts,
  patienceS,
  type RunEvent,
  type RunState,
} from '../../src/runs/life.ts'

const events = [
  'wait',
  'enqueue',
  'unqueue',
  'lock',
  'release',
  'finish',
  'fail',
  'cancel',
] as const satisfies RunEvent[]
const states = ['queued', 'running', 'done', 'failed', 'cancelled'] as const satisfies RunState[]

/** Every state and every event; a dot: nothing changes. */
const table: Record<RunState, Record<RunEvent, RunState | '.'>> = {
  queued: {
    wait: '.',
    enqueue: 'queued',
    unqueue: 'queued',
    lock: 'running',
    release: '.',
    finish: '.',
    fail: '.',
    cancel: 'cancelled',
  },
  running: {
    wait: '.',
    enqueue: '.',
    unqueue: '.',
    lock: '.',
    release: 'queued',
    finish: 'done',
    fail: 'failed',
    cancel: '.',
  },
  done: { wait: '.', enqueue: '.', unqueue: '.', lock: '.', release: '.', finish: '.', fail: '.', cancel: '.' },
  failed: { wait: '.', enqueue: '.', unqueue: '.', lock: '.', release: '.', finish: '.', fail: '.', cancel: '.' },
  cancelled: { wait: '.', enqueue: '.', unqueue: '.', lock: '.', release: '.', finish: '.', fail: '.', cancel: '.' },
}
const counts: Partial<Record<RunEvent, number>> = { enqueue: 1, unqueue: -1 }
const cells = states.flatMap((state) => events.map((event) => [state, event, table[state][event]] as const))

test.each(cells)('%s, then %s: %s', (state, event, next) => {
  const before = Object.freeze({ state, attempts: 1 })
  const after = live(before, event)
  if (next === '.') expect(after).toBe(before)
  else expect(after).toEqual({ state: next, attempts: 1 + (counts[event] ?? 0) })
})

test.each([0, 1, 2, 3, 4])('after %i attempts, it is enqueued once more', (attempts) => {
  expect(live({ state: 'queued', attempts }, 'enqueue')).toEqual({ state: 'queued', attempts: attempts + 1 })
})

test('after five attempts, it fails', () => {
  expect(live({ state: 'queued', attempts: maxAttempts }, 'enqueue')).toEqual({ state: 'failed', attempts: 5 })
})

test('a job that could not be added does not count, and attempts are never negative', () => {
  const before = { state: 'queued', attempts: 3 } as const
  expect(live(live(before, 'enqueue'), 'unqueue')).toEqual(before)
  const none = { state: 'queued', attempts: 0 } as const
  expect(live(none, 'unqueue')).toBe(none)
})

test('after any events, a finished run stays as it is and no run has more than five attempts', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...events), { maxLength: 60 }), (happened) => {
      let life = { state: 'queued', attempts: 1 } as ReturnType<typeof live>
      for (const event of happened) {
        const next = live(life, event)
        if (isFinished(life.state)) expect(next).toBe(life)
        // Only an attempt whose job could not be added does not count.
        expect(next.attempts).toBeGreaterThanOrEqual(event === 'unqueue' ? 0 : life.attempts)
        expect(next.attempts).toBeLessThanOrEqual(maxAttempts)
        life = next
      }
    }),
  )
})

test('patience grows, and a run fails after half a minute', () => {
  const waits = [1, 2, 3, 4, 5].map(patienceS)
  expect(waits).toEqual([1, 1, 1, 10, 20])
})

test('a run that was not given a lock comes back after whole milliseconds, the later the older it is', () => {
  expect([0, 1_001, 60_000].map(afterLockMs)).toEqual([500, 501, 5_000])
})
