import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { flawNames, flaws } from './flaws.ts'
import { addUp, simulateAll } from './many.ts'
import { type Outcome, simulate } from './simulate.ts'

/** A short round of `npm run simulation`, and that it catches what is wrong. */

const calls = [
  ...['begin', 'lock', 'apply the first entry', 'apply the second entry', 'commit', 'roll back', 'read the end'],
  ...['end the job', 'delay the job', 'count', 'cancel what is stale', 'read overdue runs', 'ask for the job', 'save'],
  ...['record', 'enqueue', 'read', 'cancel'],
]
/** Where a process may crash: everything that it awaits. */
const points = calls.flatMap((call) => [`${call}, before`, `${call}, after`])

test('in 2 000 simulations all promises hold, and everything that can happen does', async () => {
  const tally = addUp()
  const failed = await simulateAll({ count: 2_000, onEnd: tally.add })
  expect(failed && { seed: failed.seed, broken: failed.broken }).toBeUndefined()
  expect([...tally.ends.keys()].sort()).toEqual(['applied', 'cancelled', 'failed', 'refused', 'vanished'])
  expect([...tally.answers.keys()].sort()).toEqual(['applied', 'cancelled', 'failed', 'refused', 'unknown'])
  expect([...tally.crashes.keys()].sort()).toEqual(points.sort())
})

test.each(flawNames)('a mutant is caught: %s', async (flaw) => {
  const failed = await simulateAll({ count: flaws[flaw], flaw })
  expect(failed?.broken).not.toHaveLength(0)
  // The same seed without the flaw breaks no promise.
  expect((await simulate(failed?.seed ?? 0)).broken).toEqual([])
})

describe('a seed replays', () => {
  test('alone as beside others', async () => {
    const together: Outcome[] = []
    await simulateAll({ count: 100, onEnd: (outcome) => together.push(outcome) })
    const alone: Outcome[] = []
    for (let seed = 1; seed <= 100; seed += 1) alone.push(await simulate(seed))
    expect(together.toSorted((one, other) => one.seed - other.seed)).toEqual(alone)
  })

  test('step by step, and two seeds differ', async () => {
    const [first, again, other] = [await stepsOf(7), await stepsOf(7), await stepsOf(8)]
    expect(first.length).toBeGreaterThan(20)
    expect(again).toEqual(first)
    expect(other).not.toEqual(first)
  })

  test('by the command that a failure prints', async () => {
    const failure = await command('--seeds', '100', '--mutant', 'no lock')
    expect(failure.code).toBe(1)
    const [, broken] = /^seed \d+: (.+)$/m.exec(failure.text) ?? []
    const [, seed = ''] = /^Replay it: npm run simulation -- --seed (\d+) --mutant "no lock"$/m.exec(failure.text) ?? []
    const replay = await command('--seed', seed, '--mutant', 'no lock')
    expect(replay.code).toBe(1)
    expect(replay.text).toMatch(/^ +\d+\.\d{3} s {2}worker \d starts$/m)
    expect(replay.text).toContain(`BROKEN: ${broken}`)
    expect(await command('--seed', seed)).toMatchObject({ code: 0, text: expect.stringContaining('all promises hold') })
  })
})

async function stepsOf(seed: number): Promise<string[]> {
  const steps: string[] = []
  await simulate(seed, { trace: (line) => steps.push(line) })
  return steps
}

const main = fileURLToPath(new URL('main.ts', import.meta.url))

/** Does what `npm run simulation -- <args>` does. */
const command = (...args: string[]) =>
  new Promise<{ code: number; text: string }>((resolve) => {
    execFile(process.execPath, [main, ...args], (error, output, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), text: output + errors }),
    )
  })
