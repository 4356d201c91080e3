import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Difference, differences } from '../src/sides.ts'

const listed = (from: unknown, to: unknown) => differences('f', { from, to }, { length: 60 }).listed
/** The lines as a log has them. */
const text = (from: unknown, to: unknown) =>
  listed(from, to).map((each) => `${each.path} - ${each.from ?? ''} + ${each.to ?? ''}`)
const sides = (all: readonly Difference[]) => ({
  removed: all.flatMap(({ from }) => from ?? []),
  added: all.flatMap(({ to }) => to ?? []),
})

describe('lists of a field', () => {
  test.each([
    [
      ['a', 'b'],
      ['b', 'c'],
      ['f - "a" + ', 'f -  + "c"'],
    ],
    [[{ x: 1 }], [{ x: 1 }, { x: 1 }], ['f -  + {"x":1}']],
    [
      [{ x: 1, y: 2 }],
      [
        { y: 2, x: 1 },
        { y: 3, x: 1 },
      ],
      ['f -  + {"x":1,"y":3}'],
    ],
    [[{ x: 1 }], [{ x: 2 }], ['f - {"x":1} + ', 'f -  + {"x":2}']],
    [[], [1], ['f -  + 1']],
    [['a', 'b'], ['b', 'a'], ['f - ["a","b"] + ["b","a"]']],
    [null, ['a'], ['f - null + ["a"]']],
    [{ not_shown: true }, ['a'], ['f - (not shown) + ["a"]']],
  ])('%j -> %j', (from, to, expected) => {
    expect(text(from, to)).toEqual(expected)
  })

  test('of many items say how many more there are', () => {
    const from = Array.from({ length: 25 }, (_, each) => each)
    const { listed, more } = differences('f', { from, to: ['new'] })
    expect([listed.length, listed.at(-1), more]).toEqual([11, { path: 'f', to: '"new"' }, 15])
  })
})

test.each([
  [{ a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 4 }, a: 1 }, ['f.b.c - 2 + 4']],
  [{ a: 1 }, { b: null }, ['f.a - 1 + ', 'f.b -  + null']],
  [{ list: [{ id: 1 }, { id: 2 }] }, { list: [{ id: 1 }, { id: 3 }] }, ['f.list.1.id - 2 + 3']],
  [{ list: [{ id: 1 }] }, { list: [{ id: 1 }, { id: 3 }] }, ['f.list -  + {"id":3}']],
  [{ list: [1, 2], x: 1 }, { list: [2, 1], x: 2 }, ['f.list - [1,2] + [2,1]', 'f.x - 1 + 2']],
  [{ 'a.b': { 'c d': 1 } }, { 'a.b': { 'c d': 2 } }, ['f."a.b"."c d" - 1 + 2']],
  [{ a: { b: 1 } }, { a: [1] }, ['f.a - {"b":1} + [1]']],
])('objects: %j -> %j', (from, to, expected) => {
  expect(text(from, to)).toEqual(expected)
})

describe('long items of lists', () => {
  const uri = (path: string) => ({ matching_mode: 'strict', url: `https://grafana.monitoring.example.com/${path}` })

  test('of one host are told apart', () => {
    expect(sides(listed([uri('login'), uri('old')], [uri('login'), uri('new'), uri('new/2')]))).toEqual({
      removed: ['…example.com/old"}'],
      added: ['…example.com/new"}', '…example.com/new/2"}'],
    })
  })

  test('are told apart from those that the list keeps', () => {
    expect(sides(listed([uri('login'), uri('old')], [uri('login')])).removed).toEqual(['…example.com/old"}'])
  })

  test('that differ in two places show both', () => {
    const item = (host: string, end: string) => `${host}${'/same'.repeat(30)}${end}`
    const { removed } = sides(listed([item('a', '1'), item('b', '1')], [item('a', '2'), item('b', '2')]))
    expect(removed).toEqual(['"a/same/same/…me/same/same1"', '"b/same/same/…me/same/same1"'])
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
        fc.pre(new Set(from).symmetricDifference(new Set(to)).size > 0)
        const { removed, added } = sides(listed(from, to))
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
    expect(listed(`${same}old`, `${same}new`)).toEqual([
      { path: 'f', from: `…${'x'.repeat(12)}old"`, to: `…${'x'.repeat(12)}new"` },
    ])
  })

  test('that differ never look the same, and never take more than their length', () => {
    const part = fc.string({ maxLength: 300 })
    fc.assert(
      fc.property(part, part, part, part, (start, one, other, end) => {
        fc.pre(one !== other)
        const [{ from = '', to = '' } = {}] = listed(start + one + end, start + other + end)
        expect(from).not.toBe(to)
        expect(Math.max(from.length, to.length)).toBeLessThanOrEqual(64)
      }),
    )
  })
})
