import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Asker, answered, applyPath } from '../support/asker.ts'
import { type Body, dashboardOf, installation, name, named, textOf } from '../support/kit.ts'

/** What changed, as all surfaces say it: PostgreSQL orders the members of stored objects otherwise than documents do. */

const there = await installation()
const { token } = await there.make.user({ superuser: true })
const operator = await dashboardOf(there).session(token)

type Run = { id: string; changes: { action: string; fields: Record<string, unknown> }[]; logs: string[] }

async function put(path: string, body: unknown, as: Asker = there.admin): Promise<Run> {
  const answer = await answered(200, as.put(path, body))
  return (await there.admin.runOf(answer)) as Run
}
/** The sentence about the object, without its name, of a plan and of the apply. */
async function said(body: Body): Promise<string[]> {
  const plan = await put(`${applyPath}?dry_run=true`, body)
  const run = await put(applyPath, body)
  expect(run.changes).toEqual(plan.changes)
  expect(run.logs).toEqual(plan.logs.map((line) => line.replace('would be updated', 'updated')))
  return run.logs.map((line) => line.replace(/^.*?" /, ''))
}
async function pageOf({ id }: Run): Promise<string> {
  const { body } = await dashboardOf(there).send({
    method: 'GET',
    url: `/admin/runs/${id}/`,
    headers: { cookie: operator },
  })
  return textOf(body)
}
const uri = (path: string, mode = 'strict') => ({ matching_mode: mode, url: `https://${name}.example.com/${path}` })
const group = (attributes: object, attrs: object = {}) => ({
  ...{ version: 1, metadata: { name } },
  entries: [{ model: 'service_core.group', identifiers: { name }, attrs: { attributes, ...attrs } }],
})

describe('a list', () => {
  test('of redirect URIs: the one that is added, and the one that is removed', async () => {
    const body = (...redirect_uris: object[]) => named('oauth2', name, { provider: { redirect_uris } })
    await put(applyPath, await body(uri('a'), uri('b')))
    expect(await said(await body(uri('a'), uri('b'), uri('c')))).toEqual([
      `updated: redirect_uris + {"matching_mode":"strict","url":"https://${name}.example.com/c"}`,
      'unchanged',
    ])
    expect(await said(await body(uri('c'), uri('b')))).toEqual([
      `updated: redirect_uris - {"matching_mode":"strict","url":"https://${name}.example.com/a"}`,
      'unchanged',
    ])
  })

  test('that is a set is unchanged in another order, and nothing is written', async () => {
    const mappings = await Promise.all(
      ['a', 'b', 'c'].map((each) =>
        there.db.propertyMapping.create({
          data: { pk: randomUUID(), name: `${name} ${each}`, kind: 'oauth2', expression: '' },
        }),
      ),
    )
    const names = mappings.map((each) => each.name)
    const body = (property_mappings: string[]) => named('oauth2', name, { provider: { property_mappings } })
    await put(applyPath, await body(names))
    const xmin = () => there.db.$queryRaw`SELECT xmin::text, settings FROM providers WHERE name = ${name}`
    const before = await xmin()
    expect(await said(await body(names.toReversed()))).toEqual(['unchanged', 'unchanged'])
    expect(await xmin()).toEqual(before)
    expect(await said(await body([names[2] ?? '', names[0] ?? '']))).toEqual([
      `updated: property_mappings - "${name} b"`,
      'unchanged',
    ])
  })

  test.each([
    ['radius', { client_networks: '10.0.0.0/8, 10.9.0.0/16' }, { client_networks: '10.9.0.0/16,10.0.0.0/8' }],
    ['workspace_sync_a', { scopes: 'a,b' }, { scopes: 'b,a' }],
  ])('in a text of %s, too', async (kind, one, other) => {
    await put(applyPath, await named(kind, name, { provider: one }))
    expect(await said(await named(kind, name, { provider: other }))).toEqual(['unchanged', 'unchanged'])
  })

  test('of permissions and owners of a role is a set, of redirect URIs it is none', async () => {
    const role = (permissions: string[], owners: string[]) => ({
      ...{ version: 1, metadata: { name } },
      entries: [{ model: 'service_rbac.role', identifiers: { name }, attrs: { permissions, owners } }],
    })
    await put('/api/v3/blueprints/', role(['view_user', 'view_group'], ['a', 'b']))
    expect(await put('/api/v3/blueprints/', role(['view_group', 'view_user'], ['b', 'a']))).toMatchObject({
      changes: [{ action: 'unchanged' }],
    })
    const body = (...redirect_uris: object[]) => named('oauth2', name, { provider: { redirect_uris } })
    await put(applyPath, await body(uri('a'), uri('b')))
    expect(await put(applyPath, await body(uri('b'), uri('a')))).toMatchObject({ changes: [{ action: 'update' }, {}] })
  })
})

describe('an object', () => {
  const path = '/api/v3/blueprints/'

  test('differs at the paths that differ, in the log and on the page', async () => {
    const from = { zone: 'a', floors: { first: 1, second: [2, 3] }, list: [{ id: 1 }, { id: 2, of: 'x' }], old: true }
    await put(path, group(from))
    const to = { list: [{ id: 1 }, { of: 'x', id: 3 }], floors: { second: [2, 4], first: 1 }, zone: 'a', new: null }
    const run = await put(path, group(to))
    expect(run.logs).toEqual([
      `group "${name}" updated: attributes.floors.second - 3 + 4, attributes.list.1.id 2 -> 3, attributes.new + null, attributes.old - true`,
    ])
    expect(await pageOf(run)).toMatch(
      /floors\.second: - 3 \+ 4 attributes\.list\.1\.id: 2 -> 3 attributes\.new: \+ nothing attributes\.old: - true/,
    )
  })

  test('with its members in another order is unchanged', async () => {
    await put(path, group({ bb: { x: 1, y: 2 }, a: 1 }))
    expect(await put(path, group({ a: 1, bb: { y: 2, x: 1 } }))).toMatchObject({ changes: [{ action: 'unchanged' }] })
  })

  test('with a long text shows where that begins to differ', async () => {
    await put(path, group({ note: `${'same '.repeat(60)}old`, other: 1 }))
    const run = await put(path, group({ note: `${'same '.repeat(60)}new`, other: 1 }))
    expect(run.logs).toEqual([`group "${name}" updated: attributes.note …e same same old" -> …e same same new"`])
    expect(await pageOf(run)).toMatch(/attributes\.note: …e same same old -> …e same same new/)
  })
})
