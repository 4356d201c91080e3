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

describe('long items of lists', () => {
  const uri = (path: string) => ({ matching_mode: 'strict', url: `https://grafana.monitoring.example.com/${path}` })

  test('of one host are told apart', () => {
    const sides = itemsOf([uri('login'), uri('old')], [uri('login'), uri('new'), uri('new/2')])
    expect(sides).toEqual({
      removed: ['…example.com/old"}'],
      added: ['…example.com/new"}', '…example.com/new/2"}'],
    })
  })

  test('are told apart from those that the list keeps', () => {
    expect(itemsOf([uri('login'), uri('old')], [uri('login')])?.removed).toEqual(['…example.com/old"}'])
  })

  test('that differ in two places show both', () => {
    const item = (host: string, end: string) => `${host}${'/same'.repeat(30)}${end}`
    const sides = itemsOf([item('a', '1'), item('b', '1')], [item('a', '2'), item('b', '2')])
    expect(sides?.removed).toEqual(['"a/same/same/…me/same/same1"', '"b/same/same/…me/same/same1"'])
  })

  test('that differ never look the same', () => {
    const part = fc.oneof(
      fc.constantFrom('x'.repeat(80), 'same'.repeat(40), '😀', '😁', '…'),
      fc.string({ maxLength: 90 }),
    )
    const item = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''))
    const list = fc.uniqueArray(item, { maxLength: 10 })
    fc.assert(
      fc.property(list, list, (from, to) => {
        const { removed = [], added = [] } = itemsOf(from, to) ?? {}
        const shown = [...removed, ...added].map((each) => each.toWellFormed())
        expect(new Set(shown).size).toBe(shown.length)
        expect(Math.max(0, ...shown.map(({ length }) => length))).toBeLessThanOrEqual(62 + 20 * 25)
      }),
    )
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
