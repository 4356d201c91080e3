import fc from 'fast-check'
import { expect, test } from 'vitest'
import { redirectPattern } from '../../src/models/patterns.ts'
import { costOf } from '../support/cpu-time.ts'
import { testSyntaxes } from './check.ts'

const form = 'Must begin with ^, a literal scheme and a host whose dots are escaped'
const twoWays = 'May not match the same text in two ways'
const other = 'engines differ'

testSyntaxes({
  redirectPattern: {
    check: redirectPattern,
    good: [
      '^https://app\\.example\\.com/cb$',
      '^https://app[.]example[.]com$',
      '^https:\\/\\/app\\.example\\.com:8443\\/cb$',
      '^https://app\\.example\\.com\\?state=.*$',
      '^http://localhost:\\d+/cb$',
      '^http://127\\.0\\.0\\.1:[0-9]{1,5}$',
      '^myapp://callback/\\w+$',
      '^https://x/.*$',
      '^https://x/[^/]+/cb$',
      '^https://x/(?:abc)+$',
      '^https://x/(?:[a-z]+/)*$',
      '^https://x/(?<name>[a-z]+)0{2,3}?$',
      '^https://x/a\\(b+\\)+$',
      '^https://x/(a|b|)c$',
      '^https://x/c(?:b|allback)(?:\\?a=\\d*)?$',
      '^https://x/(?:a{10}b){100}$',
    ],
    bad: [
      // The whole URI, with a literal scheme and host.
      ...[
        ...[
          '^.*$',
          '.*',
          '^$',
          '^',
          '^https://app',
          'https://app\\.example\\.com/.*',
          'cb$',
          '^https://app\\$',
          '(\\w|\\d)+',
        ],
        ...[
          '^https?://x/$',
          '^(?:https)://x/$',
          '^.+://x/$',
          '^https:x$',
          '^https:///x$',
          '^//x/$',
          '^com\\.example:/cb$',
        ],
        ...['^https://app.example.com/$', '^https://.*$', '^https://[^/]+/$', '^https://.*\\.example\\.com/$'],
        ...['^https://\\w+\\.example\\.com/$', '^https://[a-z.]+\\.example\\.com/$', '^https://[a-z]+/$'],
        ...[
          '^https://[a-z]+\\.com/$',
          '^https://example\\.[a-z]+/$',
          '^https://a\\.b\\.c(?:om)?/$',
          '^https://a\\.b\\.com?/$',
        ],
        ...['^https://(?:[a-z]+\\.)?example\\.com/$', '^https://a\\.?b\\.example\\.com/$', '^https://x\\.\\.com/$'],
        ...[
          '^https://pr-\\d+\\.example\\.com/cb$',
          '^https://(a|b)\\.example\\.com/cb$',
          '^https://[a-z]+\\.github\\.io/cb$',
        ],
        // What follows the host could belong to it.
        ...[
          '^https://example\\.com.*$',
          '^https://example\\.com(?:/.*)?$',
          '^https://example\\.com/?$',
          '^https://example\\.com\\/*$',
        ],
        ...['^https://example\\.com:.*$', '^https://example\\.com:\\d+.*$'],
        ...[
          '^https://example\\.com@evil\\.com/$',
          '^https://user:secret@example\\.com/$',
          '^https://example\\.com\\\\@evil/$',
        ],
        // Alternatives of the whole.
        ...['^https://a$|^https://b$', '^https://a/|b$', '^https://a/|.*$', '^a$|.*$'],
      ].map((pattern) => [pattern, form] as const),
      ...['javascript', 'data', 'vbscript', 'file'].map(
        (scheme) => [`^${scheme}://x/$`, `May not be a ${scheme}: URL`] as const,
      ),
      // One way.
      ...[
        ...[
          '(a|a)*',
          '(\\w|\\d)+',
          '(a|ab)',
          '(?:a|[a-c])',
          '(a|a)',
          '(a+)+',
          '(a*)*',
          '(?:a?){2,}',
          '(?:(ab|c+)d?)*?c',
        ],
        ...[
          '(([a-z])+.)+',
          '(a{2,3}){4}',
          'a*a',
          'a?a',
          'a{2,3}a',
          '.*/cb',
          '.*.*',
          '\\d*\\w*',
          '[^a]*[^b]',
          '(?:a*|b*)',
          '(a?b?)*',
        ],
        ...['(a?|b?)', '(|)', '(?:a|){2}', '(?:a?)?', '()*', '(a*b?)*', '(?:a*b*)*', '(x+x+)+y', '(?:\\s|\\S)*'],
      ].map((pattern) => [`^https://x/${pattern}$`, twoWays] as const),
      // What engines do not share, and what no engine does in linear time.
      ...[
        ...[
          '(?=a)',
          '(?!a)',
          '(?<=a)',
          '(?<!a)',
          '(a)\\1',
          '(?<n>a)\\k<n>',
          '\\b',
          '\\B',
          '\\x41',
          '\\u0041',
          '\\cA',
          '\\0',
        ],
        ...['[]', '[^]', '[[a]', '[\\b]', 'é', '[é]', ' ', '{', '}', ']', '(?i:a)', '\\n'],
      ].map((pattern) => [`^https://x/${pattern}$`, other] as const),
      ['^[^]*$', other],
      ['^https://x/(?:a{100}b){11}$', 'at most 1000 times'],
      ['^https://x/a{1001}$', 'at most 1000 times'],
      [`^https://x/${'a'.repeat(500)}$`, 'at most 500 characters'],
      ['^(', 'Must be a regular expression: Unterminated group.'],
    ],
  },
})

const atoms = ['a', 'b', '.', '[ab]', '[^a]', '\\w', '\\d', '1', '/']
const quantifiers = ['', '', '*', '+', '?', '{2,3}', '*?', '{2}']
const expressions = fc.letrec<{ whole: string; part: string }>((tie) => ({
  whole: fc.array(tie('part'), { maxLength: 5 }).map((each) => each.join('')),
  part: fc.oneof(
    { depthSize: 'small' },
    fc.tuple(fc.constantFrom(...atoms), fc.constantFrom(...quantifiers)).map(([one, times]) => `${one}${times}`),
    fc
      .tuple(fc.array(tie('whole'), { minLength: 1, maxLength: 3 }), fc.constantFrom(...quantifiers))
      .map(([either, times]) => `(?:${either.join('|')})${times}`),
  ),
})).whole

test('what is accepted matches long texts in linear time', () => {
  let accepted = 0
  const long = ['a', 'b', '1', 'ab', 'a1b/', '/'].map((text) => text.repeat(20_000 / text.length))
  const texts = long.flatMap((text) => [`https://x/${text}`, `https://x/${text}\n`])
  const check = () =>
    fc.assert(
      fc.property(expressions, (inner) => {
        const pattern = `^https://x/${inner}$`
        if (redirectPattern(pattern) !== undefined) return
        accepted += 1
        const compiled = new RegExp(pattern)
        for (const text of texts) compiled.test(text)
      }),
      { numRuns: 2_000, seed: 7, endOnFailure: true },
    )
  // One that takes quadratic time costs more than all others together; one that backtracks does not end.
  expect(costOf(check, { rounds: 1 })).toBeLessThan(40)
  expect(accepted).toBeGreaterThan(300)
})
