import { expect, test } from 'vitest'
import rac from '../../../src/models/providers/rac.ts'
import { booleanRow, durationRow, testFields, testKind } from '../check.ts'

testKind(rac, {
  verboseName: 'RAC Provider',
  component: 'service-provider-rac-form',
  required: [],
  secrets: ['settings'],
  defaults: { settings: {}, connection_expiry: 'hours=8', delete_token_on_disconnect: false },
})

testFields(rac, [
  [
    'settings',
    [{}, { 'enable-audio': 'false', nested: { list: [1, null, true] } }, '{}', ' {"enable-audio": "false"}\n'],
    [
      ['[]', 'Must be an object.'],
      ['"x"', 'Must be an object.'],
      ['{"a": 1e999}', 'send it as text'],
      ['{"a": {"id": 1056712345678901234}}', 'send it as text'],
      ['{"a": "x\\u0000"}', 'NUL'],
      [`{"a": "${'x'.repeat(100_000)}"}`, 'Must be at most 100000 characters as JSON'],
      [`{}${' '.repeat(400_000)}`, 'Must be an object.'],
      [[], 'Must be an object.'],
      ['x', 'Must be an object.'],
      [null, 'Must be an object.'],
      [{ a: 'x\0' }, 'NUL'],
      [{ a: 'x'.repeat(100_000) }, 'Must be at most 100000 characters as JSON'],
    ],
  ],
  durationRow('connection_expiry'),
  booleanRow('delete_token_on_disconnect'),
])

test('it has no launch URL', () => {
  expect(rac.provider.launchUrl({})).toBeNull()
})
