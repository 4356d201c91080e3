import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { catalogue } from '../../src/errors.ts'
import { permissionNames } from '../../src/models/registry.ts'
import { installation, kinds } from '../support/kit.ts'
import { type Content, findIn, readDescription, schemaPath } from '../support/openapi.ts'

/** The operations of the contract, by their number there. */
const contract = [
  'authenticators_admin_totp_list',
  'authenticators_totp_list',
  'core_transactional_applications_update',
  'core_user_consent_list',
  'core_tokens_partial_update',
  'core_groups_partial_update',
  'core_users_list',
  'core_groups_list',
  'core_tokens_create',
  'core_groups_create',
  'core_users_me_retrieve',
]

const service = await installation({ workers: 'none' })
const api = await readDescription(service.app)

const find = findIn(api)

test('is valid OpenAPI 3.1', async () => {
  expect(api.document.openapi).toBe('3.1.0')
  expect(await new Validator().validate(structuredClone(api.document))).toEqual({ valid: true })
})

test('has every operation of the contract', () => {
  expect(api.operations.map(({ operationId }) => operationId)).toEqual(expect.arrayContaining(contract))
})

test('is the same text each time, and for another start of the same', async () => {
  const other = await installation({ workers: 'none' })
  const [first, again, elsewhere] = await Promise.all(
    [service, service, other].map(({ app }) => app.inject({ url: schemaPath })),
  )
  expect(again?.body).toBe(first?.body)
  expect(elsewhere?.body).toBe(first?.body)
})

test('starts with both applies; the other paths are sorted', () => {
  const [first, second, ...others] = Object.keys(api.document.paths)
  expect([first, second]).toEqual(['/api/v3/blueprints/', '/api/v3/core/transactional/applications/'])
  expect(others).toEqual(others.toSorted())
})

test('shows no parameter that is declared only to be refused', () => {
  for (const { operationId, parameters } of api.operations)
    for (const { name, schema } of parameters)
      expect.soft(Object.keys(schema), `${operationId}: ${name}`).not.toEqual([])
})

/** The exchange of identity tokens needs no access token. */
const hasCaller = ({ 'x-permission': needed }: (typeof api.operations)[number]) => !needed.includes('anyone')

test('names each operation once, with a summary, a tag and the permission that it needs', () => {
  const ids = api.operations.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  const ofNone = ['anyone', 'authenticated', 'superuser']
  const known = [...ofNone, ...permissionNames(service.engine.registry)]
  for (const { operationId, summary, description, tags, 'x-permission': needed } of api.operations) {
    expect.soft(operationId).toMatch(/^[a-z][a-z0-9_]+$/)
    expect.soft(summary, operationId).toMatch(/^[A-Z].*[^.]$/)
    expect.soft(tags, operationId).toHaveLength(1)
    expect.soft(known, operationId).toEqual(expect.arrayContaining([...needed]))
    for (const name of needed.filter((each) => !ofNone.includes(each)))
      expect.soft(description, operationId).toContain(`\`${name}\``)
  }
})

test('names what some requests of an operation need', () => {
  const known = ['superuser', ...permissionNames(service.engine.registry)]
  for (const { operationId, description, 'x-also-needs': needs = [] } of api.operations)
    for (const { permission, when } of needs) {
      expect.soft(known, operationId).toEqual(expect.arrayContaining([...permission]))
      expect.soft(when, operationId).toMatch(/^(for|to) .*[^.]$/)
      for (const name of permission) expect.soft(description, operationId).toContain(`\`${name}\``)
      expect.soft(description, operationId).toContain(when)
    }
  const namesOf = (id: string) => find(id)['x-also-needs']?.flatMap(({ permission }) => permission)
  expect(namesOf('core_tokens_create')).toEqual(['add_token', 'superuser'])
  expect(namesOf('core_tokens_partial_update')).toEqual(['change_token', 'superuser'])
  expect(namesOf('core_tokens_list')).toEqual(['view_token'])
  expect(namesOf('core_tokens_destroy')).toEqual(['delete_token'])
  expect(namesOf('core_tokens_view_key_retrieve')).toEqual(['view_token_key'])
  expect(namesOf('core_user_consent_list')).toEqual(['view_userconsent'])
  expect(find('core_user_consent_list').description).toContain("`view_userconsent`: to see others' rows")
  expect(namesOf('core_groups_list')).toEqual(['view_user'])
  const granting = ['add_user_to_group', 'assign_role', 'enable_group_superuser']
  expect(namesOf('core_groups_create')).toEqual([...granting, 'view_user'])
  expect(namesOf('core_groups_partial_update')).toEqual([
    'rename_group',
    ...granting,
    'disable_group_superuser',
    'superuser',
    'view_user',
  ])
  expect(find('core_groups_partial_update').description).toContain(
    'it must hold that too: documents find the group by its name',
  )
  const ofKinds = namesOf('core_transactional_applications_update')
  expect(ofKinds).toHaveLength(3 * kinds.length)
  const ofKind = ['add_oauth2provider', 'change_oauth2provider', 'delete_oauth2provider']
  expect(ofKinds).toEqual(expect.arrayContaining(ofKind))
  for (const id of ['core_users_list', 'core_users_me_retrieve', 'authenticators_totp_list'])
    expect.soft(namesOf(id), id).toBeUndefined()
})

test('describes impersonation for every operation but the exchange, which has no caller', () => {
  const { parameters } = api.document.components
  expect(find('auth_token_create').parameters).toEqual([])
  expect(Object.keys(parameters)).toEqual(['Impersonate-User'])
  expect(parameters['Impersonate-User']).toMatchObject({ in: 'header', 'x-permission': ['impersonate'] })
  for (const { operationId, parameters: taken } of api.operations.filter(hasCaller))
    expect.soft(taken, operationId).toContainEqual(parameters['Impersonate-User'])
})

test('describes the owner and the acknowledgements of both applies', () => {
  for (const id of ['core_transactional_applications_update', 'blueprints_update']) {
    const { parameters, responses } = find(id)
    const header = (name: string) => parameters.find((each) => each.in === 'header' && each.name === name)
    expect(header('Gatewright-Owner')).toMatchObject({ schema: { type: 'string', minLength: 1, maxLength: 100 } })
    expect(header('Gatewright-Allow')?.description).toMatch(/`takeover` \(.*`grants` \(/)
    expect(responses['409']?.description).toContain('`conflict`')
  }
  expect(JSON.stringify(api.document.components.schemas.Blueprint)).toContain('"owner":')
})

test('says of each operation how it refuses', () => {
  for (const operation of api.operations) {
    const { operationId, responses, requestBody, parameters } = operation
    const expected = ['400', '401', '500', '503']
    if (hasCaller(operation)) expected.push('403')
    if (requestBody !== undefined) expected.push('413', '415')
    if (parameters.some((each) => each.in === 'path' || each.name === 'page')) expected.push('404')
    expect.soft(Object.keys(responses), operationId).toEqual(expect.arrayContaining(expected))
    for (const status of Object.keys(responses).filter((each) => Number(each) >= 400))
      expect.soft(Object.values(catalogue), operationId).toContain(Number(status))
  }
})

test('has examples that fit their schemas', () => {
  const shown: [string, Content][] = api.operations.flatMap(({ operationId, requestBody, responses }) =>
    [requestBody, ...Object.values(responses)].flatMap((each) =>
      Object.values(each?.content ?? {}).map((content): [string, Content] => [operationId, content]),
    ),
  )
  for (const [id, { schema, example, examples = {} }] of shown) {
    const values = [example, ...Object.values(examples).map(({ value }) => value)].filter((each) => each !== undefined)
    for (const value of values) expect.soft(api.errorsOf(schema, value), `${id}: ${JSON.stringify(value)}`).toEqual([])
  }
  for (const [name, schema] of Object.entries(api.document.components.schemas))
    for (const value of [schema.examples ?? []].flat()) expect.soft(api.errorsOf(schema, value), name).toEqual([])
  expect(shown.filter(([, { examples }]) => Object.keys(examples ?? {}).length === kinds.length)).toHaveLength(1)
})

test('describes the bodies that the engine validates', async () => {
  const { schemas } = api.document.components
  expect(schemas.Oauth2Provider).toMatchObject({
    required: ['name', 'authorization_flow'],
    additionalProperties: false,
    properties: {
      client_secret: {
        anyOf: [
          { type: 'string', maxLength: 255 },
          { required: ['generate'] },
          { required: ['value', 'overlap'], properties: { value: { type: 'string', maxLength: 255 } } },
          { required: ['create'], properties: { create: { type: 'string', maxLength: 255 } } },
          { $ref: '#/components/schemas/SecretIsSet' },
        ],
        writeOnly: true,
      },
      sub_mode: {
        anyOf: [{ $ref: '#/components/schemas/SubMode' }, { type: 'null' }],
        description: 'A new one has `"hashed_user_id"`.',
      },
      authorization_flow: { type: 'string', maxLength: 255 },
      // No union with an object: generated clients would make a type of it in which a list is no list.
      property_mappings: {
        type: ['array', 'null'],
        maxItems: 500,
        items: { type: 'string', maxLength: 255 },
        description: expect.stringContaining('`{"add": [...], "remove": [...]}`'),
      },
      authentication_flow: { type: ['string', 'null'], maxLength: 255 },
    },
  })
  expect(schemas.SecretIsSet).toEqual({
    ...{ type: 'object', required: ['set'], additionalProperties: false, description: expect.any(String) },
    properties: { set: { type: 'boolean', examples: [true] } },
  })
  expect(schemas.ChangeGroup).not.toHaveProperty('required')
  expect(schemas.CreateGroup).toMatchObject({ required: ['name'] })
  expect(schemas.SubMode).toMatchObject({ type: 'string', enum: expect.arrayContaining(['user_upn']) })
})

test('describes a blueprint in both of its languages', async () => {
  const { requestBody } = find('blueprints_update')
  expect(Object.keys(requestBody?.content ?? {})).toEqual(['application/json', 'application/yaml'])
  const { Blueprint } = api.document.components.schemas
  expect(Blueprint).toMatchObject({
    required: ['version', 'entries'],
    additionalProperties: false,
    properties: {
      version: { type: 'integer', enum: [1] },
      metadata: { properties: { name: { type: 'string', minLength: 1, maxLength: 255 } } },
      entries: {
        maxItems: 10_000,
        items: {
          required: ['model', 'identifiers'],
          properties: {
            model: { enum: service.engine.registry.models.map(({ name }) => name) },
            id: { type: 'string' },
            state: { enum: ['present', 'created', 'must_created', 'absent'] },
            identifiers: { type: 'object' },
            attrs: { type: 'object' },
          },
        },
      },
    },
  })
  const { BlueprintOrSubmissions, ApplicationSubmissions } = api.document.components.schemas
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
  expect(requestBody?.content['application/json']?.schema).toEqual(ref('BlueprintOrSubmissions'))
  expect(BlueprintOrSubmissions?.oneOf).toEqual([ref('Blueprint'), ref('ApplicationSubmissions')])
  const submissions = { type: 'array', items: ref('ApplicationSubmission'), minItems: 1, maxItems: 5_000 }
  expect(ApplicationSubmissions).toMatchObject({
    ...{ type: 'object', required: ['submissions'], additionalProperties: false, properties: { submissions } },
  })
})

test('says of each apply how a client tells a 202 from a 200', () => {
  const applies = api.operations.filter(({ responses }) => responses['202'] !== undefined)
  expect(applies.map(({ operationId }) => operationId).sort()).toEqual([
    ...['blueprints_runs_apply_create', 'blueprints_update', 'core_transactional_applications_update'],
  ])
  for (const { operationId, description } of applies)
    expect.soft(description, operationId).toMatch(/A 202 has `run` instead of `applied` and `logs`: .* by the status/s)
})

test('its blueprint is one that is applied, in both of its languages, and so are its submissions', async () => {
  const applying = await installation()
  const { content } = find('blueprints_update').requestBody ?? { content: {} }
  expect(Object.keys(content['application/json']?.examples ?? {})).toEqual(['blueprint', 'submissions'])
  for (const [type, { example, examples = {} }] of Object.entries(content)) {
    const values = example === undefined ? Object.values(examples).map(({ value }) => value) : [example]
    for (const value of values) {
      const payload = typeof value === 'string' ? value : JSON.stringify(value)
      const answer = await applying.admin.send({
        method: 'PUT',
        url: '/api/v3/blueprints/',
        headers: { 'content-type': type },
        payload,
      })
      expect(answer, `${type}: ${answer.text}`).toMatchObject({ status: 200, json: { applied: true } })
    }
  }
  expect(String(content['application/yaml']?.example)).toContain('!KeyOf')
})

test('says by what texts and keys are ordered', () => {
  const orderOf = (id: string) => find(id).parameters.find(({ name }) => name === 'ordering')?.description
  for (const id of ['core_users_list', 'core_groups_list', 'core_user_consent_list'])
    expect.soft(orderOf(id), id).toMatch(/code point/)
  expect(orderOf('core_user_consent_list')).toContain('application (by its uuid)')
})
