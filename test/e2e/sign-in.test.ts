import { execFile } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { documentsPath, freePort, freshFolder, needs, openBrowser, type QueueKind, until } from '../support/kit.ts'
import { type Application, installExample, openStand, openUser, type Stand } from './sign-in-stand.ts'

/** examples/sign-in: users sign in to an application by what Gatewright keeps. */

const root = fileURLToPath(new URL('../../', import.meta.url))
const [firstSecret, mask] = ['example-only-first-secret-of-hello', '********']

/** A flow that asks, and mappings that no sign-in server would like to run. */
const document = `version: 1
metadata: { name: test }
entries:
  - model: service_flows.flow
    identifiers: { slug: asks-first }
    attrs: { name: Asks first, title: May it?, designation: authorization, asks_for_consent: true }
  - model: service_rbac.role
    id: sees
    identifiers: { name: Sees providers }
    attrs: { permissions: [view_oauth2provider] }
  - model: service_core.group
    id: watchers
    identifiers: { name: Watchers }
    attrs: { roles: [!KeyOf sees] }
  - model: service_core.user
    identifiers: { username: radius-1 }
    attrs: { name: RADIUS server, type: service_account, groups: [Sign-in servers] }
  - model: service_core.user
    identifiers: { username: bob }
    attrs: { name: Bob Example, type: internal }
  - model: service_core.user
    identifiers: { username: blind }
    attrs: { name: Blind, type: service_account, groups: [!KeyOf watchers] }
  - model: service_mappings.propertymapping
    identifiers: { name: loops, kind: oauth2 }
    attrs: { expression: 'for (;;);' }
  - model: service_mappings.propertymapping
    identifiers: { name: loops inside, kind: oauth2 }
    attrs: { expression: 'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1); return { looped: true }' }
  - model: service_mappings.propertymapping
    identifiers: { name: fills memory, kind: oauth2 }
    attrs: { expression: 'const all = []; for (;;) all.push("x".repeat(1_000_000) + all.length)' }
  - model: service_mappings.propertymapping
    identifiers: { name: breaks out, kind: oauth2 }
    attrs: { expression: '}); globalThis.process.exit(1); (() => { return { broken: true }' }
  - model: service_mappings.propertymapping
    identifiers: { name: looks around, kind: oauth2 }
    attrs: { expression: 'return { seen: [typeof process, typeof require, typeof fetch, Object.keys(provider).sort().join(), Object.keys(user).includes("password")] }' }
  - model: service_mappings.propertymapping
    identifiers: { name: pretends, kind: oauth2 }
    attrs: { expression: 'return { sub: "root", iss: "https://evil.example", aud: "other", nonce: "x", department: "sales" }' }
  - model: service_mappings.propertymapping
    identifiers: { name: of another scope, kind: oauth2 }
    attrs: { scope_name: unasked, expression: 'return { unasked: true }' }
`

const redirects = (...apps: Application[]) => apps.map(({ redirect: url }) => ({ matching_mode: 'strict', url }))

let folder: string

beforeAll(async () => {
  folder = await installExample()
})

test('its types are right', async () => {
  const compile = promisify(execFile)(join(root, 'node_modules/.bin/tsc'), ['-p', '.'], { cwd: folder })
  const { stdout } = await compile.catch(({ stdout }: { stdout: string }) => ({ stdout }))
  expect(stdout).toBe('')
})

const signsIn = (queue: QueueKind) => () => {
  let stand: Stand
  let app: Application
  /** It sends a mask in place of the secret. */
  let masked: Application

  const putHello = (provider: object) => stand.put('hello', provider)

  beforeAll(async () => {
    stand = await openStand(queue, folder)
    await stand.send('PUT', documentsPath, document)
    app = await stand.openApplication(firstSecret)
    masked = await stand.openApplication(mask)
    await putHello({
      authorization_flow: 'default-authorization-implicit',
      client_id: 'hello',
      client_secret: firstSecret,
      signing_key: 'Gatewright self-signed',
      sub_mode: 'user_username',
      redirect_uris: redirects(app, masked),
      property_mappings: ['openid', 'email', 'profile', 'groups'].map((scope) => `OpenID scope ${scope}`),
    })
    await stand.openSignIn('sign-in-1')
  })

  afterAll(() => stand.stop())

  test('signs a user in: ID token and userinfo have the claims of the mappings', async () => {
    const { claims, titles, text } = await openUser()(app.page)
    expect(titles, text).toEqual(['Sign in to hello', 'Hello Alice Example'])
    const expected = {
      sub: 'alice',
      email: 'alice@example.com',
      preferred_username: 'alice',
      groups: ['staff', 'admins'],
    }
    expect(claims?.id_token).toMatchObject({ ...expected, iss: stand.issuer, aud: 'hello' })
    expect(claims?.userinfo).toMatchObject(expected)
  })

  test('signs nobody in with a wrong password, an unknown name, or a mask in place of the secret', async () => {
    for (const wrong of [{ password: 'bob-example-only' }, { username: 'carol' }, { password: '' }]) {
      const { status, text, claims } = await openUser(wrong)(app.page)
      expect([status, claims]).toEqual([401, undefined])
      expect(text).toContain('User name or password is wrong.')
    }
    const { claims, text } = await openUser()(masked.page)
    expect(claims).toBeUndefined()
    expect(text).toContain('invalid_client')
  })

  test('asks for consent when the flow does, and remembers it', async () => {
    await putHello({ authorization_flow: 'asks-first' })
    const asked = await until('the flow to ask', async () => {
      const page = await openUser({ consent: 'refuse' })(app.page)
      return page.titles.includes('May it?') && page
    })
    expect(asked.text).toContain('access_denied')
    const alice = openUser()
    expect((await alice(app.page)).titles).toEqual(['Sign in to hello', 'May it?', 'Hello Alice Example'])
    expect((await alice(app.page)).titles).toEqual(['Hello Alice Example'])
  })

  test.runIf(needs('chromium'))('signs in at a real browser', async () => {
    const page = await (await openBrowser()).newPage()
    await page.goto(new URL('/', app.page).href)
    await page.getByRole('link', { name: 'Sign in' }).click()
    await page.getByLabel('User name').fill('bob')
    await page.getByLabel('Password').fill('bob-example-only')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'May it?' }).waitFor()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { name: 'Hello Bob Example' }).waitFor()
    expect(await page.locator('pre').textContent()).toContain('"preferred_username": "bob"')
  })

  test('runs expressions in a sandbox: what fails gives no claims', async () => {
    const hostile = [
      'loops',
      'loops inside',
      'fills memory',
      'breaks out',
      'looks around',
      'pretends',
      'of another scope',
    ]
    await putHello({ property_mappings: [...hostile, 'OpenID scope openid', 'OpenID scope email'] })
    const { claims } = await until('the mappings to apply', async () => {
      const page = await openUser()(app.page)
      return page.claims?.userinfo.department === 'sales' && page
    })
    expect(claims?.userinfo).toEqual({
      sub: 'alice',
      department: 'sales',
      email: 'alice@example.com',
      email_verified: false,
      seen: ['undefined', 'undefined', 'undefined', 'application,client_id,name,pk', false],
    })
    expect(claims?.id_token).toMatchObject({ iss: stand.issuer, aud: 'hello', sub: 'alice' })
    await putHello({ property_mappings: ['OpenID scope openid', 'OpenID scope email'] })
  })

  const refused = (error: string) =>
    until(
      'the application to be refused',
      async () => {
        const { url, text } = await openUser({ answers: false })(app.page)
        expect([url.origin, text]).toEqual([stand.issuer, expect.stringContaining(error)])
        return true
      },
      { withinMs: 2_000 },
    )

  test('refuses a redirect URI within two seconds after it was taken away', async () => {
    const meanwhile = async () => {
      await putHello({ redirect_uris: redirects(masked) })
      await refused('invalid_redirect_uri')
    }
    // So is a sign-in that began before.
    const begun = await openUser({ meanwhile })(app.page)
    expect([begun.url.origin, begun.status, begun.claims]).toEqual([stand.issuer, 400, undefined])
    await putHello({ redirect_uris: [{ matching_mode: 'regex', url: app.redirect.replaceAll('.', '\\.') }] })
    await until('a pattern to be taken', async () => (await openUser()(app.page)).claims)
  })

  test('takes both secrets while a rotation overlaps, then one', async () => {
    const secrets = ['second', 'third'].map((name) => `example-only-${name}-secret-of-hello`)
    const [second, third] = await Promise.all(secrets.map((secret) => stand.openApplication(secret)))
    if (second === undefined || third === undefined) throw new Error('no application')
    const isIn = async ({ page }: Application) => (await openUser()(page)).claims !== undefined
    await putHello({ redirect_uris: redirects(app, second, third) })
    expect(await isIn(second)).toBe(false)
    await putHello({ client_secret: { value: secrets[0], overlap: 'hours=1' } })
    await until('the second secret to sign in', () => isIn(second))
    expect(await isIn(app)).toBe(true)
    await putHello({ client_secret: { value: secrets[1], overlap: 'seconds=1' } })
    await until('the first secret to end', async () => !(await isIn(app)))
    await until('the overlap to end', async () => !(await isIn(second)))
    expect(await isIn(third)).toBe(true)
    app = third
  })

  test('serves no client whose secret it may not read', async () => {
    const issuer = `http://127.0.0.1:${await freePort()}`
    await stand.openSignIn('blind', issuer)
    const { page } = await stand.openApplication(firstSecret, issuer)
    const { url, text } = await openUser()(page)
    expect([url.origin, text]).toEqual([issuer, expect.stringContaining('invalid_client')])
    for (const client_secret of [mask, 'null', 'undefined', firstSecret]) {
      const body = new URLSearchParams({
        grant_type: 'authorization_code',
        code: 'x',
        client_id: 'hello',
        client_secret,
      })
      const answer = await fetch(`${issuer}/token`, { method: 'POST', body })
      expect([answer.status, await answer.json()]).toEqual([401, expect.objectContaining({ error: 'invalid_client' })])
    }
  })

  test('goes on while Gatewright is away, and follows again afterwards', async () => {
    await stand.stopApi()
    expect((await openUser()(app.page)).claims?.userinfo.sub).toBe('alice')
    await stand.startApi()
    await putHello({ sub_mode: 'user_email' })
    await until('the change to arrive', async () => {
      return (await openUser()(app.page)).claims?.userinfo.sub === 'alice@example.com'
    })
  })

  test('reports sign-ins and consents', async () => {
    const where = { username: 'alice' }
    await until('the sign-in to be recorded', async () => (await stand.db.user.findUniqueOrThrow({ where })).lastLogin)
    const consent = { user: where, application: { slug: 'hello' } }
    const { permissions } = await until('the consent to be recorded', () =>
      stand.db.userConsent.findFirst({ where: consent }),
    )
    expect(permissions).toBe('email groups openid profile')
  })

  test('refuses the client of a provider that was deleted', async () => {
    await stand.send('DELETE', '/api/v3/core/applications/hello/?with_provider=true')
    await refused('invalid_client')
  })

  test('a second consumer keeps clients.conf of FreeRADIUS', async () => {
    const file = join(freshFolder(), 'clients.conf')
    await stand.start(join(folder, 'radius.ts'), /clients\.conf: 0 providers/, await stand.consumer('radius-1'), [file])
    const vpn = (shared_secret: string) => {
      const flow = { authorization_flow: 'default-authorization-implicit' }
      return stand.put('vpn', { ...flow, client_networks: '10.0.0.0/8, fd00::/8', shared_secret }, 'radius')
    }
    await vpn('example-only-"first"-secret')
    const has = (text: string) => until(`clients.conf to have ${text}`, () => readFileSync(file, 'utf8').includes(text))
    await has('secret = "example-only-\\"first\\"-secret"')
    const text = readFileSync(file, 'utf8')
    expect(text.match(/ipaddr = .*/g)).toEqual(['ipaddr = 10.0.0.0/8', 'ipaddr = fd00::/8'])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await vpn('example-only-second-secret')
    await has('secret = "example-only-second-secret"')
    expect(readFileSync(file, 'utf8')).not.toContain('first')
  })
}

describe('a sign-in server, with the queue on PostgreSQL', signsIn('postgres'))
describe.runIf(needs('redis-server'))('a sign-in server, with the queue on Redis', signsIn('redis'))
