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

describe('callers together', () => {
  test('get an answer that was asked for after they came, and share it', async () => {
    const { ask, answer, count } = byHand()
    const read = shared(0, ask)
    const first = read('all')
    const [second, third] = [read('all'), read('all')]
    expect(count()).toBe(1)
    answer()
    expect(await first).toBe(1)
    await settled()
    expect(count()).toBe(2)
    answer()
    expect(await Promise.all([second, third])).toEqual([2, 2])
    const fourth = read('all')
    answer()
    expect(await fourth).toBe(3)
  })

  test('of another key do not wait', async () => {
    const { ask, answer, count } = byHand()
    const read = shared(0, ask)
    const both = [read('one'), read('other')]
    expect(count()).toBe(2)
    answer()
    answer()
    expect(await Promise.all(both)).toEqual([2, 2])
  })

  test('ask again after an error', async () => {
    const { ask, answer, fail } = byHand()
    const read = shared(0, ask)
    const [first, second] = [read('all'), read('all')]
    fail()
    await expect(first).rejects.toThrow('away')
    await settled()
    answer()
    expect(await second).toBe(2)
  })
})

describe('a kept answer', () => {
  test('is given while it is pending and while it is kept', async () => {
    const { ask, answer, count } = byHand()
    const read = shared(60_000, ask)
    const both = [read('all'), read('all')]
    answer()
    expect(await Promise.all([...both, read('all')])).toEqual([1, 1, 1])
    expect(count()).toBe(1)
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
  for (const keepMs of [0, 60_000]) {
    const { ask, count } = byHand()
    const read = shared(keepMs, ask, 1)
    await expect(read('all')).rejects.toThrow('no answer')
    await settled()
    await expect(read('all')).rejects.toThrow('no answer')
    expect(count()).toBe(2)
  }
})
