import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { answered, applied, documentsPath, installation, rows, sql } from '../support/kit.ts'

/** PUT /api/v3/blueprints/: a whole blueprint. */

const on = await installation()
const { apply } = on.admin

const groups = (name: string) => `version: 1
metadata: { name: ${name} }
entries:
  - { model: service_core.group, id: top, identifiers: { name: ${name} top } }
  - { model: service_core.group, identifiers: { name: ${name} below }, attrs: { parent: !KeyOf top } }
`

test('the shipped organisation is applied, and a second time changes nothing', async () => {
  const text = await readFile(new URL('../../examples/organisation.yaml', import.meta.url), 'utf8')
  await applied(apply(text))
  const counted = await rows(on.db, sql`SELECT count(*) FROM users`)
  const again = await applied(apply(text))
  expect(again.logs.filter((line) => !line.endsWith(' unchanged'))).toEqual([])
  expect(await rows(on.db, sql`SELECT count(*) FROM users`)).toEqual(counted)
})

test('JSON is accepted too, without tags, and the run is named after the document', async () => {
  const entries = [{ model: 'service_core.group', identifiers: { name: 'by json' } }]
  const answer = await applied(apply(entries, { name: 'by\njson' }))
  expect(await on.admin.runOf(answer)).toMatchObject({ title: 'apply blueprint by json', state: 'done' })
})

test('one invalid entry rolls back all others', async () => {
  const answer = await apply(
    `${groups('half')}  - { model: service_core.user, identifiers: { username: 'a b' }, attrs: { nam: x } }\n`,
  )
  expect(answer.status).toBe(400)
  expect(answer.json).toMatchObject({
    entries: { 2: { nam: ['Unknown field. Did you mean name?'] } },
    code: 'invalid',
  })
  expect(await rows(on.db, sql`SELECT 1 FROM groups WHERE name LIKE 'half%'`)).toEqual([])
})

test('If-None-Match: * creates, and refuses existing objects', async () => {
  const once = { ifNoneMatch: '*' }
  expect((await apply(groups('once'), once)).status).toBe(200)
  expect((await apply(groups('once'), once)).status).toBe(412)
})

test('each entry needs its own permission', async () => {
  const someone = await on.make.user({ permissions: ['add_flow', 'change_group'] })
  expect(await someone.apply(groups('mine'))).toMatchObject({ status: 403, json: { code: 'permission_denied' } })
})

test.for([
  ['nothing', '', /"The blueprint is empty, or holds only comments: write its content, or remove it\."/],
  ['a comment', '# a\n---\n', /The blueprint is empty/],
  ['no mapping', '- 1', /Must be an object/],
  ['an alias of nothing', 'a: &x 1\nb: *y', /Line 2 .*unidentified alias/],
  ['two documents', '---\na: 1\n---\nb: 1', /2 documents/],
  ['a foreign tag', 'version: !!python/object 1', /tag/],
  ['a bracket too many', 'version: [1', /Line 1 /],
] as const)('a text of %s is an error that says where', async ([, text, message]) => {
  const answer = await answered(400, apply(text))
  expect(answer.text).toMatch(message)
})

test('other media types, bytes that are not text and large bodies are refused', async () => {
  expect((await apply(Buffer.from([0xff, 0xfe]))).status).toBe(400)
  expect((await apply('#'.repeat(8_400_000))).status).toBe(413)
  expect((await apply(groups('xml'), { headers: { 'content-type': 'text/xml' } })).status).toBe(415)
  expect((await on.admin.get(documentsPath)).status).toBe(405)
})

const entry = (model: string, identifiers: string, attrs = '{}') =>
  `version: 1\nmetadata: { name: odd }\nentries:\n  - { model: ${model}, identifiers: ${identifiers}, attrs: ${attrs} }\n`
const byField = 'No row can be found by this field: move it to attrs.'
const group = 'service_core.group'

test.each([
  ['a link', entry(group, '{ users: [1] }'), { 0: { name: ['This field is required.'], users: [byField] } }],
  ['a link beside a name', entry(group, '{ name: x, roles: [] }'), { 0: { roles: [byField] } }],
  ['a JSON object', entry(group, '{ name: x, attributes: { a: 1 } }'), { 0: { attributes: [byField] } }],
  [
    'a secret',
    entry('service_providers_oauth2.oauth2provider', '{ name: x, client_secret: abc }'),
    { 0: expect.objectContaining({ client_secret: [byField] }) },
  ],
  [
    'a setting',
    entry('service_providers_oauth2.oauth2provider', '{ name: x, issuer_mode: global }'),
    { 0: expect.objectContaining({ issuer_mode: [byField] }) },
  ],
  [
    'NUL in !Find',
    entry(group, '{ name: x }', `{ parent: !Find [${group}, { name: "a\\0b" }] }`),
    { 0: { parent: ['!Find service_core.group: name: May not hold NUL characters or halves of surrogate pairs.'] } },
  ],
  [
    'a list in !Find',
    entry(group, '{ name: x }', `{ parent: !Find [${group}, { name: [a, b] }] }`),
    { 0: { parent: [expect.stringContaining('!Find')] } },
  ],
])('what finds no row is refused as an identifier: %s', async (_, text, entries) => {
  expect(await apply(text)).toMatchObject({ status: 400, json: { code: 'invalid', entries } })
})
