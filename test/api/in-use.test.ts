import { describe, expect, test } from 'vitest'
import { type Asker, aFlow, aGroup, aProvider, applied, type Entry, installation, name } from '../support/kit.ts'

/** What others refer to is not deleted, and the refusal names them before anything is recorded. */

const on = await installation()

const apply = (entries: readonly Entry[], as: Asker = on.admin) => as.apply(entries, { name })
const write = (entries: readonly Entry[]) => applied(apply(entries))

const absent = (entry: Entry): Entry => ({ ...entry, state: 'absent', attrs: {} })
const flow = () => aFlow(name, { name, designation: 'authorization' })
const mapping = () => ({ model: 'service_mappings.propertymapping', identifiers: { name, kind: 'oauth2' } })

const refusal = (message: string, at = 0) => ({
  status: 400,
  text: expect.stringContaining('"code":"in_use"'),
  json: { entries: { [at]: [message] } },
})

test('a group that is the parent of others', async () => {
  const below = Array.from({ length: 22 }, (_, index) => `${name} ${String(index).padStart(2, '0')}`)
  await write([aGroup(name), ...below.slice(0, 1).map((each) => aGroup(each, { parent: name }))])
  expect(await apply([absent(aGroup(name))])).toMatchObject(
    refusal(`group "${name}" is the parent of group "${below[0]}": change or delete that first.`),
  )
  await write(below.map((each) => aGroup(each, { parent: name })))
  const { text } = await apply([absent(aGroup(name))])
  expect(text.match(/group \\"[^"]+ \d\d\\"/g)).toHaveLength(2 * 20)
  expect(text).toContain(' and 2 more: change or delete that first.')
  expect(await on.db.run.count({ where: { title: { contains: name }, state: 'done', applied: false } })).toBe(0)
})

test('what providers refer to, in columns and in lists', async () => {
  await write([
    flow(),
    mapping(),
    aGroup(name),
    aProvider('oauth2', name, { authorization_flow: name, property_mappings: [name] }),
    aProvider('scim', `${name} sync`, { url: 'https://scim.example/', token: 'x'.repeat(20), filter_group: name }),
  ])
  for (const [entry, sentence] of [
    [flow(), `flow "${name}" is the authorization_flow of provider oauth2 "${name}"`],
    [mapping(), `property mapping "${name}" is one of the property_mappings of provider oauth2 "${name}"`],
    [aGroup(name), `group "${name}" is the filter_group of provider scim "${name} sync"`],
  ] as const)
    expect(await apply([absent(entry)])).toMatchObject(refusal(`${sentence}: change or delete that first.`))
})

describe('what the document does to them counts', () => {
  const parent = () => [aGroup(name), aGroup(`${name} below`, { parent: name })]

  test('a referrer that is changed or deleted before', async () => {
    await write(parent())
    await write([aGroup(`${name} below`, { parent: null }), absent(aGroup(name))])
    await write(parent())
    await write([absent(aGroup(`${name} below`)), absent(aGroup(name))])
    await write(parent())
    // The entries are applied as they stand.
    expect(await apply([absent(aGroup(name)), absent(aGroup(`${name} below`))])).toMatchObject({ status: 400 })
  })

  test('a mapping that no provider takes any more may have another kind', async () => {
    await write([
      mapping(),
      aProvider('oauth2', name, { authorization_flow: 'default-authorization-explicit', property_mappings: [name] }),
    ])
    const moved = { ...mapping(), attrs: { kind: 'scim' } }
    expect(await apply([moved])).toMatchObject({ status: 400 })
    await write([aProvider('oauth2', name, { property_mappings: [] }), moved])
  })
})

test('names are for callers who may view the rows', async () => {
  await write([flow(), aProvider('oauth2', name, { authorization_flow: name })])
  const someone = await on.make.user({ permissions: ['delete_flow', 'view_flow', 'change_flow'] })
  expect(await apply([absent(flow())], someone)).toMatchObject(
    refusal(`flow "${name}" is the authorization_flow of 1 that you may not view: change or delete that first.`),
  )
})
