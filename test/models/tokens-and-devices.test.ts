import { expect, test } from 'vitest'
import type { Model, Values } from '../../src/models/define.ts'
import token from '../../src/models/token.ts'
import totpDevice from '../../src/models/totp-device.ts'
import userConsent from '../../src/models/user-consent.ts'
import { booleanRow, choiceRow, fieldOf, key, type Row, ruleErrors, testFields, textRow } from './check.ts'

const userRow: Row = [
  'user',
  [1, 2_147_483_647],
  [
    [0, 'Must be at least 1.'],
    [null, 'Must be a whole number.'],
    ['1', 'Must be a whole number.'],
  ],
]

const expiresRow: Row = [
  'expires',
  [null, '2027-01-31T12:00:00Z', '2027-01-31T12:00:00.123456+02:00', '9999-12-31T23:59:59Z'],
  [
    ['2027-01-31', 'Must be a date and time such as 2027-01-31T12:00:00Z.'],
    ['2027-02-30T12:00:00Z', 'Must be a date and time'],
    ['2027-01-31T12:00:00', 'Must be a date and time'],
    ['1899-12-31T23:59:59Z', 'Must be between the years 1900 and 9999.'],
    ['9999-12-31T23:59:59-14:00', 'Must be between the years 1900 and 9999.'],
    [1_700_000_000, 'Must be'],
  ],
]

testFields(token, [
  [
    'identifier',
    ['ci', 'A-b_9', 'x'.repeat(255)],
    [
      ['', 'May not be empty.'],
      ['a b', 'May hold only letters, digits, hyphens and underscores.'],
      ['a\n', 'May hold only letters'],
      ['x'.repeat(256), 'Must be at most 255 characters.'],
      [null, 'Must be text.'],
    ],
  ],
  choiceRow('intent', 'verification', 'api', 'recovery', 'app_password'),
  userRow,
  textRow('description', 2_000),
  expiresRow,
  booleanRow('expiring'),
  [
    'managed',
    [null, 'gatewright/x'],
    [
      ['', 'May not be empty.'],
      ['x'.repeat(256), 'Must be at most 255 characters.'],
    ],
  ],
])

testFields(totpDevice, [
  textRow('name', 64, { filled: true }),
  userRow,
  [
    'key',
    ['ABCDEFGHIJKLMNOP', 'A'.repeat(128)],
    [
      ['ABCDEFGHIJKLMNO', 'Must be a key in base32'],
      ['abcdefghijklmnop', 'Must be a key in base32'],
      ['A'.repeat(129), 'Must be at most 128 characters.'],
    ],
  ],
  [
    'digits',
    [6, 8],
    [
      [7, 'Must be 6 or 8.'],
      ['6', 'Must be 6 or 8.'],
    ],
  ],
  [
    'step',
    [1, 30, 3_600],
    [
      [0, 'Must be at least 1.'],
      [3_601, 'Must be at most 3600.'],
    ],
  ],
  booleanRow('confirmed'),
])

testFields(userConsent, [
  userRow,
  ['application', [key], [['x', 'Must be a UUID.']]],
  textRow('permissions', 500),
  expiresRow,
  booleanRow('expiring'),
])

const needed = (model: Model) => [...model.fields.values()].filter(({ required }) => required).map(({ name }) => name)

test('each model requires exactly the required fields', () => {
  expect(needed(token)).toEqual(['identifier', 'user'])
  expect(needed(totpDevice)).toEqual(['name', 'user'])
  expect(needed(userConsent)).toEqual(['user', 'application'])
})

test("a device's key is generated, sealed and different each time", () => {
  const { generate, storage, secret } = fieldOf(totpDevice, 'key')
  expect(generate?.()).toMatch(/^[A-Z2-7]{32}$/)
  expect(generate?.()).not.toBe(generate?.())
  expect([secret, storage]).toEqual([true, { in: 'sealed', column: 'sealed_key' }])
})

test('a consent that does not expire has no such time', () => {
  const errors = (values: Values) => ruleErrors(userConsent, values)
  expect(errors({ expiring: false, expires: '2027-01-31T12:00:00.000Z' })).toEqual([
    'expires: A consent that does not expire has no such time: send null.',
  ])
  expect([
    ...errors({ expiring: false, expires: null }),
    ...errors({ expiring: true, expires: null }),
    ...errors({ expiring: undefined, expires: undefined }),
  ]).toEqual([])
})

const now = new Date('2027-01-01T00:00:00Z')
const computed = (values: Values, before?: Values, tokenMaxDays = 365) => {
  const errors: string[] = []
  const after = token.compute?.(values, { before, now, tokenMaxDays }, (at) => errors.push(at.join('.')))
  return { expires: after?.expires, errors }
}

test.each<[string, Values, Values | undefined, unknown, string[]]>([
  ['new, not sent', { expires: null, expiring: true }, undefined, '2027-01-31T00:00:00.000Z', []],
  ['new, sent', { expires: '2027-06-01T00:00:00.000Z', expiring: true }, undefined, '2027-06-01T00:00:00.000Z', []],
  ['new, for ever', { expires: null, expiring: false }, undefined, null, []],
  ['both', { expires: '2027-06-01T00:00:00.000Z', expiring: false }, undefined, null, ['expires']],
  ['the past', { expires: now.toISOString(), expiring: true }, undefined, now.toISOString(), ['expires']],
  [
    'expired, and not changed',
    { expires: '2026-01-01T00:00:00.000Z', expiring: true, user: 1 },
    { expires: '2026-01-01T00:00:00.000Z', expiring: true, user: 1 },
    '2026-01-01T00:00:00.000Z',
    [],
  ],
  [
    'no longer for ever',
    { expires: null, expiring: true, user: 1 },
    { expires: null, expiring: false, user: 1 },
    '2027-01-31T00:00:00.000Z',
    [],
  ],
  [
    'now for ever',
    { expires: '2027-06-01T00:00:00.000Z', expiring: false, user: 1 },
    { expires: '2027-06-01T00:00:00.000Z', expiring: true, user: 1 },
    null,
    [],
  ],
  [
    'of another',
    { expires: null, expiring: false, user: 2 },
    { expires: null, expiring: false, user: 1 },
    null,
    ['user'],
  ],
  [
    'of another intent',
    { expires: null, expiring: false, user: 1, intent: 'api' },
    { expires: null, expiring: false, user: 1, intent: 'recovery' },
    null,
    ['intent'],
  ],
  ['fields with errors', { expires: undefined, expiring: undefined, user: undefined }, undefined, undefined, []],
])('when a token expires: %s', (_, values, before, expires, errors) => {
  expect(computed(values, before)).toEqual({ expires, errors })
})

test('a short TOKEN_MAX_DAYS shortens the default', () => {
  expect(computed({ expires: null, expiring: true }, undefined, 7).expires).toBe('2027-01-08T00:00:00.000Z')
})
