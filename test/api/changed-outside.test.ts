import { randomUUID } from 'node:crypto'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { findOutside } from '../../src/apply/outside.ts'
import { deleteOverlaps } from '../../src/runs/retention.ts'
import { applyPath } from '../support/asker.ts'
import { type Installation, installation, kinds, named } from '../support/installation.ts'
import { rows, sql } from '../support/sql.ts'

/** Applications and providers that were changed past the service. */

let there: Installation
let slug: string
beforeAll(async () => {
  there = await installation()
})
beforeEach(() => {
  slug = `o-${randomUUID().slice(0, 8)}`
})

const put = async (body: object, headers: Record<string, string> = {}) => {
  const answer = await there.admin.put(applyPath, body, { headers })
  expect(answer, answer.text).toMatchObject({ status: 200, json: { applied: true } })
}
const apply = async (entries: readonly object[], query = '', headers: Record<string, string> = {}) => {
  const body = { version: 1, metadata: { name: 'outside' }, entries }
  const answer = await there.admin.put(`/api/v3/blueprints/${query}`, body, { headers })
  expect(answer, answer.text).toMatchObject({ status: 200, json: { applied: true } })
}

const listed = async (value: boolean) => {
  const { json } = await there.admin.get(`/api/v3/core/applications/?page_size=1000&changed_outside=${value}`)
  return (json as { results: { slug: string }[] }).results.map((each) => each.slug)
}
/** As its history has it; its list and the daily look must agree. */
async function isOutside(of = slug): Promise<boolean | null> {
  const { status, json, text } = await there.admin.get(`/api/v3/core/applications/${of}/history/?page_size=1`)
  expect(status, text).toBe(200)
  const { changed_outside: found } = json as { changed_outside: boolean | null }
  const isThere = (await there.db.application.count({ where: { slug: of } })) > 0
  if (isThere)
    expect([await listed(true), await listed(false)].map((all) => all.includes(of))).toEqual([
      found === true,
      found !== true,
    ])
  return found
}
const look = async () => {
  await findOutside(there.db, there.engine.registry, there.engine.keyring)
  const found = await there.db.outsideChange.findMany({ orderBy: { name: 'asc' } })
  return found
    .filter(({ name }) => name.includes(slug))
    .map(({ model, name, isDeleted }) => [model.split('.')[1], name, isDeleted])
}

describe('nothing that the service does counts:', () => {
  test.each(kinds)('applies of %s, whole, again, in part, and taken over', async (kind) => {
    const body = await named(kind, slug)
    await put(body, { 'gatewright-owner': 'team-a' })
    expect(await isOutside()).toBe(false)
    await put(body, { 'gatewright-owner': 'team-a' })
    const part = { app: { slug, group: 'New' }, provider_model: body.provider_model, provider: { name: slug } }
    await put(part, { 'gatewright-owner': 'team-a' })
    await put(part, { 'gatewright-owner': 'team-b', 'gatewright-allow': 'takeover' })
    expect(await isOutside()).toBe(false)
    expect(await look()).toEqual([])
  })

  test('renames, sets, and deletions of a provider that an application has, by documents and requests', async () => {
    const later = `${slug}-later`
    const provider = { model: 'service_providers_ldap.ldapprovider', identifiers: { name: slug } }
    await put(await named('ldap', slug))
    await put({ app: { slug: later, was: slug }, provider_model: provider.model, provider: { name: slug } })
    expect(await isOutside(later)).toBe(false)
    await apply([{ ...provider, state: 'absent' }])
    expect(await isOutside(later)).toBe(false)
    const { json } = await there.admin.get(`/api/v3/core/applications/${later}/history/`)
    const { results } = json as { results: { action: string; fields: object }[] }
    expect(results.map(({ action, fields }) => [action, fields])).toContainEqual([
      'update',
      { provider: { from: slug, to: null } },
    ])
    const deleted = await there.admin.send({ method: 'DELETE', url: `/api/v3/core/applications/${later}/` })
    expect(deleted.status, deleted.text).toBe(204)
    expect(await isOutside(later)).toBe(false)
    expect(await look()).toEqual([])
  })

  test('the end of an overlap, and a new SECRET_KEY', async () => {
    const body = await named('oauth2', slug)
    await put(body)
    const secret = { value: 'another-secret-of-many-letters-0123456789', overlap: 'hours=1' }
    const provider = { name: slug, client_secret: secret }
    await put({ app: { slug }, provider_model: body.provider_model, provider })
    expect(await isOutside()).toBe(false)
    const { settings } = await there.db.provider.findUniqueOrThrow({ where: { name: slug } })
    const expired = { ...Object(settings), previous_client_secret_expires: '2020-01-01T00:00:00Z' }
    await there.db.provider.update({ where: { name: slug }, data: { settings: expired } })
    expect(await deleteOverlaps(there.db, there.engine.registry)).toBe(1)
    expect(await isOutside()).toBe(false)
    // A digest under another key says nothing of this one.
    await rows(there.db, sql`UPDATE run_objects SET digest = 'another0' || substr(digest, 9) WHERE name = ${slug}`)
    expect(await isOutside()).toBe(null)
    expect(await look()).toEqual([])
  })
})

const change = (text: string) => there.db.$executeRawUnsafe(text)

describe('what is changed by SQL counts:', () => {
  test('a change of the application, of its provider, or of its backchannel providers; a new apply that changes it ends that', async () => {
    await put(await named('oauth2', slug))
    await put(await named('scim', `${slug}-back`))
    const changes = [
      `UPDATE applications SET meta_launch_url = 'https://evil.example.com' WHERE slug = '${slug}'`,
      `UPDATE providers SET settings = settings || '{"sub_mode": "user_email"}' WHERE name = '${slug}'`,
      `INSERT INTO backchannel_providers SELECT a.pk, p.pk FROM applications a, providers p WHERE a.slug = '${slug}' AND p.name = '${slug}-back'`,
    ]
    for (const [index, text] of changes.entries()) {
      expect(await change(text)).toBe(1)
      expect(await isOutside(), text).toBe(true)
      const model = index === 1 ? 'oauth2provider' : 'application'
      expect(await look()).toEqual([[model, slug, false]])
      const note = { meta_description: `note ${index}` }
      const issuer = index === 1 ? 'global' : 'per_provider'
      await put(
        await named('oauth2', slug, {
          app: note,
          provider: { issuer_mode: issuer, access_code_validity: `minutes=${index + 2}` },
        }),
      )
      expect(await isOutside()).toBe(false)
    }
    expect(await look()).toEqual([])
  })

  test('a deletion', async () => {
    await put(await named('ldap', slug))
    await change(`DELETE FROM applications WHERE slug = '${slug}'`)
    expect(await isOutside()).toBe(true)
    await change(`DELETE FROM providers WHERE name = '${slug}'`)
    expect(await look()).toEqual([
      ['application', slug, true],
      ['ldapprovider', slug, true],
    ])
  })

  const values: Record<string, Record<string, string>> = {
    applications: {
      ...{ name: `'x'`, slug: `'x'`, provider_pk: 'NULL', open_in_new_tab: 'NOT open_in_new_tab', owner: `'x'` },
      ...{ meta_launch_url: `'x'`, meta_description: `'x'`, meta_publisher: `'x'`, policy_engine_mode: `'all'` },
      ...{ group_name: `'x'`, created_by: '999' },
    },
    providers: {
      ...{
        uuid: 'gen_random_uuid()',
        kind: `'saml'`,
        name: `'x'`,
        oauth2_client_id: `'x'`,
        owner: `'x'`,
        created_by: '999',
      },
      ...{
        authentication_flow: 'authorization_flow',
        authorization_flow: 'NULL',
        invalidation_flow: 'authorization_flow',
      },
      ...{ settings: `settings || '{"sub_mode": "x"}'`, secrets: `secrets || '{"client_secret": "x"}'` },
    },
  }
  test.each(Object.keys(values))('each column of %s', async (table) => {
    await put(await named('oauth2', slug))
    const { pk, provider } = await there.db.application.findUniqueOrThrow({
      where: { slug },
      include: { provider: true },
    })
    const where = `pk = '${table === 'applications' ? pk : provider?.pk}'`
    const digest = () =>
      there.db.$queryRawUnsafe(`SELECT object_digest('key', object_state(t)) FROM ${table} t WHERE ${where}`)
    const ofRow = values[table] ?? {}
    const columns = await rows<{ name: string }>(
      there.db,
      sql`SELECT column_name AS name FROM information_schema.columns
        WHERE table_schema = 'public' AND table_name = ${table} AND column_name NOT IN ('pk', 'created_at')`,
    )
    expect(columns.map(({ name }) => name).sort()).toEqual(Object.keys(ofRow).sort())
    for (const [column, value] of Object.entries(ofRow)) {
      const before = await digest()
      await change(`UPDATE ${table} SET ${column} = ${value} WHERE ${where}`)
      expect(await digest(), column).not.toEqual(before)
    }
  })
})

test('the history of an application of another owner does not say so', async () => {
  await put(await named('proxy', slug), { 'gatewright-owner': 'team-a' })
  await change(`UPDATE applications SET group_name = 'x' WHERE slug = '${slug}'`)
  const role = await there.make.role(['view_application'], ['team-b'])
  const group = await there.make.group({ roles: [role.pk] })
  const bound = await there.make.user({ groups: [group.pk] })
  const answer = await bound.get(`/api/v3/core/applications/${slug}/history/`)
  expect(answer.status).toBe(404)
  expect(await bound.get('/api/v3/core/applications/?changed_outside=true')).toMatchObject({ json: { results: [] } })
})
