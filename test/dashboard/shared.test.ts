import { describe, expect, test } from 'vitest'
import { shared } from '../../src/dashboard/now/shared.ts'

/** @returns a question that is answered by hand, with the number of the answer */
function byHand() {
  const open: PromiseWithResolvers<number>[] = []
  let asked = 0
  return {
    ask: () => {
      asked += 1
      const one = Promise.withResolvers<number>()
      open.push(one)
      return one.promise
    },
    answer: () => open.shift()?.resolve(asked),
    fail: () => open.shift()?.reject(new Error('away')),
    count: () => asked,
  }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('a kept answer', () => {
  test('is given while it is pending and while it is kept', async () => {
    const { ask, answer, count } = byHand()
    const read = shared(60_000, ask)
    const both = [read('all'), read('all')]
    answer()
    expect(await Promise.all([...both, read('all')])).toEqual([1, 1, 1])
    expect(count()).toBe(1)
  })

  test('of another key is another one', async () => {
    const { ask, answer, count } = byHand()
    const read = shared(60_000, ask)
    const both = [read('one'), read('other')]
    expect(count()).toBe(2)
    answer()
    answer()
    expect(await Promise.all(both)).toEqual([2, 2])
  })

  test('is no error', async () => {
    const { ask, answer, fail } = byHand()
    const read = shared(60_000, ask)
    const failing = read('all')
    fail()
    await expect(failing).rejects.toThrow('away')
    const next = read('all')
    answer()
    expect(await next).toBe(2)
  })
})

test('a question that is never answered fails, and the next caller asks again', async () => {
  const { ask, count } = byHand()
  const read = shared(60_000, ask, 1)
  await expect(read('all')).rejects.toThrow('no answer')
  await settled()
  await expect(read('all')).rejects.toThrow('no answer')
  expect(count()).toBe(2)
})
