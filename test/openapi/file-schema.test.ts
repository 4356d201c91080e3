import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { CORE_SCHEMA, defineScalarTag, defineSequenceTag, load, mergeTag } from 'js-yaml'
import { expect, test } from 'vitest'
import { loadRegistry } from '../../src/models/registry.ts'
import { customTags, fileSchema } from '../../src/openapi/file-schema.ts'
import { fileSchemaPath } from '../../src/paths.ts'
import { adminToken, applyPath, example, freshFolder, kinds, listening } from '../support/kit.ts'

/** The JSON Schema of files, as an editor uses it. */

const schema = fileSchema(await loadRegistry())
const validate = new Ajv2020({ strict: false, allErrors: true, discriminator: true }).compile(schema)
// An editor has no `discriminator`: it tries each variant.
const plain = new Ajv2020({ strict: false }).compile(schema)

/** The product's own reader has no part in it: a tag is what `customTags` says. */
const tags = customTags.map((each) => {
  const [name = '', kind] = each.split(' ')
  if (kind === 'scalar') return defineScalarTag<string>(name, { resolve: (source) => source, identify: () => false })
  return defineSequenceTag<unknown[], unknown[]>(name, {
    create: () => [],
    addItem: (list, item) => void list.push(item),
    finalize: (list) => list,
    identify: () => false,
  })
})
const editorSchema = CORE_SCHEMA.withTags(...tags, mergeTag)
const asSeen = (text: string) => load(text, { schema: editorSchema })

/** Each error, with its place. */
function errorsIn(value: unknown): string[] {
  const isValid = validate(value)
  expect(plain(value)).toBe(isValid)
  return (validate.errors ?? [])
    .filter(({ keyword }) => keyword !== 'if')
    .map(({ instancePath, message, params }) => `${instancePath} ${message}${params.additionalProperty ?? ''}`)
}

const root = new URL('../../', import.meta.url)
const textOf = (path: string) => readFileSync(new URL(path, root), 'utf8')
const filesIn = (folder: string, end: RegExp) =>
  readdirSync(new URL(folder, root))
    .filter((name) => end.test(name))
    .map((name) => `${folder}${name}`)

const isOurs = (text: string) => /^(version: 1|app:|entries:|\{\s*"(app|version)")/m.test(text)
const inDocs = [...filesIn('docs/', /\.md$/), 'README.md'].flatMap((path) =>
  [...textOf(path).matchAll(/^```(?:yaml|json)\n(.*?)^```$/gms)]
    .map(([, text = '']) => text)
    .filter(isOurs)
    .map((text, index) => [`${path} ${index + 1}`, text] as const),
)
const shipped = [...filesIn('examples/', /\.(json|yaml)$/), ...filesIn('blueprints/', /\.yaml$/)].map(
  (path) => [path, textOf(path)] as const,
)

test('there are examples in the documents', () => {
  expect(inDocs.length).toBeGreaterThan(15)
  expect(shipped.length).toBeGreaterThan(kinds.length)
})

test.each([...inDocs, ...shipped])('takes %s', (_, text) => {
  expect(errorsIn(asSeen(text))).toEqual([])
})

test('takes an export; the program prints what the service answers, which is cached like its description', async () => {
  const folder = freshFolder()
  const { on, gatewright } = await listening({ GATEWRIGHT_TOKEN: adminToken, DATA_DIR: folder })
  for (const kind of kinds) expect((await on.admin.put(applyPath, await example(kind))).status).toBe(200)
  const out = join(folder, 'all.yaml')
  expect(await gatewright(['export', '--out', out])).toMatchObject({ code: 0 })
  expect(errorsIn(asSeen(readFileSync(out, 'utf8')))).toEqual([])
  const answer = await on.as('').get(fileSchemaPath)
  expect(answer).toMatchObject({
    status: 200,
    headers: { 'content-type': 'application/schema+json; charset=utf-8', 'cache-control': 'no-cache' },
    json: schema,
  })
  const { code, output } = await gatewright(['validate', '--schema'])
  expect({ code, printed: JSON.parse(output) }).toEqual({ code: 0, printed: schema })
})

test('takes what the program takes beside the usual form', () => {
  const texts = [
    'version: 1\nentries:\n  some:\n    - { model: service_core.group, identifiers: { name: a }, attrs: null, conditions: null }\n',
    'version: 1\nmetadata: null\nprune: true\nowner: a\nentries: []\n',
    'version: 1\nentries:\n  - !If [true, { model: service_core.group, identifiers: { name: a } }]\n',
    'version: 1\nentries:\n  - model: service_core.group\n    state: !If [!Context x, present, absent]\n    identifiers: { name: !Env NAME }\n    attrs: { is_superuser: !Env SUPER, users: !Context users, parent: !Find [service_core.group, [name, b]] }\n',
    'version: 1\nentries:\n  - model: service_providers_oauth2.oauth2provider\n    identifiers: { name: a }\n    attrs: { client_secret: { create: !Env SECRET }, client_id: { generate: true }, client_type: !If [a, public, confidential] }\n',
    'version: 1\nentries:\n  - { model: service_providers_scim.scimprovider, identifiers: { name: a }, attrs: { token: { set: true } } }\n',
    'version: 1\nentries:\n  - { model: service_providers_rac.racprovider, identifiers: { name: a }, attrs: { settings: { set: true } } }\n',
    'version: 1\nentries:\n  - { model: service_core.user, identifiers: { pk: 3 }, attrs: { pk: 3, is_active: true } }\n',
    'version: 1\nentries:\n  - model: service_providers_radius.radiusprovider\n    identifiers: { name: a }\n    attrs: { shared_secret: { env: NAME } }\n',
    'version: 1\nentries:\n  - model: service_providers_scim.scimprovider\n    identifiers: { name: a }\n    attrs: { token: { file: secrets/token } }\n',
    'version: 1\nentries:\n  - { model: service_core.group, identifiers: { name: a }, attrs: { users: { add: [b], remove: [3] } } }\n',
    'app: { slug: a, was: b }\nprovider_model: service_providers_ldap.ldapprovider\nprovider: { name: a, was: b }\n',
  ]
  for (const text of texts) expect([text, errorsIn(asSeen(text))]).toEqual([text, []])
})

const group = (more: string) => `version: 1\nentries:\n  - { model: service_core.group, ${more} }\n`
const submission = (provider: string) =>
  `app: { slug: a, name: A }\nprovider_model: service_providers_oauth2.oauth2provider\nprovider: { name: a, ${provider} }\n`

test.each([
  [
    'an unknown field',
    group('identifiers: { name: a }, attrs: { parnt: b }'),
    '/entries/0/attrs must NOT have additional properties',
    'parnt',
  ],
  [
    'an unknown member of an entry',
    group('identifiers: { name: a }, attr: {}'),
    '/entries/0 must NOT have additional properties',
    'attr',
  ],
  [
    'an identifier by which no row is found',
    group('identifiers: { name: a, attributes: {} }'),
    '/entries/0/identifiers must NOT have additional properties',
    'attributes',
  ],
  [
    'an unknown state',
    group('identifiers: { name: a }, state: gone'),
    '/entries/0/state must be equal to one of the allowed values',
    '',
  ],
  ['an entry that finds nothing', group('attrs: {}'), "/entries/0 must have required property 'identifiers'", ''],
  [
    'an unknown model',
    'version: 1\nentries:\n  - { model: service_core.grup, identifiers: { name: a } }\n',
    '/entries/0 value of tag "model" must be in oneOf',
    '',
  ],
  [
    'an unknown field of a provider',
    submission('authorisation_flow: b'),
    '/provider must NOT have additional properties',
    'authorisation_flow',
  ],
  [
    'an unknown choice',
    submission('client_type: private'),
    '/provider/client_type must be equal to one of the allowed values',
    '',
  ],
  [
    'an unknown member of a list',
    submission('redirect_uris: [{ matching_mode: strict, uri: b }]'),
    '/provider/redirect_uris/0 must NOT have additional properties',
    'uri',
  ],
  ['half a submission', 'app: { slug: a }\n', " must have required property 'provider_model'", ''],
  ['nothing of it', 'name: ci\n', " must have required property 'entries'", ''],
])('refuses %s, and names its place', (_, text, message, name) => {
  expect(errorsIn(asSeen(text))).toContain(`${message}${name}`)
})

test('beside the schema stands the setting for editors, with all tags', async () => {
  const { forEditors } = await import('../../src/cli/schema.ts')
  for (const tag of customTags) expect(forEditors).toContain(`    "${tag}"`)
  expect(forEditors).toContain('"yaml.customTags": [')
})
