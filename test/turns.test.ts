import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { alone, turns } from '../src/turns.ts'

/** Long work of one process, and the others who wait for their steps. */

const compute = (ms: number) => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test('of many long works, one has its turn in a turn of the event loop', async () => {
  const inOneTurn: number[] = []
  let did = 0
  let working = 6
  const work = async () => {
    const takeTurns = turns()
    for (let step = 0; step < 20; step += 1) {
      compute(4)
      did += 1
      await takeTurns()
    }
    working -= 1
  }
  const all = Promise.all(Array.from({ length: working }, work))
  // Each began at once: from then on they take turns.
  for (did = 0; working > 0; did = 0) {
    await setImmediate()
    inOneTurn.push(did)
  }
  await all
  expect(Math.max(...inOneTurn)).toBeLessThanOrEqual(2)
  expect(inOneTurn.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(100)
})

test('work that cannot pause is done one by one, and those who ask for it take turns', async () => {
  const done: string[] = []
  const ask = (who: string, count: number) =>
    Array.from({ length: count }, (_, index) => alone(who, () => done.push(`${who}${index}`)))
  await Promise.all([...ask('a', 4), ...ask('b', 2), ...ask('c', 1)])
  expect(done).toEqual(['a0', 'b0', 'c0', 'a1', 'b1', 'a2', 'a3'])
})

test('others have their turns between such works, and an error is of its own work alone', async () => {
  let turnsOfOthers = 0
  const works = Array.from({ length: 4 }, (_, index) =>
    alone('a', () => {
      compute(10)
      if (index === 1) throw new Error('broken')
      return turnsOfOthers
    }),
  )
  let isOver = false
  const others = (async () => {
    for (; !isOver; turnsOfOthers += 1) await setImmediate()
  })()
  const seen = await Promise.allSettled(works)
  isOver = true
  await others
  expect(seen.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
  const counts = seen.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
  for (const [index, count] of counts.slice(1).entries()) expect(count).toBeGreaterThan((counts[index] ?? 0) + 1)
})
