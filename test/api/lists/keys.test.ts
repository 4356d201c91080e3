import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { answered, applied, installation } from '../../support/kit.ts'
import { readDescription } from '../../support/openapi.ts'

/** A key in a path, and in `?pk=`, means the row with this key. */

const on = await installation()
expect(await on.admin.submit('ldap', 'by-key')).toMatchObject({ status: 200 })
await on.make.group({ users: [1] })
const issuer = { issuer: 'https://ci.example.com', audience: 'gatewright' }
await applied(on.admin.apply([{ model: 'service_rbac.trustedissuer', identifiers: { name: 'by-key' }, attrs: issuer }]))
for (const stack of ['one', 'two'])
  await applied(on.admin.apply([{ model: 'service_rbac.role', identifiers: { name: stack } }], { stack }))
await on.db.totpDevice.create({ data: { uuid: randomUUID(), userPk: 1, name: 'Phone', sealedKey: 'sealed' } })
const { pk: applicationPk } = await on.db.application.findFirstOrThrow()
await on.db.userConsent.create({ data: { userPk: 1, applicationPk, permissions: 'openid' } })

const page = z.object({
  pagination: z.object({ count: z.int() }),
  results: z.array(z.record(z.string(), z.unknown())),
})
const list = async (path: string) => page.parse((await on.admin.get(`/api/v3/${path}`)).json)

describe('in a path', () => {
  test.each([
    ['core/applications/', 'slug'],
    ['core/groups/', 'pk'],
    ['providers/all/', 'name'],
    ['providers/ldap/', 'name'],
    ['flows/instances/', 'slug'],
    ['propertymappings/all/', 'pk'],
    ['crypto/certificatekeypairs/', 'name'],
    ['rbac/roles/', 'name'],
    ['rbac/trustedissuers/', 'name'],
  ])('%s', async (path, by) => {
    const [row] = (await list(path)).results
    expect((await answered(200, on.admin.get(`/api/v3/${path}${String(row?.pk).toUpperCase()}/`))).json).toEqual(row)
    expect((await on.admin.get(`/api/v3/${path}${encodeURIComponent(String(row?.[by]))}/`)).json).toEqual(row)
    const other = typeof row?.pk === 'number' ? '2147483647' : randomUUID()
    expect(await on.admin.get(`/api/v3/${path}${other}/`)).toMatchObject({ status: 404 })
  })

  test('a number is the key of a provider, and a number with a zero before it a name', async () => {
    const { pk } = await on.db.provider.findFirstOrThrow()
    for (const name of [String(pk), `00${pk}`])
      await on.db.provider.create({ data: { uuid: randomUUID(), kind: 'scim', name } })
    expect(await on.admin.get(`/api/v3/providers/all/${pk}/`)).toMatchObject({ json: { name: 'by-key' } })
    expect(await on.admin.get(`/api/v3/providers/scim/${pk}/`)).toMatchObject({ status: 404 })
    expect(await on.admin.get(`/api/v3/providers/scim/00${pk}/`)).toMatchObject({ json: { name: `00${pk}` } })
    expect((await list(`providers/scim/?name=${pk}`)).results).toMatchObject([{ name: String(pk) }])
  })

  test('an application is deleted by its key, too', async () => {
    await on.admin.submit('saml', 'to-delete')
    const { pk } = await on.db.application.findUniqueOrThrow({ where: { slug: 'to-delete' } })
    const url = `/api/v3/core/applications/${pk}/`
    const headers = { 'if-match': (await on.admin.get(url)).headers.etag ?? '' }
    expect(await on.admin.delete(url, { headers })).toMatchObject({ status: 204 })
    expect(await on.db.application.count({ where: { pk } })).toBe(0)
  })
})

const keysOf = { '/runs/': 'id', '/audit/': 'id', '/stacks/': 'name' }

test('every list takes its key as a filter, once or more', async () => {
  // Those of a path are parts of one object.
  const lists = (await readDescription(on.app)).operations.filter(
    ({ operationId, path }) => operationId.endsWith('_list') && !path.includes('{'),
  )
  expect(lists.length).toBeGreaterThan(20)
  for (const { path, parameters } of lists) {
    const short = path.replace('/api/v3/', '')
    const { results } = await list(`${short}?page_size=2`)
    const key = Object.entries(keysOf).find(([end]) => path.endsWith(end))?.[1] ?? 'pk'
    expect
      .soft(
        parameters.map(({ name }) => name),
        path,
      )
      .toContain(key)
    const keys = results.map((row) => row[key])
    const query = keys.map((each) => `${key}=${each}`).join('&')
    if (keys.length === 0) continue
    expect
      .soft(
        (await list(`${short}?${query}&page_size=2`)).results.map((row) => row[key]),
        path,
      )
      .toEqual(keys)
    expect.soft((await list(`${short}?${key}=${keys[0]}`)).pagination.count, path).toBe(1)
  }
})
