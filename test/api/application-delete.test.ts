import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { held } from '../runs/stand.ts'
import { type Asker, type AskOptions, answered, installation, rows, name as slug, sql, until } from '../support/kit.ts'

/** DELETE /api/v3/core/applications/{slug}/ */

const there = await installation()
const remover = await there.make.user({ permissions: ['delete_application', 'delete_oauth2provider'] })

const path = '/api/v3/core/applications/'
type Options = AskOptions & { by?: Asker; query?: string }
const remove = (name = slug, { by = remover, query = '', ...options }: Options = {}) =>
  by.delete(`${path}${name}/${query}`, options)
const withProvider = '?with_provider=true'
const applicationOf = () => there.db.application.findUnique({ where: { slug } })
const providerOf = (name = slug) => there.db.provider.findUnique({ where: { name } })

/** Refused: every object is as it was. */
async function refused(status: number, options: Options = {}, name = slug): Promise<string> {
  const { detail, text } = await there.refused(status, () => remove(name, options))
  return detail || text
}

describe('an application is deleted', () => {
  test('and its provider stays; the deletion is audited', async () => {
    await there.admin.submit('oauth2', slug)
    const pk = (await applicationOf())?.pk
    const { status, text, headers } = await remove()
    expect([status, text, headers['content-type']]).toEqual([204, '', undefined])
    expect([await applicationOf(), (await providerOf())?.name]).toEqual([null, slug])
    const [audited] = await there.db.auditRow.findMany({ where: { actorPk: remover.pk }, orderBy: { pk: 'desc' } })
    expect(audited).toMatchObject({
      action: 'delete',
      changes: [{ model: 'service_core.application', key: pk, action: 'delete', fields: [] }],
    })
    expect((await remove()).status).toBe(404)
  })

  test('with its provider, in one transaction', async () => {
    await there.admin.submit('oauth2', slug)
    const [app, provider] = [await applicationOf(), await providerOf()]
    expect((await remove(slug, { query: withProvider })).status).toBe(204)
    expect([await applicationOf(), await providerOf()]).toEqual([null, null])
    const [audited] = await there.db.auditRow.findMany({ where: { actorPk: remover.pk }, orderBy: { pk: 'desc' } })
    expect(audited?.changes).toMatchObject([
      { model: 'service_core.application', key: app?.pk, action: 'delete' },
      { model: 'service_providers_oauth2.oauth2provider', key: provider?.pk, action: 'delete' },
    ])
  })

  test('with its provider, when it has none', async () => {
    await there.admin.submit('oauth2', slug)
    await there.db.application.update({ where: { slug }, data: { providerPk: null } })
    expect((await remove(slug, { query: withProvider })).status).toBe(204)
    expect((await providerOf())?.name).toBe(slug)
  })

  test('with its consents, and without its backchannel providers', async () => {
    await there.admin.submit('oauth2', slug)
    const { pk } = await there.db.provider.create({ data: { uuid: randomUUID(), kind: 'scim', name: `${slug}-scim` } })
    const { pk: applicationPk } = await there.db.application.update({
      where: { slug },
      data: { backchannelProviders: { create: { providerPk: pk } } },
    })
    await there.db.userConsent.create({ data: { userPk: remover.pk, applicationPk } })
    expect((await remove(slug, { query: withProvider })).status).toBe(204)
    expect(await there.db.userConsent.count({ where: { applicationPk } })).toBe(0)
    expect((await providerOf(`${slug}-scim`))?.pk).toBe(pk)
  })

  test('and a provider that another application has as a backchannel provider stays', async () => {
    await there.admin.submit('scim', slug)
    const providerPk = (await providerOf())?.pk ?? 0
    const data = { name: 'Two', slug: `${slug}-2`, pk: randomUUID(), backchannelProviders: { create: { providerPk } } }
    await there.db.application.create({ data })
    expect((await remove(slug, { query: withProvider })).status).toBe(204)
    expect((await providerOf())?.pk).toBe(providerPk)
  })
})

describe('it is refused', () => {
  test.each(['not-there', 'No Slug', 'a%00b'])('for %j: there is no such application', async (name) => {
    expect(await refused(404, {}, encodeURI(decodeURI(name)))).toMatch(/There is/)
  })

  test('without the permission to delete a provider of its kind, for both', async () => {
    await there.admin.submit('saml', slug)
    expect(await refused(403, { query: withProvider })).toBe(
      'You may not delete the provider saml that follows from this: the permission delete_samlprovider is missing.',
    )
    expect((await remove()).status).toBe(204)
  })

  test('without the permission', async () => {
    await there.admin.submit('oauth2', slug)
    await refused(403, { by: await there.make.user({ permissions: ['delete_oauth2provider', 'view_application'] }) })
  })

  test('for what another owner manages, unless takeover is acknowledged or the owner is sent', async () => {
    for (const headers of [{ 'gatewright-owner': 'team-a' }, { 'gatewright-allow': 'takeover' }]) {
      await there.admin.submit('oauth2', slug, { owner: 'team-a' })
      const detail = await refused(409)
      expect(detail).toContain(`application "${slug}" belongs to owner "team-a"`)
      expect(await refused(409, { owner: 'team-b' })).toContain('"team-b"')
      expect((await remove(slug, { headers, query: withProvider })).status).toBe(204)
      expect(await providerOf()).toBeNull()
    }
  })

  test('for the provider of another owner, and the application stays too', async () => {
    await there.admin.submit('oauth2', slug, { owner: 'team-a' })
    await there.db.application.update({ where: { slug }, data: { owner: null } })
    expect(await refused(409, { query: withProvider })).toContain(`provider oauth2 "${slug}" belongs to owner "team-a"`)
  })

  test('for one that a provider refers to', async () => {
    await there.admin.submit('oauth2', slug)
    const { pk } = await there.db.provider.create({ data: { uuid: randomUUID(), kind: 'scim', name: `${slug}-r` } })
    const applicationPk = (await applicationOf())?.pk ?? ''
    await there.db.providerReference.create({ data: { providerPk: pk, field: 'x', position: 0, applicationPk } })
    expect(await refused(409)).toContain('something still refers to it')
  })

  test.each([
    ['?with_provider=1', {}, 'with_provider'],
    ['?with=true', {}, 'with'],
    ['', { 'gatewright-ownr': 'x' }, 'gatewright-ownr'],
    ['', { 'gatewright-allow': 'all' }, 'Gatewright-Allow'],
  ])('with %j and %j', async (query, headers, member) => {
    await there.admin.submit('oauth2', slug)
    expect(await refused(400, { query, headers: { ...headers } })).toContain(`"${member}"`)
  })
})

const waiting = sql`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
const isWaiting = async () => (await rows(there.db, waiting)).length > 0

test('a deletion that waits for another finds nothing, and is not audited', async () => {
  await there.admin.submit('oauth2', slug)
  const release = await held(there, (tx) => tx.application.delete({ where: { slug } }))
  const answer = remove(slug, { headers: { 'x-request-id': `second-${slug}` } })
  await until('the deletion to wait for the row', isWaiting)
  await release()
  await answered(404, answer)
  expect(await there.db.auditRow.count({ where: { requestId: `second-${slug}` } })).toBe(0)
})

describe('If-Match', () => {
  const read = () => there.admin.get(`${path}${slug}/`)

  test('deletes the application as it was read', async () => {
    await there.admin.submit('oauth2', slug)
    const ifMatch = (await read()).headers.etag ?? ''
    const headers = { 'if-match': `"another", ${ifMatch}` }
    expect((await remove(slug, { by: there.admin, headers })).status).toBe(204)
  })

  test('is a 412 when it has changed since', async () => {
    await there.admin.submit('oauth2', slug)
    const { etag = '' } = (await read()).headers
    await there.db.application.update({ where: { slug }, data: { group: 'New' } })
    for (const sent of [etag, `W/${(await read()).headers.etag}`, 'anything', ''])
      await refused(412, { by: there.admin, ifMatch: sent })
    expect((await remove(slug, { by: there.admin, ifMatch: '*' })).status).toBe(204)
  })

  test('waits for a change in progress, and sees it', async () => {
    await there.admin.submit('oauth2', slug)
    const { etag = '' } = (await read()).headers
    const { promise: changed, resolve: commit } = Promise.withResolvers<void>()
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const change = there.db.$transaction(async (tx) => {
      await tx.application.update({ where: { slug }, data: { group: 'Later' } })
      begin()
      await changed
    })
    await begun
    const answer = remove(slug, { by: there.admin, ifMatch: etag })
    await until('the deletion to wait for the row', isWaiting)
    commit()
    await change
    expect((await answer).status).toBe(412)
  })
})
