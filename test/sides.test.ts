import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cutSides, itemsOf } from '../src/sides.ts'

describe('lists', () => {
  test.each([
    [['a', 'b'], ['b', 'c'], { removed: ['"a"'], added: ['"c"'] }],
    [[{ x: 1 }], [{ x: 1 }, { x: 1 }], { removed: [], added: ['{"x":1}'] }],
    [[], [1], { removed: [], added: ['1'] }],
    [['a', 'b'], ['b', 'a'], null],
    [null, ['a'], null],
  ])('%j -> %j', (from, to, sides) => {
    expect(itemsOf(from, to)).toEqual(sides)
  })

  test('of many items say how many more there are', () => {
    const added = itemsOf(
      [],
      Array.from({ length: 25 }, (_, each) => each),
    )?.added
    expect([added?.length, added?.at(-1)]).toEqual([11, '15 more'])
  })
})

describe('long texts', () => {
  test('that differ at their end are shown from there', () => {
    const same = 'x'.repeat(500)
    const [from, to] = cutSides(`${same}old`, `${same}new`)
    expect([from, to]).toEqual([`…${'x'.repeat(12)}old`, `…${'x'.repeat(12)}new`])
  })

  test('that differ never look the same, and never take more than their length', () => {
    const text = fc.string({ maxLength: 300 })
    fc.assert(
      fc.property(text, text, text, text, (start, one, other, end) => {
        fc.pre(one !== other)
        const [from, to] = cutSides(start + one + end, start + other + end)
        expect(from).not.toBe(to)
        expect(Math.max(from.length, to.length)).toBeLessThanOrEqual(62)
      }),
    )
  })
})
