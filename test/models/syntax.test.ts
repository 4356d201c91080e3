import { expect, test } from 'vitest'
import * as syntax from '../../src/models/syntax.ts'
import { anyUrl, launchUrl } from '../../src/models/urls.ts'
import { costOf } from '../support/cpu-time.ts'
import { type SyntaxTable, testSyntaxes } from './check.ts'

const long = 'a'.repeat(64)

const tables: Readonly<Record<string, SyntaxTable>> = {
  duration: {
    check: syntax.duration,
    good: [
      'hours=1',
      'hours=1;minutes=30',
      'minutes=-5',
      'seconds=+1.5',
      'seconds=.5',
      'days=0',
      'minutes=86400',
      'microseconds=1;milliseconds=1;seconds=1;minutes=1;hours=1;days=1;weeks=1',
    ],
    bad: [
      ['', 'Must be a duration such as hours=1;minutes=30.'],
      ['hours', 'Must be a duration'],
      ['hours=', 'Must be a duration'],
      ['=1', 'Must be a duration'],
      ['hours=1;', 'Must be a duration'],
      [';hours=1', 'Must be a duration'],
      ['hours=1,minutes=2', 'Must be a duration'],
      ['hours=one', 'Must be a duration'],
      ['hours=1e3', 'Must be a duration'],
      ['hours=NaN', 'Must be a duration'],
      ['hours=Infinity', 'Must be a duration'],
      ['hours=1; minutes=2', 'Must be a duration'],
      ['hours=1=2', 'Must be a duration'],
      ['hours=1\n', 'Must be a duration'],
      ['months=1', 'months is none of microseconds, milliseconds, seconds, minutes, hours, days, weeks.'],
      ['constructor=1', 'constructor is none of'],
      ['hours=1;hours=2', 'hours stands twice.'],
      ['weeks=99999', 'at most 100 years'],
      [`days=${'9'.repeat(400)}`, 'at most 100 years'],
    ],
  },
  domain: {
    check: syntax.domain,
    good: [
      'example.com',
      'Groups.Example.COM',
      'xn--bcher-kva.example',
      'a.b',
      '1.example',
      `${'a'.repeat(63)}.example`,
    ],
    bad: [
      '',
      'example',
      '.example.com',
      'example.com.',
      'exa mple.com',
      '-a.example',
      'a-.example',
      'a..example',
      'bücher.example',
      '192.0.2.1',
      'a_b.example',
      'https://example.com',
      `${long}.example`,
      `${'a.'.repeat(126)}example`,
    ].map((text) => [text, 'Must be a domain name such as example.com']),
  },
  email: {
    check: syntax.email,
    good: [
      ...['ada@example.com', 'ada.l+tag@mail.example.com', "o'hara@example.com", `${long}@example.com`],
      ...['root@localhost', 'ada@example', 'zoë@example.com', 'ада@почта.рф', '山田@例え.jp', 'ada@bücher.example'],
    ],
    bad: [
      '',
      'ada',
      'ada@',
      '@example.com',
      'a da@example.com',
      '.ada@example.com',
      'ada.@example.com',
      'a..b@example.com',
      'a@b@example.com',
      'ada@-x.com',
      `${long}a@example.com`,
      'ada@example.com\n',
      'ada@192.0.2.1',
      'ada@a..b',
      'ada@example.com.',
      'a\u200bda@example.com',
      'a\u202eda@example.com',
      'a\u00a0da@example.com',
      'ada@exa\u0000mple.com',
      `${'ж'.repeat(33)}@example.com`,
    ].map((text) => [text, 'Must be an e-mail address such as ada@example.com.']),
  },
  distinguishedName: {
    check: syntax.distinguishedName,
    good: [
      'DC=ldap,DC=example,DC=com',
      'dc=com',
      'OU=Sales+CN=J.  Smith,DC=example,DC=net',
      'CN=James \\"Jim\\" Smith\\, III,DC=example,DC=net',
      'CN=Before\\0dAfter,DC=example,DC=net',
      '1.3.6.1.4.1.1466.0=#04024869',
      'CN=Lu\\C4\\8Di\\C4\\87',
      'CN=\\ padded\\ ,DC=example',
      'ou=users, dc=example, dc=com',
      'CN=a=b,DC=example',
      'OU=Grüße,DC=example',
    ],
    bad: [
      '',
      'example.com',
      'DC',
      'DC=',
      'DC=,DC=com',
      'DC= ,DC=com',
      'DC=ldap,',
      ',DC=ldap',
      'DC=ldap,,DC=com',
      'DC=a;DC=b',
      'DC=a<b',
      'DC=a"b',
      'DC=a\\',
      'DC=a\\x',
      '1dc=a',
      '1.=a',
      'CN=#0g',
      'CN=#',
      'DC=a+',
      'D C=a',
    ].map((text) => [text, 'Must be a distinguished name such as DC=ldap,DC=example,DC=com.']),
  },
  cidrList: {
    check: syntax.cidrList,
    good: [
      '0.0.0.0/0, ::/0',
      '10.0.0.0/8',
      '10.1.2.3/8',
      '192.0.2.1/32,2001:db8::/32',
      '::ffff:10.0.0.0/104',
      '  10.0.0.0/8  ',
      '10.0.0.1, 2001:db8::1',
      '10.0.0.1/32,10.0.0.2',
    ],
    bad: [
      ['', '"" is none'],
      ['10.0.0', '"10.0.0" is none'],
      ['10.0.0.0/', '"10.0.0.0/" is none'],
      ['10.0.0.0/33', '"10.0.0.0/33" is none'],
      ['10.0.0.0/08', 'Must be networks'],
      ['10.0.0.0/-1', 'Must be networks'],
      ['10.0.0/8', 'Must be networks'],
      ['010.0.0.0/8', 'Must be networks'],
      ['256.0.0.0/8', 'Must be networks'],
      ['::/129', 'Must be networks'],
      ['fe80::1%eth0/64', 'Must be networks'],
      ['10.0.0.0/8,', '"" is none'],
      ['10.0.0.0/8;::/0', 'Must be networks'],
      ['10.0.0.0/8, everywhere', '"everywhere" is none'],
      ['10.0.0.0/8/8', 'Must be networks'],
      [Array.from({ length: 501 }, () => '::/0').join(), 'at most 500 networks'],
    ],
  },
  cookieDomain: {
    check: syntax.cookieDomain,
    good: ['example.com', '.example.com', 'localhost', 'intranet', '.corp.internal'],
    bad: ['', '.', '..example.com', 'example.com.', '192.0.2.1', 'https://example.com', 'a b', '-a'].map((text) => [
      text,
      'Must be a domain name such as example.com',
    ]),
  },
  username: {
    check: syntax.username,
    good: ['ada', 'ada.l+ops@example-1.com_x', 'Zoë', 'Zoe\u0308', '山田'],
    bad: ['', 'a b', 'a/b', 'a:b', 'a\n', 'a\0'].map((text) => [
      text,
      'May hold only letters, digits and @ . + - _ characters.',
    ]),
  },
  path: {
    check: syntax.path,
    good: ['users', 'users/staff', 'a b/c'],
    bad: ['', '/', '/users', 'users/', 'users//staff'].map((text) => [text, 'no slash first, last or twice']),
  },
  storable: {
    check: syntax.storable,
    good: ['', 'ada', '😀', 'a\nb'],
    bad: [
      ['a\0', 'NUL'],
      ['\ud83d', 'surrogate'],
    ],
  },
}

testSyntaxes(tables)

test('texts that could make a pattern backtrack are checked at once', () => {
  const checks = [
    syntax.duration,
    syntax.domain,
    syntax.email,
    syntax.distinguishedName,
    syntax.cidrList,
    syntax.cookieDomain,
    anyUrl,
    launchUrl,
  ]
  const texts = [
    'a'.repeat(2_000),
    'a.'.repeat(1_000),
    `${'a-'.repeat(1_000)}!`,
    `${'1'.repeat(1_999)}x`,
    'DC=a,'.repeat(400),
    `DC=${' '.repeat(1_990)}"`,
    `ada@${'ж'.repeat(1_990)}!`,
    `ada@${'a.'.repeat(990)}!`,
    '%('.repeat(1_000),
    '10.0.0.0/8,'.repeat(180),
  ]
  const checkAll = () => {
    for (const check of checks) for (const text of texts) check(text)
  }
  expect(costOf(checkAll, { enough: 5 })).toBeLessThan(5)
})

test('blankOr accepts an empty text too', () => {
  expect(syntax.blankOr(syntax.domain)('')).toBeUndefined()
  expect(syntax.blankOr(syntax.domain)('x')).toContain('Must be a domain name')
})

const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) })

test.each([
  [{ a: [1, 'x', null, true, { b: -0.5 }] }, undefined],
  [nested(32), undefined],
  [nested(33), 'Must nest at most 32 levels deep.'],
  [{ a: ['x\0'] }, 'NUL'],
  [{ 'a\0': 1 }, 'NUL'],
  [{ a: '\udc00' }, 'surrogate'],
  [{ a: Number.POSITIVE_INFINITY }, 'finite'],
  [{ a: Number.NaN }, 'finite'],
  [{ a: new Date(0) }, 'plain JSON values'],
  [{ a: undefined }, 'plain JSON values'],
  [{ a: 1n }, 'plain JSON values'],
])('storableJson checks %o', (value, message) => {
  const error = syntax.storableJson(value)
  if (message === undefined) expect(error).toBeUndefined()
  else expect(error).toContain(message)
})

test.each([
  [{ a: 1e308 }, 315],
  [{ a: -1.5e300 }, 308],
  [{ a: 1e-300 }, 308],
  [{ a: -2.25e-7 }, 18],
  [{ a: 1e21 }, 28],
  [{ a: [0, -0, 1.5, 123456789] }, 25],
  [{ a: 'é' }, 9],
])('storedLength of %o is that of its text without exponents: %i', (value, length) => {
  expect(syntax.storedLength(value)).toBe(length)
})
