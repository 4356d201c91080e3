import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { proxyFor } from '../../src/cli/proxy.ts'
import { behindTls } from '../support/behind-tls.ts'
import { httpProxy } from '../support/http-proxy.ts'
import { adminToken, exited, freePort, freshFolder, listening } from '../support/kit.ts'

/** HTTPS_PROXY: the program asks a service behind TLS, whose name only the proxy knows. */

const there = await listening({ GATEWRIGHT_TOKEN: adminToken })
const { port, authority } = await behindTls(there.address, 'gatewright.test')
const host = `gatewright.test:${port}`
const env: Record<string, string> = { GATEWRIGHT_URL: `https://${host}`, NODE_EXTRA_CA_CERTS: authority }

/** The path of a document. */
function groupFile(): string {
  const path = join(freshFolder(), 'group.yaml')
  writeFileSync(path, 'version: 1\nentries:\n  - { model: service_core.group, identifiers: { name: proxied } }\n')
  return path
}

const runs = (more: Record<string, string>) => there.gatewright(['runs'], { ...env, ...more })

test('an apply, and a run that is followed, go through the proxy, also one that wants a login', async () => {
  const path = groupFile()
  const open = await httpProxy()
  expect(await there.gatewright(['apply', path], { ...env, HTTPS_PROXY: open.url })).toMatchObject({ code: 0 })
  expect(await there.on.db.group.count({ where: { name: 'proxied' } })).toBe(1)
  expect(new Set(open.asked)).toEqual(new Set([host]))
  const closed = await httpProxy({ login: 'ada:p@ss:word' })
  const proxy = closed.url.replace('://', '://ada:p%40ss%3Aword@')
  expect(await there.gatewright(['logs', '-f'], { ...env, https_proxy: proxy, HTTPS_PROXY: 'http://other' })).toEqual({
    code: 0,
    output: expect.stringMatching(/: applied\n$/),
  })
  expect(closed.asked.length).toBeGreaterThan(0)
})

test('this machine is asked without a proxy', async () => {
  const dead = `http://127.0.0.1:${await freePort()}`
  const proxies = { HTTPS_PROXY: dead, HTTP_PROXY: dead, https_proxy: dead, http_proxy: dead, ALL_PROXY: dead }
  expect(await there.gatewright(['runs'], proxies)).toMatchObject({ code: 0 })
  const { port, authority } = await behindTls(there.address, 'localhost')
  const local = { GATEWRIGHT_URL: `https://localhost:${port}`, NODE_EXTRA_CA_CERTS: authority }
  expect(await there.gatewright(['runs'], { ...local, ...proxies })).toMatchObject({ code: 0 })
})

describe('says what to do, without the password', () => {
  test('when the proxy is away', async () => {
    const port = await freePort()
    const away = { HTTPS_PROXY: `http://ada:secret-word@127.0.0.1:${port}` }
    const { code, output } = await there.gatewright(['plan', '--timeout', '1', groupFile()], { ...env, ...away })
    expect({ code, output }).toEqual({
      code: 3,
      output: expect.stringContaining(
        `the proxy http://127.0.0.1:${port} of HTTPS_PROXY does not answer (ECONNREFUSED): correct HTTPS_PROXY, or name gatewright.test in NO_PROXY`,
      ),
    })
    expect(output).not.toContain('secret-word')
  })

  test('when it wants a login, or another one', async () => {
    const { url, asked } = await httpProxy({ login: 'ada:right' })
    const refused = (message: string) => ({ code: 3, output: expect.stringContaining(`the proxy ${url} ${message}`) })
    expect(await runs({ HTTPS_PROXY: url })).toEqual(
      refused(`wants a login (407): write it into HTTPS_PROXY, as USER:PASSWORD@${new URL(url).host}.`),
    )
    const wrong = await runs({ HTTPS_PROXY: url.replace('://', '://ada:secret-word@') })
    expect(wrong).toEqual(refused('refuses the login of HTTPS_PROXY (407): correct it'))
    expect(wrong.output).not.toContain('secret-word')
    // No try again could help.
    expect(asked).toHaveLength(2)
  })

  test('when it refuses the host', async () => {
    const { url } = await httpProxy({ refuses: 403 })
    await exited(3, runs({ HTTPS_PROXY: url }), `the proxy ${url} of HTTPS_PROXY gives no way to ${host} (403)`)
  })

  test.each(['ftp://ada:secret-word@proxy', 'http://ada:secret-word@', 'http://ada:secret-word%@proxy'])(
    'when %s is none',
    async (proxy) => {
      const { code, output } = await runs({ HTTPS_PROXY: proxy })
      expect({ code, output }).toEqual({ code: 1, output: expect.stringMatching(/^(The login of )?HTTPS_PROXY /) })
      expect(output).not.toContain('secret-word')
    },
  )
})

const service = 'https://gw.example.com'
test.each([
  ['', service, true],
  ['*', service, false],
  ['gw.example.com', service, false],
  ['example.com', service, false],
  ['.example.com', service, false],
  ['*.Example.com', service, false],
  ['other.test, gw.example.com:443', service, false],
  ['gw.example.com:8443', service, true],
  ['gw.example.com:8443', `${service}:8443`, false],
  ['ample.com', service, true],
  ['example.com.', service, true],
  ['', 'https://localhost', false],
  ['', 'https://127.1.2.3:9000', false],
  ['', 'https://[::1]', false],
  ['', 'http://gw.example.com', false],
])('NO_PROXY %j: %s by the proxy: %j', (no, url, isProxied) => {
  const proxy = proxyFor(url, { HTTPS_PROXY: 'proxy.test:3128', NO_PROXY: no })
  expect(proxy).toEqual(isProxied ? { url: 'http://proxy.test:3128', login: null } : null)
})
