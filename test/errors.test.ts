import { describe, expect, test } from 'vitest'
import { ErrorList, type FieldErrors, type FieldPath, Problem } from '../src/errors.ts'

function treeOf(...list: [FieldPath, string][]): FieldErrors {
  const errors = new ErrorList()
  for (const [path, message] of list) errors.add(path, 'invalid_value', message)
  return errors.tree()
}

describe('the tree of errors', () => {
  test.each<[string, [FieldPath, string][], FieldErrors]>([
    ['nothing', [], {}],
    ['a field', [[['slug'], 'Taken.']], { slug: ['Taken.'] }],
    [
      'two errors of a field, in order',
      [
        [['slug'], 'b'],
        [['slug'], 'a'],
      ],
      { slug: ['b', 'a'] },
    ],
    [
      'the same error twice',
      [
        [['slug'], 'Taken.'],
        [['slug'], 'Taken.'],
      ],
      { slug: ['Taken.'] },
    ],
    ['the whole', [[[], 'Empty.']], { non_field_errors: ['Empty.'] }],
    ['a nested field', [[['app', 'slug'], 'Taken.']], { app: { slug: ['Taken.'] } }],
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
  ])('names %s', (_, errors, expected) => {
    expect(treeOf(...errors)).toEqual(expected)
  })

  test('names a hundred errors and counts the rest', () => {
    const tree = treeOf(...Array.from({ length: 130 }, (_, index): [FieldPath, string] => [[`field${index}`], 'Bad.']))
    expect(Object.keys(tree)).toHaveLength(101)
    expect(tree.field99).toEqual(['Bad.'])
    expect(tree.field100).toBeUndefined()
    expect(tree.non_field_errors).toEqual(['30 more errors are not listed.'])
  })

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'accepts %s as a field like any other',
    (field) => {
      const tree = treeOf([[field], 'Unknown.'], [['app', field], 'Unknown.'], [[field, 'polluted'], 'Bad.'])
      const inner = JSON.stringify({ non_field_errors: ['Unknown.'], polluted: ['Bad.'] })
      expect(JSON.stringify(tree)).toBe(`{"${field}":${inner},"app":{"${field}":["Unknown."]}}`)
      expect(Object.prototype).not.toHaveProperty('polluted')
    },
  )

  test('keeps fields apart whose paths are equal as text', () => {
    expect(treeOf([['a', 'b'], 'Bad.'], [['a,b'], 'Bad.'])).toEqual({ a: { b: ['Bad.'] }, 'a,b': ['Bad.'] })
  })
})

test('errors are thrown all at once, and none when there are none', () => {
  const errors = new ErrorList()
  expect(() => errors.throwIfAny()).not.toThrow()
  errors.add(['name'], 'too_short', 'May not be empty.')
  errors.add(['slug'], 'taken', 'Taken.')
  expect(() => errors.throwIfAny()).toThrow(
    expect.objectContaining({ code: 'invalid', fields: { name: ['May not be empty.'], slug: ['Taken.'] } }),
  )
})

test('a problem keeps what caused it', () => {
  const cause = new Error('ECONNREFUSED')
  const problem = new Problem('unavailable', 'Away.', { retryAfterS: 1, cause })
  expect(problem).toMatchObject({ code: 'unavailable', message: 'Away.', retryAfterS: 1, cause, fields: undefined })
  expect(new Problem('not_found', 'Gone.')).not.toHaveProperty('cause')
})
