import { expect, test } from 'vitest'
import { afterLockMs, patienceS } from '../../src/runs/life.ts'

test('patience grows, and a run fails after half a minute', () => {
  const waits = [1, 2, 3, 4, 5].map(patienceS)
  expect(waits).toEqual([1, 1, 1, 10, 20])
})

test('a run that was not given a lock comes back after whole milliseconds, the later the older it is', () => {
  expect([0, 1_001, 60_000].map(afterLockMs)).toEqual([500, 501, 5_000])
})
