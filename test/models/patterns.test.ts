import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { redirectPattern, regularExpression, regularExpressionLines } from '../../src/models/patterns.ts'
import { costOf, loadEngine } from '../support/kit.ts'
import { testSyntaxes } from './check.ts'

// The rules are those of an operator whose network has the domain corp.internal.
beforeAll(loadEngine)

const raw = String.raw

/** One pattern a line, as people write them. */
const lines = (text: string) => text.trim().split('\n')
const refused = (why: string, text: string) => lines(text).map((pattern) => [pattern, why] as const)

testSyntaxes({
  redirectPattern: {
    check: redirectPattern,
    good: lines(raw`
^https://app\.example\.com/cb$
^https://app[.]example[.]com$
^https:\/\/app\.example\.com:8443\/cb$
^https://app\.example\.com\?state=.*$
^http://localhost:\d+/cb$
^http://127\.0\.0\.1:[0-9]{1,5}$
http://127.0.0.1:[0-9]+/callback
http://127.0.0.1:[0-9]+
http://localhost:[0-9]+(/.*)?
^http://localhost(:[0-9]+)?/.*$
^myapp://callback/\w+$
^https://x/.*$
^https://x/[^/]+/cb$
^https://x/(?:abc)+$
^https://x/(?:[a-z]+/)*$
^https://x/(?P<name>[a-z]+)0{2,3}?$
^https://x/(a|b|)c$
^https://x/c(?:b|allback)(?:\?a=\d*)?$
^https://pr-[0-9]+\.preview\.example\.com/cb$
^https://[a-z0-9-]+\.preview\.example\.com(:[0-9]+)?(/.*)?$
https://app\.example\.com/.*
https://app\.example\.com/.*/cb
https?://app\.example\.com/cb
^https://(app|www|admin)\.example\.com/cb$
^https://(www\.)?example\.com/cb$
^https://(?:[a-z]+\.)?example\.com/$
^https://([a-z0-9-]+\.)*example\.com/$
^https://app\.example\.(com|org|net)/cb$
^https://app\.example\.com/oauth/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/callback$
^https://app\.example\.com/(callback|cb|code)$
^https://app\.example\.com/(oauth|oauth2|oidc)/(callback|cb)/?$
^https://my-app-git-[a-z0-9-]+-team\.my\.vercel\.app/api/auth/callback$
(?i)https://app\.example\.com/cb
^https://\w+\.corp\.internal/cb$
^https://[A-Za-z0-9-]+\.dev\.corp\.internal(:\d+)?/.*$
^com\.example\.app:/oauth2redirect$
app\.immich:///oauth-callback
^https://example\.com(?:/.*)?$
^https://example\.com/?$
^https://example\.com\/*$
^https://a/|https://b$
^https://[a-z]+\.my-org\.github\.io/cb$
^https://\[::1\]:\d+/cb$
^http://[a-z]+\.localhost(:\d+)?/cb$
^https://app\.example\.com/.*/[0-9a-f-]+/cb$
^https://[a-z0-9-]{1,63}-preview\.example\.com/cb$
^https://preview-[0-9a-f]{7,40}\.app\.example\.com/auth/.*$
^https://app\.example\.com/login\?next=.*$
^https://app\.example\.com/[a-z]{2}(-[A-Z]{2})?/cb$
^https://app\.example\.com/tenants/[^/]+/callback(\?.*)?$
^https://(dev|staging|prod)-[0-9]+\.eu\.example\.co\.uk/cb$
https://app\.example\.com(:443)?/index\.php/apps/oidc_login/oidc$
^https://x/(?:a{10}b){50}$
^https://x/(a|ab)(c|bcd)$
^https://x/v?[0-9]+$
^https://a\.b\.com?/$
^https://example\.com(/[a-z]+)*$
^https://x/a\(b+\)$
https://grafana\.example\.com/login/generic_oauth
^https?://(localhost|127\.0\.0\.1):\d+/oauth2/callback$
`),
    bad: [
      ...refused(
        'Must begin with a literal scheme',
        raw`
^.*$
.*
^$
^
cb$
(\w|\d)+
^.+://x/$
^https:x$
^https:///x$
^//x/$
^https://x\.\.com/$
localhost:\d+/cb
myapp:.*
j.vascript://x
ht.ps://x
https?
^https://a/|.*$
`,
      ),
      ...refused(
        'matches any character, and so hosts of others. Write ',
        raw`
^https://app.example.com/$
https://app.example.com/cb
https://vpn.example.com/.*
https://10.206.0.2:8006.*
`,
      ),
      ...refused(
        'can match / @ or #, and so the host of another',
        raw`
http://localhost:.*
http://localhost.*
https://proxmox.*
^https://.*$
^https://[^/]+/$
^https://[^./]+\.example\.com/$
^https://.*\.example\.com/$
^https://(app\.example\.com|.*)/cb$
^https://example\.com.*$
^https://example\.com:.*$
^https://example\.com:\d+.*$
^https://example\.com([^/].*)?$
^https://\S+\.example\.com/$
`,
      ),
      ...refused(
        'in its last label or alone',
        raw`
^https://[a-z]+/$
^https://example\.[a-z]+/$
^https://example\.com[a-z]*/$
^https://app\.example\.com\.?[a-z]*/$
`,
      ),
      ...refused(
        'directly below com, where others have hosts',
        raw`
^https://[a-z]+\.com/$
^https://[a-z]+example\.com/cb$
^https://[a-z.]*example\.com/cb$
^https://(app\.example\.com|[a-z]+\.com)/cb$
^https://(?:[a-z]+\.)+com/$
`,
      ),
      ...refused(
        'directly below co.uk, where others have hosts',
        raw`
^https://[a-z]+\.co\.uk/
^https://([a-z]+\.)?co\.uk/cb$
`,
      ),
      ...refused(
        'where it matches nothing: write',
        raw`
^https://$HOST\.example\.com/cb$
^https://app\.example\.com$/cb$
^https://app\.example\.com/^cb$
`,
      ),
      ...refused('directly below github.io, where others have hosts', raw`^https://[a-z]+\.github\.io/cb$`),
      ...refused('directly below vercel.app, where others have hosts', raw`^https://[a-z0-9-]+\.vercel\.app/cb`),
      ...refused(
        'directly below netlify.app, where others have hosts',
        raw`^https://[a-z0-9-]+--mysite\.netlify\.app/cb$`,
      ),
      ...refused(
        'REDIRECT_PARENT_DOMAINS',
        raw`
^https://[a-z]+\.internal/cb$
^https://[a-z]+\.lan/cb$
^https://[a-z]+\.home\.arpa/cb$
`,
      ),
      ...refused('with http: write https', raw`^http://[a-z]+\.example\.com/cb$`),
      ...refused('@ cannot stand there', raw`^https://example\.com@evil\.com/$`),
      ...refused('s cannot stand there', raw`^https://user:secret@example\.com/$`),
      ...refused('cannot stand there', raw`^https://example\.com\\@evil/$`),
      ...refused(
        'May not be a javascript: URL',
        raw`
javascript://x/.*
(http|https|javascript)://app\.example\.com/
`,
      ),
      ...refused('May not be a data: URL', raw`^data://x/$`),
      ...refused('at most 100 alternatives', raw`^https://(a|b|c|d|e)(a|b|c|d|e)(a|b|c|d|e)\.example\.com/$`),
      ...refused(
        'which can take for ever',
        raw`
^https://x/(a|a)*$
^https://x/(\w|\d)+$
^https://x/(a+)+$
^https://x/(a*)*$
^https://x/(?:a?){2,}$
^https://x/(([a-z])+.)+$
^https://x/(a{2,3}){4,}$
^https://x/.*.*$
^https://x/.*/a/.*$
^https://x(/.*)?(\?.*)?$
^https://x/\d*\w*$
^https://x/a*a*b$
^https://x/[a-z]{1,20}[a-z]{1,20}$
^https://x/(a?b?)*$
^https://x/(?:a*b*)*$
^https://x/(x+x+)+y$
^https://x/(?:\s|\S)*$
^https://x/(?:a?){30}a$
^https://x/(|)(|)$
^https://x/(?:(ab|c+)d?)*?c$
`,
      ),
      ...refused('in very many ways', raw`^https://x/a?a?a?a?a?a?a?a?a?a?$`),
      ...refused('at most 600 characters with repeats', raw`^https://x/(?:a{100}b){7}$`),
      ...refused('has no look-ahead: (?=', raw`^https://x/(?=a)$`),
      ...refused('has no look-ahead: (?!', raw`^https://x/(?!a)$`),
      ...refused('has no look-behind: (?<=', raw`^https://x/(?<=a)$`),
      ...refused('has no look-behind: (?<!', raw`^https://x/(?<!a)$`),
      ...refused(raw`has no back-reference: \1`, raw`^https://x/(a)\1$`),
      ...refused('has no back-reference: (?P', raw`^https://x/(?P<n>a)(?P=n)$`),
      ...refused('has no possessive repeat: ++', raw`^https://x/a++$`),
      ...refused('has no atomic group: (?>', raw`^https://x/(?>a)$`),
      ...refused('at most 1000 times, nested ones multiplied): {1001}', raw`^https://x/a{1001}$`),
      ...refused(
        'engines differ',
        raw`
^(?i)https://x/$
^https://x/\z
^https://x/\pN
^https://x/\bcb
^https://x/[[:alpha:]]
^https://x/(?<n>a)
^https://x/\x{41}
^https://x/(?s).
^https://x/[]a]
^https://x/a{,3}
^https://x/é
^https://x/ a
`,
      ),
      ...refused('Must be a regular expression of RE2: missing closing ).', raw`^https://x/(`),
      ...refused('Must be a regular expression of RE2: missing closing ]: [a.', raw`^https://x/[a`),
      [`^https://x/${'a'.repeat(500)}$`, 'at most 500 characters'],
    ],
  },
  regularExpression: {
    check: regularExpression,
    good: [
      ...[
        '',
        '^/api/.*$',
        'https://foo\\.example\\.com/.*',
        '(a+)+$',
        '[a-z]{2,5}',
        '.*.*',
        '(?i)^/API',
        '(?P<name>a)',
      ],
      ...['\\z', '[[:alpha:]]', '\\pN', '(?<name>a)', '\\bcb', 'é', '\\/-_'],
    ],
    bad: [
      ['(', 'Must be a regular expression of RE2: missing closing ).'],
      ['[', 'Must be a regular expression of RE2: missing closing ].'],
      ['*', 'missing argument to repetition operator'],
      ['a{2,1}', 'has no such repeat'],
      ['\\', 'trailing backslash'],
      ['^/(?!admin)', 'has no look-ahead: (?!.'],
      ['^/(?<!x)a', 'has no look-behind: (?<!x)a.'],
      ['(a)\\1', 'has no back-reference: \\1.'],
      ['a*+', 'has no possessive repeat: *+.'],
      ['(?(1)a|b)', 'has no condition: (?(.'],
      ['\\u0041', 'invalid escape sequence: \\u.'],
      ['(((a{1000}){1000}){1000})+$', 'at most 1000 times'],
    ],
  },
  regularExpressionLines: {
    check: regularExpressionLines,
    good: ['', '^/a$\n^/b$', '^/a$\r\n\r\n^/b$\n'],
    bad: [
      ['^/a$\n(', 'Line 2: Must be a regular expression of RE2: missing closing ).'],
      ['[\n^/b$', 'Line 1: '],
      ['^/healthz$\n^/(?!admin)', 'Line 2: Must be a regular expression of RE2, which has no look-ahead: (?!.'],
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
  expect(costOf(check, { rounds: 1 })).toBeLessThan(80)
  expect(accepted).toBeGreaterThan(300)
})
