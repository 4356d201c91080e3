import { afterAll, describe, expect, test } from 'vitest'
import { usualLaunchSchemes } from '../../src/config.ts'
import { openEngine } from '../../src/plan/open-engine.ts'
import { answered, installation, loadEngine, secretKey } from '../support/kit.ts'

/** Values that users of this API family write, and what is like them and can never work or gives too much. */

const on = await installation()

const put = (kind: string, name: string, provider: Record<string, unknown>) => on.admin.submit(kind, name, { provider })
const uris = (...urls: string[]) => ({ redirect_uris: urls.map((url) => ({ matching_mode: 'regex', url })) })
const raw = String.raw

describe('redirect patterns', () => {
  test('of previews, alternatives, UUIDs, any path, local ports and apps are stored as they were sent', async () => {
    const provider = uris(
      raw`^https://pr-[0-9]+\.preview\.example\.com/cb$`,
      raw`https://(app|www)\.example\.(com|org)(:[0-9]+)?(/.*)?`,
      raw`https://app\.example\.com/.*/cb`,
      raw`https://app\.example\.com/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/cb`,
      raw`http://127.0.0.1:[0-9]+/callback`,
      raw`https://[a-z]+\.corp\.internal/`,
      raw`com\.example\.app:/cb.*`,
    )
    expect(await put('oauth2', 'patterns', provider)).toMatchObject({ status: 200, json: { applied: true } })
    expect((await on.admin.get('/api/v3/providers/oauth2/patterns/')).json).toMatchObject(provider)
    const again = await put('oauth2', 'patterns', provider)
    expect(again.json).toMatchObject({ logs: expect.arrayContaining([expect.stringContaining('unchanged')]) })
  })

  test.each([
    [raw`^https://[a-z]+\.co\.uk/`, 'directly below co.uk'],
    [raw`^https://[a-z]+\.github\.io/`, 'directly below github.io'],
    [raw`https://.*\.example\.com/cb`, '.* can match / @ or #'],
    ['https://app.example.com/cb', raw`Write https://app\.example\.com/cb`],
    [raw`https://app\.example\.com/(?!logout).*`, 'no look-ahead: (?!'],
    [raw`https://app\.example\.com/(a+)+`, '(a+)+'],
  ])('%s is refused, in a document, too', async (url, why) => {
    const says = { redirect_uris: { 0: { url: [expect.stringContaining(why)] } } }
    expect(await put('oauth2', 'refused', uris(url))).toMatchObject({ status: 400, json: { provider: says } })
    const entry = { model: 'service_providers_oauth2.oauth2provider', identifiers: { name: 'refused' } }
    const document = { version: 1, metadata: { name: 'refused' }, entries: [{ ...entry, attrs: uris(url) }] }
    await answered(400, on.admin.put('/api/v3/blueprints/', document), { entries: { 0: says } })
  })

  test('a strict URI with a * is refused with the pattern to write, which is taken', async () => {
    for (const [url, pattern] of [
      ['https://*.example.com/cb', raw`https://[A-Za-z0-9-]+\.example\.com/cb`],
      ['https://app.example.com/*', raw`https://app\.example\.com/.*`],
      ['http://localhost:*', 'http://localhost:[0-9]+'],
    ] as const) {
      const says = [expect.stringMatching(/Is compared as it is.*matching_mode.*regex/)]
      const strict = await put('oauth2', 'starred', { redirect_uris: [{ matching_mode: 'strict', url }] })
      expect(strict).toMatchObject({ status: 400, json: { provider: { redirect_uris: { 0: { url: says } } } } })
      expect(strict.text).toContain(JSON.stringify(pattern).slice(1, -1))
      expect((await put('oauth2', 'starred', { redirect_uris: url })).status).toBe(400)
      expect(await put('oauth2', 'starred', uris(pattern))).toMatchObject({ status: 200 })
    }
  })
})

test('paths without login are what RE2 compiles', async () => {
  const paths = '(?i)^/api/.*$\n^/(?P<area>public|static)/'
  expect(await put('proxy', 'paths', { skip_path_regex: paths })).toMatchObject({ status: 200 })
  await answered(400, put('proxy', 'paths', { skip_path_regex: `${paths}\n^/(?!admin)` }), {
    provider: { skip_path_regex: [expect.stringContaining('Line 3: ')] },
  })
})

test('an address stands for the network of itself, and stays as it was sent', async () => {
  const provider = { client_networks: '10.0.0.1, 2001:db8::1' }
  expect(await put('radius', 'address', provider)).toMatchObject({ status: 200 })
  expect((await on.admin.get('/api/v3/providers/radius/address/')).json).toMatchObject(provider)
  const again = await put('radius', 'address', provider)
  expect(again.json).toMatchObject({ logs: expect.arrayContaining([expect.stringContaining('unchanged')]) })
  expect(await put('radius', 'address', { client_networks: '10.0.0' })).toMatchObject({ status: 400 })
})

test('cookies of localhost and of a domain with a leading dot', async () => {
  for (const cookie_domain of ['localhost', '.example.com', 'intranet'])
    expect(await put('proxy', 'cookies', { mode: 'forward_domain', cookie_domain })).toMatchObject({ status: 200 })
  for (const cookie_domain of ['..example.com', 'a b', '10.0.0.1', 'com', '.co.uk', 'github.io'])
    expect(await put('proxy', 'cookies', { mode: 'forward_domain', cookie_domain })).toMatchObject({ status: 400 })
})

test('e-mail addresses of closed networks and of all languages', async () => {
  const user = (email: string) =>
    on.admin.put('/api/v3/blueprints/', {
      ...{ version: 1, metadata: { name: 'mail' } },
      entries: [{ model: 'service_core.user', identifiers: { username: 'mail' }, attrs: { email } }],
    })
  for (const email of ['root@localhost', 'zoë@bücher.example', '山田@例え.jp'])
    expect(await user(email)).toMatchObject({ status: 200 })
  expect(await on.db.user.findFirstOrThrow({ where: { username: 'mail' } })).toMatchObject({ email: '山田@例え.jp' })
  for (const email of ['ada', 'ada@', 'a\u202eda@example.com', 'ada@exa mple.com', 'ada@example.com\n'])
    expect(await user(email)).toMatchObject({ status: 400 })
})

describe('what an operator lists', () => {
  const lists = (launchSchemes: readonly string[], redirectParentDomains: readonly string[]) =>
    openEngine({ secretKey, secretKeyPrevious: null, tokenMaxDays: 365, launchSchemes, redirectParentDomains })
  afterAll(loadEngine)
  const launch = async (meta_launch_url: string) => on.admin.submit('oauth2', 'launched', { app: { meta_launch_url } })

  test('are the schemes of launch URLs', async () => {
    await lists(usualLaunchSchemes, [])
    await answered(400, launch('myapp://open'), {
      app: { meta_launch_url: [expect.stringContaining('LAUNCH_SCHEMES')] },
    })
    await lists(['https', 'myapp'], [])
    expect(await launch('myapp://open')).toMatchObject({ status: 200 })
    expect(await launch('slack://open')).toMatchObject({ status: 400 })
  })

  test('are the domains below which hosts may vary', async () => {
    const pattern = uris(raw`^https://[a-z]+\.lan/cb$`)
    await lists(usualLaunchSchemes, ['corp.internal'])
    expect(await put('oauth2', 'parents', pattern)).toMatchObject({ status: 400 })
    await lists(usualLaunchSchemes, ['corp.internal', 'lan'])
    expect(await put('oauth2', 'parents', pattern)).toMatchObject({ status: 200 })
    expect(await put('oauth2', 'parents', uris(raw`^https://[a-z]+lan/cb$`))).toMatchObject({ status: 400 })
  })
})
