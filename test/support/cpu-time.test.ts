import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { cpuMs, cpuMsOf, longestTurnMs } from './cpu-time.ts'

function compute(ms: number): void {
  const from = cpuMs()
  while (cpuMs() - from < ms);
}

test('computing counts, waiting does not', async () => {
  expect(cpuMsOf(() => compute(30))).toBeGreaterThanOrEqual(30)
  // What other tests of the process left behind computes at times: the calmest of five.
  const waits: number[] = []
  for (let round = 0; round < 5; round += 1) {
    const from = cpuMs()
    await setTimeout(200)
    waits.push(cpuMs() - from)
  }
  expect(Math.min(...waits)).toBeLessThan(100)
})

test('the longest turn counts, not all of them', async () => {
  const turns = async () => {
    for (let turn = 0; turn < 10; turn += 1) {
      compute(20)
      await setTimeout(5)
    }
  }
  const longest = await longestTurnMs(turns)
  expect(longest).toBeGreaterThanOrEqual(20)
  expect(longest).toBeLessThan(150)
})
