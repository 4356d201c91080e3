import { expect, test } from 'vitest'
import { installation, kinds } from '../support/kit.ts'
import { findIn, type Json, readDescription } from '../support/openapi.ts'

/** What generators of clients make good code of, over the whole document. */

const api = await readDescription((await installation({ workers: 'none' })).app)

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

function* reachedFrom(node: unknown, seen = new Set<unknown>()): Generator<Json> {
  if (seen.has(node)) return
  seen.add(node)
  if (Array.isArray(node)) for (const item of node) yield* reachedFrom(item, seen)
  if (!isJson(node)) return
  yield node
  if (typeof node.$ref === 'string') yield* reachedFrom(named(node.$ref), seen)
  for (const [key, value] of Object.entries(node))
    if (!/^(examples?|default)$/.test(key)) yield* reachedFrom(value, seen)
}

const named = (ref: unknown): Json => api.document.components.schemas[String(ref).split('/').at(-1) ?? ''] ?? {}

/** The schemas of a body and all that they refer to. */
const bodies: readonly [string, Json][] = api.operations.flatMap(({ operationId, requestBody }) =>
  Object.values(requestBody?.content ?? {}).flatMap(({ schema }) =>
    [...reachedFrom(schema)].map((each): [string, Json] => [operationId, each]),
  ),
)

const find = findIn(api)

test('no body has a default: a client that sends it would reset what is stored', () => {
  expect(bodies.length).toBeGreaterThan(100)
  for (const [id, schema] of bodies)
    expect.soft(Object.hasOwn(schema, 'default'), `${id}: ${JSON.stringify(schema)}`).toBe(false)
})

test('no body has a read-only field', () => {
  for (const [id, schema] of bodies) expect.soft(schema.readOnly, id).toBeUndefined()
  for (const name of ['ApplicationFields', 'Oauth2Provider', 'CreateGroup', 'ChangeToken'])
    expect(api.document.components.schemas[name]?.properties, name).not.toHaveProperty('pk')
})

test('a submission has a name, and provider_model tells its variants apart; OAuth2 is the first', () => {
  const content = find('core_transactional_applications_update').requestBody?.content['application/json']
  expect(content?.schema).toEqual({ $ref: '#/components/schemas/ApplicationSubmission' })
  const { oneOf, discriminator } = named(content?.schema.$ref)
  const { propertyName, mapping } = discriminator as { propertyName: string; mapping: Record<string, string> }
  expect(propertyName).toBe('provider_model')
  expect(Object.values(mapping).map(($ref) => ({ $ref }))).toEqual(oneOf)
  for (const [value, ref] of Object.entries(mapping))
    expect(named(ref).properties).toMatchObject({ provider_model: { type: 'string', enum: [value] } })
  expect(Object.keys(mapping)).toHaveLength(kinds.length)
  expect(Object.keys(mapping)[0]).toBe('service_providers_oauth2.oauth2provider')
  const shown = Object.entries(content?.examples ?? {}).map(([kind, { value }]) => [kind, Object(value).provider_model])
  expect(shown.map(([, model]) => model)).toEqual(Object.keys(mapping))
  expect(shown[0]?.[0]).toBe('oauth2')
})

test('the schema of each answer, and of each body, has a name', () => {
  for (const { operationId, responses, requestBody } of api.operations)
    for (const [status, content] of [
      ['body', requestBody?.content] as const,
      ...Object.entries(responses).map(([status, { content }]) => [status, content] as const),
    ])
      if (content?.['application/json'] !== undefined)
        expect.soft(Object.keys(content['application/json'].schema), `${operationId} ${status}`).toEqual(['$ref'])
  expect(find('core_users_list').responses['200']?.content?.['application/json']?.schema).toEqual({
    $ref: '#/components/schemas/PaginatedUserList',
  })
})

test('an enum that stands in several places has a name', () => {
  const { schemas } = api.document.components
  // The orders of each list have a name of their own, though those of another list may be the same.
  const orders = new Set(Object.entries(schemas).flatMap(([name, schema]) => (/Ordering$/.test(name) ? [schema] : [])))
  expect(orders.size).toBeGreaterThan(15)
  const places = new Map<string, number>()
  for (const schema of reachedFrom([api.document.paths, api.document.components])) {
    const { enum: values } = schema
    if (Array.isArray(values) && values.length > 1 && !orders.has(schema))
      places.set(JSON.stringify(values), (places.get(JSON.stringify(values)) ?? 0) + 1)
  }
  expect([...places].filter(([, count]) => count > 1)).toEqual([])
  expect(schemas.UserType?.enum).toHaveLength(4)
  expect(schemas.User?.properties).toMatchObject({ type: { $ref: '#/components/schemas/UserType' } })
})

test('nothing is a const, which generators of older languages do not know, and no enum is of fractions', () => {
  for (const schema of reachedFrom([api.document.paths, api.document.components])) {
    expect.soft(schema.const, JSON.stringify(schema)).toBeUndefined()
    if (Array.isArray(schema.enum)) expect.soft(schema.type, JSON.stringify(schema)).not.toBe('number')
  }
  expect(api.document.components.schemas.Blueprint?.properties).toMatchObject({
    version: { type: 'integer', enum: [1] },
  })
  for (const id of ['blueprints_update', 'core_transactional_applications_update']) {
    const header = find(id).parameters.find(({ name }) => name === 'If-None-Match')
    expect(header?.schema, id).toEqual({ type: 'string', enum: ['*'] })
  }
})

test('the values of enums that share one have names of their own: in Go, all enums are in one package', () => {
  const { FlowDesignation, TokenIntent, TotpDeviceOrdering, UserType } = api.document.components.schemas
  expect(TokenIntent).toMatchObject({
    enum: ['verification', 'api', 'recovery', 'app_password'],
    'x-enum-varnames': [
      ...['TOKEN_INTENT_VERIFICATION', 'TOKEN_INTENT_API', 'TOKEN_INTENT_RECOVERY', 'TOKEN_INTENT_APP_PASSWORD'],
    ],
  })
  expect(FlowDesignation?.['x-enum-varnames']).toContain('FLOW_DESIGNATION_RECOVERY')
  expect(UserType).not.toHaveProperty('x-enum-varnames')
  expect(TotpDeviceOrdering).toMatchObject({
    enum: ['name', '-name', 'pk', '-pk'],
    'x-enum-varnames': ['NAME', 'NAME_DESC', 'PK', 'PK_DESC'].map((name) => `TOTP_DEVICE_ORDERING_${name}`),
  })
  const names = Object.values(api.document.components.schemas).flatMap(({ enum: values, ...schema }) =>
    Array.isArray(values) ? [schema['x-enum-varnames'] ?? values].flat() : [],
  )
  expect(names.length).toBeGreaterThan(50)
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
})

test('no enum holds null: typescript-fetch and others make code of it that does not compile', () => {
  let enums = 0
  for (const { enum: values } of reachedFrom([api.document.paths, api.document.components]))
    if (Array.isArray(values)) {
      enums += 1
      expect.soft(values).not.toContain(null)
    }
  expect(enums).toBeGreaterThan(50)
  expect(api.document.components.schemas.ReadOauth2Provider?.properties).toMatchObject({
    client_secret: { anyOf: [{ $ref: '#/components/schemas/SecretIsSet' }, { type: 'null' }] },
  })
})

test('a provider of a list is one of the kinds, which meta_model_name tells apart', () => {
  const { oneOf, discriminator, ...own } = api.document.components.schemas.ReadProvider ?? {}
  const { propertyName, mapping } = discriminator as { propertyName: string; mapping: Record<string, string> }
  expect(propertyName).toBe('meta_model_name')
  expect(Object.values(mapping).map(($ref) => ({ $ref }))).toEqual(oneOf)
  for (const [value, ref] of Object.entries(mapping))
    expect(named(ref).properties).toMatchObject({ meta_model_name: { type: 'string', enum: [value] } })
  expect(Object.keys(mapping)).toHaveLength(kinds.length)
  // openapi-generator needs it for Rust.
  expect(own).toEqual({
    type: 'object',
    properties: { meta_model_name: { type: 'string' } },
    required: ['meta_model_name'],
  })
})

test('no value has several types, but for null: oapi-codegen takes one', () => {
  for (const { type } of reachedFrom([api.document.paths, api.document.components]))
    if (Array.isArray(type)) expect.soft(type).toEqual([expect.any(String), 'null'])
})

test('a value of one type, or null, is no union; no schema has a title, which would be a name', () => {
  for (const { anyOf, title } of reachedFrom([api.document.paths, api.document.components])) {
    expect.soft(title).not.toBeTypeOf('string')
    const [one, other] = [anyOf ?? []].flat()
    if (Object(other).type === 'null') expect.soft(one).toHaveProperty('$ref')
  }
  expect(api.document.components.schemas.CreateGroup?.properties).toMatchObject({
    parent: { type: ['string', 'null'], maxLength: 255 },
  })
})

test('nothing is a boolean or a list: in Java, that does not compile', () => {
  expect(bodies.length).toBeGreaterThan(100)
  for (const [id, { anyOf }] of bodies) {
    const types = Array.isArray(anyOf) ? anyOf.filter(isJson).map(({ type }) => type) : []
    expect.soft(types.includes('boolean') && types.includes('array'), id).toBe(false)
  }
})

test('the body of an error may have more than is named', () => {
  for (const { operationId, responses } of api.operations)
    for (const [status, { content }] of Object.entries(responses))
      if (Number(status) >= 400)
        expect
          .soft(named(content?.['application/json']?.schema.$ref).additionalProperties, `${operationId} ${status}`)
          .toBe(true)
})

test('the answers 200 and 202 of an apply have nothing in common', () => {
  for (const id of ['blueprints_update', 'core_transactional_applications_update']) {
    const { responses } = find(id)
    const [ended, accepted] = ['200', '202'].map((status) => {
      const content = responses[status]?.content?.['application/json']
      if (content === undefined) throw new Error(`${id} has no ${status}`)
      return { schema: content.schema, values: Object.values(content.examples ?? {}).map(({ value }) => value) }
    })
    if (ended === undefined || accepted === undefined) throw new Error(`${id} has no answers`)
    expect(accepted.values.length).toBeGreaterThan(0)
    for (const value of accepted.values) expect(api.errorsOf(ended.schema, value), id).not.toEqual([])
    expect(api.errorsOf(accepted.schema, { applied: true, logs: [] }), id).not.toEqual([])
    const shared = Object.keys(Object(named(ended.schema.$ref).properties))
    expect(Object.keys(Object(named(accepted.schema.$ref).properties))).not.toEqual(expect.arrayContaining(shared))
  }
})

test('each operation says that headers may be too large', () => {
  for (const { operationId, responses } of api.operations) expect.soft(responses['431'], operationId).toBeDefined()
})

test('each parameter has a description', () => {
  for (const { operationId, parameters } of api.operations)
    for (const { name, description } of parameters)
      expect.soft(description, `${operationId}: ${name}`).toMatch(/^[A-Z`].+[.)]$/s)
})
