import { describe, expect, test } from 'vitest'
import { isRegistered } from '../../examples/sign-in/redirects.ts'
import { redirectPattern } from '../../src/models/patterns.ts'
import { redirectUri } from '../../src/models/urls.ts'

/** The matcher of examples/sign-in against what the product promises of `redirect_uris` (docs/apply.md, docs/adr/0120). */

const strict = (url: string) => [{ matching_mode: 'strict', url }]
const regex = (url: string) => [{ matching_mode: 'regex', url }]

describe('strict', () => {
  const url = 'https://app.example.com/cb?a=1'
  test.each([url, 'myapp:/cb', 'http://localhost:3000/', 'https://[::1]:8443/cb'])('is itself: %s', (own) => {
    expect(redirectUri(own)).toBeUndefined()
    expect(isRegistered(strict(own), own)).toBe(true)
  })

  test.each([
    `${url}&b=2`,
    `${url}#fragment`,
    url.replace('app', 'APP'),
    url.replace('https', 'http'),
    url.replace('.com', '.com:443'),
    url.replace('/cb', '/cb/'),
    url.replace('/cb', '/x/../cb'),
    url.replace('cb', '%63b'),
    ` ${url}`,
    '',
  ])('is nothing else: %s', (other) => {
    expect(isRegistered(strict(url), other)).toBe(false)
  })

  test('a URI that may not be registered is refused even where an earlier version stored it', () => {
    const never = [
      ...['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '/cb', 'https://app.example.com/#x'],
      ...['https://user:secret@app.example.com/', 'https://app.example.com\\@evil.example/', 'https://a.example/\tx'],
    ]
    for (const each of never) {
      expect.soft(redirectUri(each), each).toBeDefined()
      expect.soft(isRegistered([...strict(each), ...regex('.*')], each), each).toBe(false)
    }
  })
})

describe('a pattern', () => {
  const cases: [pattern: string, yes: string[], no: string[]][] = [
    [
      '^https://preview\\.example\\.com/pr-\\d+/cb$',
      ['https://preview.example.com/pr-1/cb', 'https://preview.example.com/pr-12345/cb'],
      [
        'https://preview.example.com/pr-/cb',
        'https://previewXexample.com/pr-1/cb',
        'https://preview.example.com/pr-1/cb?x',
      ],
    ],
    [
      'https://app\\.example\\.com/cb',
      ['https://app.example.com/cb'],
      [
        'https://app.example.com/cb/more',
        'https://evil.example/?https://app.example.com/cb',
        'https://app.example.com/cb\n',
      ],
    ],
    [
      'https://[a-z0-9-]+\\.apps\\.example\\.com(?::[0-9]+)?/.*',
      ['https://one.apps.example.com/', 'https://two.apps.example.com:8443/x/y?z'],
      ['https://apps.example.com/', 'https://one.two.apps.example.com/', 'https://one.apps.example.com/#x'],
    ],
    [
      '(?i)https://(?:one|two)\\.example\\.com/cb',
      ['https://one.example.com/cb', 'HTTPS://TWO.example.com/CB'],
      ['https://three.example.com/cb', 'https://one.example.com/cb '],
    ],
    ['https://app\\.example\\.com/(?P<name>a|b){2}', ['https://app.example.com/ab'], ['https://app.example.com/a']],
  ]

  test.each(cases)('%s matches a URI as a whole', (pattern, yes, no) => {
    expect(redirectPattern(pattern)).toBeUndefined()
    // Another engine, which every accepted pattern is promised to suit, decides the same.
    const [flags, body] = pattern.startsWith('(?i)') ? ['i', pattern.slice(4)] : ['', pattern]
    const other = new RegExp(`^(?:${body.replaceAll('(?P<', '(?<')})$`, flags)
    for (const uri of yes) expect.soft([isRegistered(regex(pattern), uri), other.test(uri)], uri).toEqual([true, true])
    for (const uri of no) expect.soft(isRegistered(regex(pattern), uri), uri).toBe(false)
  })

  test('of a mode that is not known matches nothing', () => {
    expect(
      isRegistered([{ matching_mode: 'glob', url: 'https://app.example.com/cb' }], 'https://app.example.com/cb'),
    ).toBe(false)
  })

  test('is not needed to be the first', () => {
    const registered = [...strict('https://a.example/cb'), ...regex('https://b\\.example\\.com/.*')]
    expect(isRegistered(registered, 'https://b.example.com/x')).toBe(true)
    expect(isRegistered([], 'https://b.example.com/x')).toBe(false)
  })
})
