import { expect, test } from 'vitest'
import { Problem } from '../../src/errors.ts'
import { Share } from '../../src/http/shares.ts'

let refused = 0
const share = (waitMs: number) =>
  new Share({
    max: 1,
    waitMs,
    refusal: () => new Problem('too_many_requests', 'None is free.'),
    onRefused: () => {
      refused += 1
    },
  })

test('one more is refused when no place is free in time, at once where it need not wait, and the others are not', async () => {
  for (const waitMs of [0, 20]) {
    const places = share(waitMs)
    const [give] = await Promise.all([places.take('a'), places.take('b')])
    const before = refused
    await expect(places.take('a')).rejects.toMatchObject({ code: 'too_many_requests' })
    expect(refused).toBe(before + 1)
    give()
    give()
    await places.take('a')
    await expect(places.take('a')).rejects.toMatchObject({ code: 'too_many_requests' })
  }
})

test('those who wait are let in one after the other', async () => {
  const places = share(60_000)
  const [order, give]: [number[], () => void] = [[], await places.take('a')]
  const all = [1, 2, 3].map(async (each) => {
    const giveBack = await places.take('a')
    order.push(each)
    giveBack()
  })
  await Promise.resolve()
  expect(order).toEqual([])
  give()
  await Promise.all(all)
  expect(order).toEqual([1, 2, 3])
})
