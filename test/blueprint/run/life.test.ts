import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isFinished, live, maxRings, patienceS, type RunEvent, type RunState } from '../../../src/blueprint/run/life.ts'

const events = ['stand', 'ring', 'miss', 'lock', 'release', 'finish', 'fail', 'cancel'] as const satisfies RunEvent[]
const states = ['queued', 'running', 'done', 'failed', 'cancelled'] as const satisfies RunState[]

/** Every state and every event; a dot is where nothing changes: a duplicate, or too late. */
const table: Record<RunState, Record<RunEvent, RunState | '.'>> = {
  queued: {
    stand: '.',
    ring: 'queued',
    miss: 'queued',
    lock: 'running',
    release: '.',
    finish: '.',
    fail: '.',
    cancel: 'cancelled',
  },
  running: {
    stand: '.',
    ring: '.',
    miss: '.',
    lock: '.',
    release: 'queued',
    finish: 'done',
    fail: 'failed',
    cancel: '.',
  },
  done: { stand: '.', ring: '.', miss: '.', lock: '.', release: '.', finish: '.', fail: '.', cancel: '.' },
  failed: { stand: '.', ring: '.', miss: '.', lock: '.', release: '.', finish: '.', fail: '.', cancel: '.' },
  cancelled: { stand: '.', ring: '.', miss: '.', lock: '.', release: '.', finish: '.', fail: '.', cancel: '.' },
}
const counts: Partial<Record<RunEvent, number>> = { ring: 1, miss: -1 }
const cells = states.flatMap((state) => events.map((event) => [state, event, table[state][event]] as const))

test.each(cells)('%s, then %s: %s', (state, event, next) => {
  const before = Object.freeze({ state, rings: 1 })
  const after = live(before, event)
  if (next === '.') expect(after).toBe(before)
  else expect(after).toEqual({ state: next, rings: 1 + (counts[event] ?? 0) })
})

test.each([0, 1, 2, 3, 4])('rung %i times, it is rung once more', (rings) => {
  expect(live({ state: 'queued', rings }, 'ring')).toEqual({ state: 'queued', rings: rings + 1 })
})

test('rung five times, it fails', () => {
  expect(live({ state: 'queued', rings: maxRings }, 'ring')).toEqual({ state: 'failed', rings: 5 })
})

test('a ring that nobody heard is as if it had not been; less than none were never rung', () => {
  const before = { state: 'queued', rings: 3 } as const
  expect(live(live(before, 'ring'), 'miss')).toEqual(before)
  const unrung = { state: 'queued', rings: 0 } as const
  expect(live(unrung, 'miss')).toBe(unrung)
})

test('whatever happens, what is finished stays as it is and no run is rung more than five times', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...events), { maxLength: 60 }), (happened) => {
      let life = { state: 'queued', rings: 1 } as ReturnType<typeof live>
      for (const event of happened) {
        const next = live(life, event)
        if (isFinished(life.state)) expect(next).toBe(life)
        // Only a ring that nobody heard is taken back.
        expect(next.rings).toBeGreaterThanOrEqual(event === 'miss' ? 0 : life.rings)
        expect(next.rings).toBeLessThanOrEqual(maxRings)
        life = next
      }
    }),
  )
})

test('patience grows, and a run is given up after half a minute', () => {
  const waits = [1, 2, 3, 4, 5].map(patienceS)
  expect(waits).toEqual([1, 1, 1, 10, 20])
})
