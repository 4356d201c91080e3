import { describe, expect, test } from 'vitest'
import { Faults, type FieldErrors, type FieldPath, Problem } from '../src/errors.ts'
import { cpuMsOf } from './support/cpu-time.ts'

function treeOf(...list: [FieldPath, string][]): FieldErrors {
  const faults = new Faults()
  for (const [path, message] of list) faults.add(path, message)
  return faults.tree()
}

describe('the tree of faults', () => {
  test.each<[string, [FieldPath, string][], FieldErrors]>([
    ['nothing', [], {}],
    ['a member', [[['slug'], 'Taken.']], { slug: ['Taken.'] }],
    [
      'two faults of a member, in order',
      [
        [['slug'], 'b'],
        [['slug'], 'a'],
      ],
      { slug: ['b', 'a'] },
    ],
    [
      'the same fault told twice',
      [
        [['slug'], 'Taken.'],
        [['slug'], 'Taken.'],
      ],
      { slug: ['Taken.'] },
    ],
    ['the whole', [[[], 'Empty.']], { non_field_errors: ['Empty.'] }],
    ['a nested member', [[['app', 'slug'], 'Taken.']], { app: { slug: ['Taken.'] } }],
    [
      'list items by index',
      [
        [['uris', 0, 'url'], 'No.'],
        [['uris', 12], 'Long.'],
      ],
      { uris: { '0': { url: ['No.'] }, '12': ['Long.'] } },
    ],
    [
      'a whole before its inside',
      [
        [['app'], 'Bad.'],
        [['app', 'slug'], 'Taken.'],
      ],
      { app: { non_field_errors: ['Bad.'], slug: ['Taken.'] } },
    ],
    [
      'an inside before its whole',
      [
        [['app', 'slug'], 'Taken.'],
        [['app'], 'Bad.'],
      ],
      { app: { slug: ['Taken.'], non_field_errors: ['Bad.'] } },
    ],
  ])('names %s', (_, faults, expected) => {
    expect(treeOf(...faults)).toEqual(expected)
  })

  test('names a hundred faults and counts the rest', () => {
    const tree = treeOf(...Array.from({ length: 130 }, (_, index): [FieldPath, string] => [[`member${index}`], 'Bad.']))
    expect(Object.keys(tree)).toHaveLength(101)
    expect(tree.member99).toEqual(['Bad.'])
    expect(tree.member100).toBeUndefined()
    expect(tree.non_field_errors).toEqual(['30 more faults are not listed.'])
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'takes %s for a member like any other',
    (member) => {
      const tree = treeOf([[member], 'Unknown.'], [['app', member], 'Unknown.'], [[member, 'polluted'], 'Bad.'])
      const inner = JSON.stringify({ non_field_errors: ['Unknown.'], polluted: ['Bad.'] })
      expect(JSON.stringify(tree)).toBe(`{"${member}":${inner},"app":{"${member}":["Unknown."]}}`)
      expect(Object.prototype).not.toHaveProperty('polluted')
    },
  )

  test('keeps members apart whose paths look alike as text', () => {
    expect(treeOf([['a', 'b'], 'Bad.'], [['a,b'], 'Bad.'])).toEqual({ a: { b: ['Bad.'] }, 'a,b': ['Bad.'] })
  })
})

test('faults are thrown all at once, and none when there are none', () => {
  const faults = new Faults()
  expect(() => faults.throwIfAny()).not.toThrow()
  faults.add(['name'], 'May not be empty.')
  faults.add(['slug'], 'Taken.')
  expect(() => faults.throwIfAny()).toThrow(
    expect.objectContaining({ code: 'invalid', fields: { name: ['May not be empty.'], slug: ['Taken.'] } }),
  )
})

test('gathering many faults takes time in proportion', () => {
  const faults = new Faults()
  const gather = () => {
    for (let index = 0; index < 20_000; index += 1) faults.add(['list', index], 'Bad.')
  }
  expect(cpuMsOf(gather)).toBeLessThan(1_000)
})

test('a problem keeps what caused it', () => {
  const cause = new Error('ECONNREFUSED')
  const problem = new Problem('unavailable', 'Away.', { retryAfterS: 1, cause })
  expect(problem).toMatchObject({ code: 'unavailable', message: 'Away.', retryAfterS: 1, cause, fields: undefined })
  expect(new Problem('not_found', 'Gone.')).not.toHaveProperty('cause')
})
