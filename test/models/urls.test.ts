import { beforeAll, expect, test } from 'vitest'
import { anyUrl, httpUrl, launchUrl, originOf, redirectUri, strictRedirectUri } from '../../src/models/urls.ts'
import { loadEngine } from '../support/engine.ts'
import { testSyntaxes } from './check.ts'

// The rules are those of an operator.
beforeAll(loadEngine)

testSyntaxes({
  httpUrl: {
    check: httpUrl,
    good: [
      'https://app.example.com',
      'HTTP://APP.EXAMPLE.COM/',
      'http://localhost:9000/a?b=c#d',
      'http://10.0.0.1',
      'https://[2001:db8::1]/',
    ],
    bad: [
      ...[
        '',
        'app.example.com',
        '//app.example.com',
        '/path',
        'https:',
        'https://',
        'https:app.example.com',
        'https:/app.example.com',
        'https:///app',
        'ftp://app.example.com',
        'javascript:alert(1)',
        ' https://app.example.com',
        'https://app.example.com ',
        'https://app. example.com',
        'https://app\n.example.com',
        'https:\\\\app.example.com',
        'https://app.example.com:99999',
        'https://[::1',
      ].map((text) => [text, 'Must be a URL that starts with http:// or https://.'] as const),
      ['https://app.example.com@evil.example', 'May not hold a user name or password.'],
      ['https://ada:secret@app.example.com', 'May not hold a user name or password.'],
    ],
  },
  anyUrl: {
    check: anyUrl,
    good: [
      'https://app.example.com/',
      'com.example.app:/callback',
      'com.example.app://callback',
      'slack://open',
      'urn:ietf:wg:oauth:2.0:oob',
      'mailto:ada@example.com',
    ],
    bad: [
      ['javascript:alert(1)', 'May not be a javascript: URL.'],
      ['JaVaScRiPt:alert(1)', 'May not be a javascript: URL.'],
      ['data:text/html,x', 'May not be a data: URL.'],
      ['vbscript:x', 'May not be a vbscript: URL.'],
      ['file:///etc/passwd', 'May not be a file: URL.'],
      ['java\nscript:alert(1)', 'Must be an absolute URL'],
      [' javascript:alert(1)', 'Must be an absolute URL'],
      ['\u0001javascript:alert(1)', 'Must be an absolute URL'],
      ['', 'Must be an absolute URL'],
      ['*', 'Must be an absolute URL'],
      ['/callback', 'Must be an absolute URL'],
      ['localhost:3000/callback', 'Must be an absolute URL such as https://app.example.com/.'],
      ['app.example.com:443', 'Must be an absolute URL'],
      ['https:callback', 'Must be a URL that starts with'],
      ['slack:', 'Must be an absolute URL'],
      ['com.example.app:/call back', 'Must be an absolute URL'],
    ],
  },
  redirectUri: {
    check: redirectUri,
    good: ['https://app.example.com/callback?x=y', 'com.example.app:/callback', 'http://127.0.0.1:8080/'],
    bad: [
      ['https://app.example.com/#callback', 'May not hold a fragment (#).'],
      ['javascript:alert(1)', 'May not be a javascript: URL.'],
      ['.*', 'Must be an absolute URL'],
    ],
  },
  strictRedirectUri: {
    check: strictRedirectUri,
    good: ['https://app.example.com/callback?x=y', 'http://127.0.0.1:8080/', 'myapp://cb'],
    bad: [
      ['https://app.example.com/*', String.raw`as https://app\.example\.com/.*`],
      ['https://app.example.com/.*', String.raw`as https://app\.example\.com/.*`],
      ['https://*.example.com/cb', String.raw`as https://[A-Za-z0-9-]+\.example\.com/cb`],
      [
        'https://pr-*.preview.example.com/a*/cb?x=1',
        String.raw`as https://pr-[A-Za-z0-9-]+\.preview\.example\.com/a.*/cb\?x=1`,
      ],
      ['http://localhost:*/cb', 'as http://localhost:[0-9]+/cb'],
      ['com.example.app:/*', String.raw`as com\.example\.app:/.*`],
      ['*', 'Must be an absolute URL'],
      ['https://app.example.com/#*', 'Is compared as it is'],
    ],
  },
  launchUrl: {
    check: launchUrl,
    good: [
      'https://app.example.com/%(username)s',
      'https://%(username)s.example.com/?mail=%(email)s',
      'slack://open?user=%(uid)s',
      'ssh://host.example.com/',
      'mailto:help@example.com',
      'https://app.example.com/100%25',
    ],
    bad: [
      ['https://app.example.com/%(password)s', '%(password)s is no placeholder: use %(pk)s, %(username)s,'],
      ['%(username)s://x', 'May not start with a placeholder'],
      ['%(name)s', 'May not start with a placeholder'],
      ['javascript:%(name)s', 'May not be a javascript: URL.'],
      ['https://app.example.com/%(username', 'Holds a placeholder that does not end'],
      ['https://app.example.com/%(username)d', 'Holds a placeholder that does not end'],
      ['app', 'Must be an absolute URL'],
      ['myapp://open', 'Must start with one of: http, https,'],
      ['blob:https://x.example/1', 'Must start with one of: http, https,'],
      ['view-source:https://x.example/', 'Must start with one of'],
      ['https://ada@x.example/', 'May not hold a user name or password.'],
      ['ssh://root:secret@x.example/', 'May not hold a user name or password.'],
    ],
  },
})

test.each([
  ['https://grafana.example.com:3000/login?x=y', 'https://grafana.example.com:3000'],
  ['https://grafana.example.com:443/', 'https://grafana.example.com'],
  ['myapp://callback/x', 'myapp://callback'],
  ['com.example.app:/callback', null],
  ['urn:ietf:wg:oauth:2.0:oob', null],
  ['nothing', null],
])('originOf %s is %s', (text, origin) => {
  expect(originOf(text)).toBe(origin)
})
