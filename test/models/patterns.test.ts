import fc from 'fast-check'
import { expect, test } from 'vitest'
import { wholePattern } from '../../src/models/patterns.ts'
import { costOf } from '../support/cpu-time.ts'
import { testSyntaxes } from './check.ts'

const whole = 'Must describe the whole URI'
const nested = 'May not repeat a group'

testSyntaxes({
  wholePattern: {
    check: wholePattern,
    good: [
      '^https://app\\.example\\.com/cb$',
      '^https://pr-\\d+\\.example\\.com/cb$',
      '^https://(a|b)\\.example\\.com/cb$',
      '^https://([a-z0-9-]+\\.)?example\\.com/.*$',
      '^https://[(+*|$]{1,9}/$',
      '^(?:abc)+$',
      '^(?<host>[a-z]+)x{2,3}?$',
      '^a\\(b+\\)+$',
    ],
    bad: [
      ['.*', whole],
      ['https://app.example.com/.*', whole],
      ['^https://app', whole],
      ['cb$', whole],
      ['^https://app\\$', whole],
      ['^https://a$|^https://b$', whole],
      ['^a$|.*$', whole],
      ['^(a+)+$', nested],
      ['^(a*)*$', nested],
      ['^(?:a?){2,}$', nested],
      ['^((ab|c+)d)*?$', nested],
      ['^(([a-z])+.)+$', nested],
      ['^(a{2,3}){4}$', nested],
      ['^(', 'Must be a regular expression: Unterminated group.'],
    ],
  },
})

test('what is accepted matches long texts at once', () => {
  const part = fc.constantFrom(
    'a',
    '.',
    '[ab]',
    '(a|b)',
    '(?:ab)',
    'a+',
    '.*',
    'b?',
    '(ab)+',
    '(a+)+',
    '(.*)*',
    '(a?b*)+',
    '|',
  )
  const check = () =>
    fc.assert(
      fc.property(fc.array(part, { maxLength: 3 }), (inner) => {
        const pattern = `^${inner.join('')}$`
        if (wholePattern(pattern) !== undefined) return
        const compiled = new RegExp(pattern)
        compiled.test(`${'ab'.repeat(14)}${'a'.repeat(28)}!`)
      }),
      { numRuns: 500 },
    )
  // One that backtracks takes a thousand times as long.
  expect(costOf(check, 1)).toBeLessThan(5)
})
