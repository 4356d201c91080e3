import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { answered, applyPath, freshDatabase, installation, named } from '../support/kit.ts'

/** Names that differ in case, width or blanks alone are one name, wherever one is written. */

const on = await installation()

const create = (name: unknown) =>
  on.admin.send({ method: 'POST', url: '/api/v3/core/groups/', payload: { name } as object })
const blueprint = (model: string, identifiers: object, attrs: object = {}) =>
  on.admin.put('/api/v3/blueprints/', {
    version: 1,
    metadata: { name: 'a' },
    entries: [{ model, identifiers, attrs }],
  })

test.each([
  ['  padded\u00a0', 'padded'],
  ['Cafe\u0301', 'Café'],
  ['\ufeffmarked', 'marked'],
  ['two words', 'two words'],
])('%j is stored as %j', async (sent, stored) => {
  expect(await create(sent)).toMatchObject({ status: 201, json: { name: stored } })
  expect((await create(sent)).json).toMatchObject({ name: [expect.stringContaining('taken')] })
})

test.each([
  ['ad\u200bmins', 'May not hold control or format characters.'],
  ['ad\u202emins', 'May not hold control or format characters.'],
  ['ad\nmins', 'May not hold control or format characters.'],
  ['\u00ad', 'May not hold control or format characters.'],
  [' \t\u3000', 'May not be empty.'],
  // Composed letters that NFC takes apart: three for one.
  ['\u{1d160}'.repeat(100), 'Must be at most 255 characters.'],
])('%j is refused', async (sent, message) => {
  expect(await create(sent)).toMatchObject({ status: 400, json: { name: [message] } })
})

test('names that only look alike are different names, and a username may have letters of several scripts', async () => {
  for (const name of ['Kraken', 'Κrаken', 'Команда DevOps']) await answered(201, create(name), { name })
  for (const username of ['boris', 'borіs', 'ольга.smith', 'さくら김'])
    expect(await blueprint('service_core.user', { username })).toMatchObject({ status: 200, json: { applied: true } })
  expect(await on.db.user.count({ where: { username: { in: ['boris', 'borіs'] } } })).toBe(2)
})

describe('a name in another case is taken', () => {
  test('for a group, also when it is renamed, and not for the group itself', async () => {
    await create('Straße')
    await answered(400, create('STRASSE'), { name: ['group "Straße" exists; names are compared without case.'] })
    const { json } = await create('Operators')
    const { pk } = json as { pk: string }
    const rename = (name: string) =>
      on.admin.send({ method: 'PATCH', url: `/api/v3/core/groups/${pk}/`, payload: { name } })
    await answered(400, create('OPERATORS'), { name: ['group "Operators" exists; names are compared without case.'] })
    expect(await rename('operatorS')).toMatchObject({ status: 200, json: { name: 'operatorS' } })
    expect(await rename('STRAßE')).toMatchObject({ status: 400 })
    expect(await rename('OPERATORS')).toMatchObject({ status: 200 })
  })

  test('for a user, a role, a flow and a key pair', async () => {
    const documents: [string, string, Record<string, unknown>][] = [
      ['service_core.user', 'username', {}],
      ['service_rbac.role', 'name', {}],
      ['service_flows.flow', 'slug', { name: 'F', designation: 'authorization' }],
      ['service_crypto.certificatekeypair', 'name', {}],
    ]
    for (const [model, field, attrs] of documents) {
      expect(await blueprint(model, { [field]: 'Someone' }, attrs)).toMatchObject({ status: 200 })
      expect(await blueprint(model, { [field]: 'someone' }, attrs), model).toMatchObject({ status: 400 })
      expect(await blueprint(model, { [field]: 'Someone' }, attrs)).toMatchObject({ status: 200 })
    }
  })

  test('for an application and its provider', async () => {
    const body = await named('radius', 'Wiki')
    expect(await on.admin.put(applyPath, body)).toMatchObject({ status: 200 })
    expect(await on.admin.put(applyPath, body)).toMatchObject({ status: 200, json: { applied: true } })
    const app = { ...body.app, slug: String(body.app.slug).toUpperCase() }
    const provider = { ...body.provider, name: String(body.provider.name).toUpperCase() }
    const exists = (what: string) => [`${what} exists; names are compared without case.`]
    const json = {
      app: { slug: exists(`application "${body.app.slug}"`) },
      provider: { name: exists('provider radius "Wiki"') },
    }
    for (const query of ['', '?dry_run=true'])
      expect(await on.admin.put(`${applyPath}${query}`, { ...body, app, provider })).toMatchObject({
        status: 400,
        json,
      })
    await answered(400, on.admin.put('/api/v3/blueprints/', [{ ...body, app, provider }]), { 0: json })
    // Only what was sent is quoted to a caller whose rights are bound to other owners.
    const permissions = ['add_application', 'change_application', 'add_radiusprovider', 'change_radiusprovider']
    const bound = await on.make.user({ permissions, owners: ['team-a'] })
    const hidden = await answered(
      400,
      bound.put(applyPath, { ...body, app, provider }, { headers: { 'gatewright-owner': 'team-a' } }),
    )
    expect(hidden.json).toMatchObject({
      app: { slug: [`"${app.slug}" is taken by another application.`] },
      provider: { name: ['"WIKI" is taken by another provider radius.'] },
    })
  })

  test('by an entry of the same document: 400, in a check, a plan and a set', async () => {
    const group = (name: string, more: object = {}) => ({ model: 'service_core.group', identifiers: { name }, ...more })
    const put = (entries: object[], query = '') =>
      on.admin.put(`/api/v3/blueprints/${query}`, { version: 1, metadata: { name: 'a' }, entries })
    const exists = (name: string) => [`group "${name}" exists; names are compared without case.`]
    const before = await on.db.group.count()
    for (const query of ['', '?dry_run=true'])
      expect(await put([group('Case-One'), group('case-two'), group('case-one')], query)).toMatchObject({
        status: 400,
        json: { entries: { 2: { name: exists('Case-One') } } },
        errors: [{ code: 'taken', pointer: '/entries/2/identifiers/name' }],
      })
    const first = await named('radius', 'of-a-set')
    const second = { ...first, app: { ...first.app, slug: String(first.app.slug).toUpperCase() } }
    await answered(400, on.admin.put('/api/v3/blueprints/', [first, second]), {
      1: { app: { slug: [expect.stringContaining('exists; names are compared without case.')] } },
    })
    expect(await on.db.group.count()).toBe(before)
    // One row of which one spelling goes, or whose spelling changes, is no second row.
    for (const [index, entries] of [
      [group('Fits'), group('Fits', { attrs: { attributes: { a: 1 } } }), group('fits too')],
      [group('Goes', { conditions: [true] }), group('Goes', { state: 'absent', conditions: [true] }), group('goes')],
      [group('other', { state: 'absent' }), group('new OTHER')],
    ].entries())
      expect(await put(entries), String(index)).toMatchObject({ status: 200, json: { applied: true } })
    const pk = '6f7e0000-0000-4000-9000-0000000000aa'
    const spelt = (name: string) => group(name, { identifiers: { pk }, attrs: { name }, conditions: [true] })
    expect(await put([spelt('Spelt'), spelt('SPELT')])).toMatchObject({ status: 200, json: { applied: true } })
    expect(await put([spelt('Other'), group('OTHER')])).toMatchObject({ status: 400 })
  })

  test('of two at the same time, one is created', async () => {
    for (let round = 0; round < 5; round += 1) {
      const names = [`Race ${round}`, `RACE ${round}`, `race ${round}`]
      const answers = await Promise.all(names.map(create))
      expect(answers.map(({ status }) => status).sort()).toEqual([201, 400, 400])
    }
  })

  test('but rows of an earlier version that differ in case alone are still changed and deleted', async () => {
    await on.db.group.createMany({ data: ['Twin', 'TWIN'].map((name) => ({ pk: uuid7(), name })) })
    for (const name of ['Twin', 'TWIN'])
      expect(await blueprint('service_core.group', { name }, { attributes: { name } })).toMatchObject({ status: 200 })
    expect(await on.db.group.count({ where: { attributes: { path: ['name'], equals: 'TWIN' } } })).toBe(1)
    const absent = { version: 1, metadata: { name: 'a' }, entries: [{ model: 'service_core.group', state: 'absent' }] }
    const remove = (name: string) =>
      on.admin.put('/api/v3/blueprints/', { ...absent, entries: [{ ...absent.entries[0], identifiers: { name } }] })
    expect(await remove('twin')).toMatchObject({ status: 200 })
    expect(await remove('TWIN')).toMatchObject({ status: 200 })
    expect((await on.db.group.findMany({ where: { name: { mode: 'insensitive', equals: 'twin' } } })).length).toBe(1)
  })
})

test.each([
  ['full-width letters', 'Ｐｌａｔｆｏｒｍ ｏｐｓ', 'platform ops', 'case and width'],
  ['a no-break blank', 'Data\u00a0keepers', 'Data keepers', 'width'],
  ['several blanks', 'on  call   team', 'on call team', 'repeated blanks'],
  ['several blanks and capitals', 'On   duty \u2003 team', 'on duty team', 'case, width and repeated blanks'],
  ['a ligature', 'Oﬃce', 'Office', 'case, width and repeated blanks'],
  ['a final sigma', 'ΟΔΟΣ', 'οδος', 'case'],
  ['a sharp s', 'Maß', 'MASS', 'case'],
  ['its capital', 'GROẞ', 'gross', 'case'],
  ['a capital with a dot', 'İzmir', 'i\u0307zmir', 'case'],
])('a name with %s is taken in its other form, and is found by it', async (_, name, other, without) => {
  expect(await create(name)).toMatchObject({ status: 201, json: { name } })
  await answered(400, create(other), {
    name: [`group ${JSON.stringify(name)} exists; names are compared without ${without}.`],
  })
  const child = { name: `below ${name}`, parent: other }
  await answered(201, on.admin.send({ method: 'POST', url: '/api/v3/core/groups/', payload: child }), {
    parent_name: name,
  })
})

test('rows of an earlier version whose names are one now are changed by their exact names', async () => {
  await on.db.group.createMany({ data: ['Fuß', 'Fuss'].map((name) => ({ pk: uuid7(), name })) })
  for (const name of ['Fuß', 'Fuss'])
    expect(await blueprint('service_core.group', { name }, { attributes: { name } })).toMatchObject({ status: 200 })
  expect(await create('FUSS')).toMatchObject({ status: 400 })
  expect(await blueprint('service_core.group', { name: 'below' }, { parent: 'Fuß' })).toMatchObject({ status: 200 })
  await answered(400, blueprint('service_core.group', { name: 'below' }, { parent: 'FUSS' }), {
    entries: { 0: { parent: [expect.stringContaining('More than one group is called "FUSS"')] } },
  })
})

test('the migration tidies the names of earlier versions, and leaves what would be a duplicate', async () => {
  const { db, pool } = await freshDatabase()
  const sql = await readFile(
    new URL('../../prisma/migrations/20261124011100_names_are_tidy/migration.sql', import.meta.url),
    'utf8',
  )
  const tidy = sql.slice(sql.indexOf('DO $$'))
  const names = [' a ', 'a\u200b', 'b\u200b', 'b', 'Cafe\u0301', '\u200b', 'fine', 'Fine']
  const pk = (index: number) => `6f7e0000-0000-4000-9000-00000000000${index}`
  await db.group.createMany({ data: names.map((name, index) => ({ pk: pk(index), name })) })
  await pool.query(tidy)
  const after = (await db.group.findMany({ orderBy: { pk: 'asc' } })).map(({ name }) => name)
  expect(after).toEqual(['a', 'a\u200b', 'b\u200b', 'b', 'Café', '\u200b', 'fine', 'Fine'])
  await pool.query(tidy)
  expect((await db.group.findMany({ orderBy: { pk: 'asc' } })).map(({ name }) => name)).toEqual(after)
})

test('every unique name is compared in all forms, and has an index for it', async () => {
  const { models } = await loadRegistry()
  const folded = new Set(
    models.flatMap(({ table, fields }) =>
      [...fields.values()].flatMap((field) =>
        field.folded && field.storage.in === 'column' ? [`${table}.${field.storage.column}`] : [],
      ),
    ),
  )
  expect([...folded].sort()).toEqual([
    ...['applications.slug', 'certificate_key_pairs.name', 'flows.slug', 'groups.name', 'providers.name'],
    ...['roles.name', 'trusted_issuers.name', 'users.username'],
  ])
  const indexes = await on.db.$queryRaw<{ name: string }[]>`
    SELECT indexname AS name FROM pg_indexes WHERE indexname LIKE '%_compared'`
  expect(indexes.map(({ name }) => name).sort()).toEqual(
    [...folded].map((each) => `${each.replace('.', '_')}_compared`).sort(),
  )
})
