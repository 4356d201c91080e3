import { describe, expect, test } from 'vitest'
import { answered, applied, installation, renewName, name as slug } from '../support/kit.ts'

/** A provider through which no user logs in stands beside the one of the login, whichever is sent first. */

const on = await installation()

const sync = { user_delete_action: 'suspend' }
const settings: Record<string, object> = {
  scim: { url: 'https://scim.example.com/v2', token: 'a-token' },
  directory_sync_b: { client_id: 'id', client_secret: 'secret', tenant_id: 'tenant', ...sync },
  workspace_sync_a: {
    ...{ delegated_subject: 'a@example.com', credentials: { a: 1 }, default_group_email_domain: 'example.com' },
    ...sync,
  },
}
const login = (kind = 'oauth2') => submission(kind, { authorization_flow: 'default-authorization-implicit' })
const submission = (kind: string, provider: object = settings[kind] ?? {}, app: object = {}) => ({
  app: { slug, name: slug, ...app },
  provider_model: `service_providers_${kind}.${kind}provider`,
  provider: { name: `${slug} ${kind}`, ...provider },
})
const put = (body: unknown, query = '') => on.admin.put(`/api/v3/core/transactional/applications/${query}`, body)
const apply = async (body: unknown, query = '') => {
  const answer = await applied(put(body, query))
  return answer.text
}
/** The kinds of the application's providers: that of the login, and those beside it. */
async function kinds(): Promise<[string | undefined, string[]]> {
  const { provider, backchannelProviders } = await on.db.application.findFirstOrThrow({
    where: { slug },
    include: { provider: true, backchannelProviders: { include: { provider: true }, orderBy: { providerPk: 'asc' } } },
  })
  return [provider?.kind, backchannelProviders.map((each) => each.provider.kind)]
}

describe.each(['scim', 'directory_sync_b', 'workspace_sync_a'])('%s', (kind) => {
  test.each([
    ['behind the login', () => [login(), submission(kind)]],
    ['before the login', () => [submission(kind), login()]],
  ])('%s: both are kept, and each again is unchanged', async (_order, bodies) => {
    for (const body of bodies()) await apply(body)
    expect(await kinds()).toEqual(['oauth2', [kind]])
    for (const body of bodies()) {
      const text = await apply(body)
      expect(text).toContain('unchanged')
      expect(text).not.toMatch(/updated|created/)
    }
    expect(await kinds()).toEqual(['oauth2', [kind]])
  })

  test('alone it is the provider of the application', async () => {
    await apply(submission(kind))
    expect(await kinds()).toEqual([kind, []])
  })
})

test('a plan says what the apply does, and leaves no provider over', async () => {
  await apply(submission('scim'))
  const planned = (await put(login(), '?dry_run=true')).text
  expect(planned).toContain('backchannel_providers')
  expect(planned).not.toContain('no application')
  expect(await apply(login())).not.toContain('no application')
})

test('in a set with the login of the application', async () => {
  const set = [submission('scim'), login()]
  await apply(login())
  const send = async () => {
    const answer = await applied(on.admin.put('/api/v3/blueprints/', set))
    return answer.text
  }
  await send()
  expect(await kinds()).toEqual(['oauth2', ['scim']])
  expect(await send()).not.toMatch(/updated|created/)
})

test('in documents, by key, and beside a list that the entry sends', async () => {
  await apply(login())
  await apply(submission('scim'))
  const others = (await on.db.provider.findMany({ where: { name: { startsWith: slug } } })).map(({ kind, pk }) => [
    kind,
    pk,
  ])
  const { scim } = Object.fromEntries(others)
  const entry = (attrs: object) => ({
    ...{ version: 1, metadata: { name: slug } },
    entries: [{ model: 'service_core.application', identifiers: { slug }, attrs }],
  })
  const send = async (attrs: object) => {
    await applied(on.admin.put('/api/v3/blueprints/', entry(attrs)))
    return kinds()
  }
  expect(await send({ provider: scim })).toEqual(['oauth2', ['scim']])
  expect(await send({ backchannel_providers: [] })).toEqual(['oauth2', []])
  expect(await send({ provider: scim, backchannel_providers: [] })).toEqual(['oauth2', ['scim']])
  expect(await send({ provider: null })).toEqual([undefined, ['scim']])
})

test('replace_provider takes the place of the login', async () => {
  await apply(login())
  await apply(submission('scim'), '?replace_provider=true')
  expect(await kinds()).toEqual(['scim', []])
  expect(await on.db.provider.count({ where: { name: `${slug} oauth2` } })).toBe(0)
})

test('replace_provider takes a provider of the application out of the others', async () => {
  await apply(login())
  await apply(submission('scim'))
  await apply(submission('scim'), '?replace_provider=true')
  expect(await kinds()).toEqual(['scim', []])
  await apply(submission('scim'), '?replace_provider=true')
  expect(await kinds()).toEqual(['scim', []])
})

test('one that stands among the others of an application without a login stays there', async () => {
  await apply(login())
  await apply(submission('scim'))
  await on.db.application.updateMany({ where: { slug }, data: { providerPk: null } })
  expect(await apply(submission('scim'))).not.toMatch(/updated|created/)
  expect(await kinds()).toEqual([undefined, ['scim']])
})

test('of two logins, and of two without one, the later takes the place of the earlier', async () => {
  await apply(login())
  await apply(login('ldap'))
  expect(await kinds()).toEqual(['ldap', []])
  renewName()
  await apply(submission('scim'))
  await apply(submission('directory_sync_b'))
  expect(await kinds()).toEqual(['directory_sync_b', []])
})

test('one that stands beside the login of another application is refused, with its name', async () => {
  await apply(login())
  await apply(submission('scim'))
  const [first, body] = [slug, submission('scim')]
  renewName()
  await apply(login())
  const answer = await answered(400, put({ ...body, app: { slug, name: slug } }))
  expect(answer.text).toContain(`belongs to application \\"${first}\\"`)
  expect(await kinds()).toEqual(['oauth2', []])
})
