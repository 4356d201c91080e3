import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { loadRegistry } from '../../src/models/registry.ts'
import { applyPath, installation, named } from '../support/kit.ts'

/** `errors` of a 400: each error with its code and place. That they say the same as the fields is checked for every answer. */

const on = await installation({ workers: 'none' })
const { apply } = on.admin

describe('a blueprint in YAML', () => {
  test('errors of the form, of fields, of rows and of headers, with their places', async () => {
    const { status, json, errors } = await apply(
      `version: 2
metadata: {name: places}
entries:
  - model: service_core.group
    id: one
    identifiers: {name: one}
    attrs:
      is_superuser: maybe
  - mode: service_core.group
    id: two
    identifiers: {name: two}
  - model: service_core.group
    identifiers: {name: three}
    attrs: {parent: !KeyOf two, nam: x}
`,
      { allow: 'all' },
    )
    expect(status).toBe(400)
    expect(errors).toEqual([
      {
        ...{ code: 'invalid_choice', message: expect.any(String), pointer: '/version' },
        ...{ line: 1, column: 1, source: 'version: 2' },
      },
      {
        ...{ code: 'required', message: 'This field is required.', pointer: '/entries/1/model', entry: 'two' },
        ...{ line: 9, column: 5, source: '  - mode: ********' },
      },
      {
        ...{ code: 'unknown_field', message: 'Unknown field. Did you mean model?', pointer: '/entries/1/mode' },
        ...{ entry: 'two', line: 9, column: 5, source: '  - mode: ********' },
      },
      { code: 'invalid_choice', message: expect.stringContaining('"all"'), header: 'Gatewright-Allow' },
      {
        ...{ code: 'wrong_type', message: 'Must be true or false.', pointer: '/entries/0/attrs/is_superuser' },
        ...{ entry: 'one', line: 8, column: 7, source: '      is_superuser: maybe' },
      },
      {
        ...{ code: 'unknown_field', message: 'Unknown field. Did you mean name?', pointer: '/entries/2/attrs/nam' },
        ...{ line: 14, column: 33, source: '    attrs: {parent: !KeyOf two, nam: ********}' },
      },
    ])
    expect(json).toMatchObject({
      version: [expect.any(String)],
      entries: { 0: { is_superuser: ['Must be true or false.'] }, 1: { model: ['This field is required.'] } },
    })
  })

  test('what only the database knows', async () => {
    const { errors } = await apply(`version: 1
metadata: {name: places}
entries:
  - {model: service_core.group, identifiers: {name: one}, attrs: {parent: no such group}}
  - {model: service_core.group, identifiers: {pk: 6f7e0000-0000-4000-8000-00000000ffff}}
`)
    expect(errors).toMatchObject([
      { code: 'unknown_name', pointer: '/entries/0/attrs/parent', line: 4, column: 67 },
      { code: 'required', pointer: '/entries/1/attrs/name', line: 5, column: 5 },
    ])
  })

  test('a value of a secret field is in no answer', async () => {
    const { text, errors } = await apply(`version: 1
metadata: {name: places}
entries:
  - model: service_providers_oauth2.oauth2provider
    identifiers: {name: one}
    attrs: {client_secret: [hunter2], client_type: x, client_secrte: hunter2}
`)
    expect(errors.slice(0, 3)).toMatchObject([
      { code: 'wrong_type', pointer: '/entries/0/attrs/client_secret', line: 6, column: 13 },
      {
        code: 'invalid_choice',
        line: 6,
        source: expect.stringMatching(/^ {4}attrs: \{client_secret: \[\*+\], client_type: x,/),
      },
      { code: 'unknown_field', line: 6 },
    ])
    expect(errors[0]).not.toHaveProperty('source')
    expect(text).not.toContain('hunter2')
  })

  test('text that is not YAML has a place, and no source', async () => {
    const { errors } = await apply('version: 1\nmetadata: [')
    expect(errors).toEqual([
      {
        code: 'syntax',
        message: expect.any(String),
        pointer: '',
        line: expect.any(Number),
        column: expect.any(Number),
      },
    ])
    const { errors: others } = await apply('---\na: 1\n---\nb: 1')
    expect(others).toMatchObject([{ code: 'unsupported_yaml', pointer: '' }])
    const { errors: ofTags } = await apply('version: 1\nentries: !Env HOME')
    expect(ofTags).toMatchObject([{ code: 'syntax', line: 2, column: 10 }])
  })
})

test('a blueprint in JSON has pointers, and no lines', async () => {
  const entries = [{ model: 'service_core.group', id: 'a', identifiers: { name: 'a' }, attrs: { 'a/b~c': 1 } }]
  const { errors } = await apply(entries)
  expect(errors).toEqual([
    { code: 'unknown_field', message: 'Unknown field.', pointer: '/entries/0/attrs/a~1b~0c', entry: 'a' },
  ])
})

test('a submission has pointers', async () => {
  const body = await named('oauth2', 'new', { provider: { redirect_uris: [{ matching_mode: 'strict', url: 7 }] } })
  const { errors } = await on.admin.put(applyPath, { ...body, extra: 1 })
  expect(errors).toMatchObject([
    { code: 'unknown_field', pointer: '/extra' },
    { code: 'wrong_type', pointer: '/provider/redirect_uris/0/url' },
  ])
})

test('a parameter of the query, and one that is called as the list', async () => {
  const { errors, json } = await on.admin.get('/api/v3/core/users/?page_size=0&errors=1')
  expect(errors).toMatchObject([
    { code: 'too_small', parameter: 'page_size' },
    { code: 'unknown_parameter', parameter: 'errors' },
  ])
  expect(json).toMatchObject({ non_field_errors: ['errors: Unknown parameter.'] })
})

test('names of fields do not make pointers long', async () => {
  const long = 'x'.repeat(100_000)
  const values = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [index, '\0']))
  const { errors, text } = await on.admin.send({
    method: 'POST',
    url: '/api/v3/core/groups/',
    headers: { 'content-type': 'application/json' },
    payload: JSON.stringify({ name: 'x', attributes: { [long]: values } }),
  })
  expect(errors[0]).toMatchObject({ code: 'invalid_text', pointer: '/attributes' })
  expect(text.length).toBeLessThan(200_000)
})

test('a hundred errors of a long document are listed, and their places found, in little time', async () => {
  const text = `version: 1\nmetadata: {name: places}\nentries:\n${Array.from(
    { length: 900 },
    (_, index) =>
      `- model: service_core.group\n  identifiers: {name: g${index}}\n  attrs: {is_superuser: x, attributes: {a: "${'x'.repeat(3_000)}"}}\n`,
  ).join('')}`
  const { errors, json } = await apply(text)
  expect(errors).toHaveLength(100)
  expect(errors.at(-1)).toMatchObject({ pointer: '/entries/99/attrs/is_superuser', line: 303, column: 11 })
  expect(json).toMatchObject({ non_field_errors: ['800 more errors are not listed.'] })
})

test('no model has a field that is called as the list', async () => {
  const { models } = await loadRegistry()
  expect(models.filter(({ fields, readOnly }) => fields.has('errors') || readOnly.includes('errors'))).toEqual([])
})

describe('errors of another refusal of a document', () => {
  const blueprint = `version: 1
metadata: {name: refused}
entries:
  - model: service_core.group
    identifiers: {name: refused}
  - model: service_core.application
    id: app
    identifiers: {slug: refused}
    attrs: {name: refused}
`
  const place = { pointer: '/entries/1', entry: 'app', line: 6, column: 5, source: expect.any(String) }

  test('a 403 has the entry that the caller may not write', async () => {
    const { apply } = await on.make.user({ permissions: ['add_group', 'change_group'] })
    const { status, errors } = await apply(blueprint)
    expect(status).toBe(403)
    expect(errors).toEqual([
      { code: 'denied', message: expect.stringMatching(/^You may not write application "refused"/), ...place },
    ])
  })

  test('a 409 has the entries of another owner', async () => {
    await on.db.application.create({ data: { pk: randomUUID(), slug: 'refused', name: 'refused', owner: 'team-a' } })
    const { status, detail, errors } = await apply(blueprint)
    expect(status).toBe(409)
    expect(detail).toMatch(/^application "refused" belongs to owner "team-a" .* Send it as owner "team-a": /)
    expect(errors).toEqual([{ code: 'other_owner', message: detail, ...place }])
  })

  test('a 412 has the part of a submission that is there already', async () => {
    await on.db.application.create({ data: { pk: randomUUID(), slug: 'there', name: 'there' } })
    const { status, detail, errors } = await on.admin.put(applyPath, await named('oauth2', 'there'), {
      ifNoneMatch: '*',
    })
    expect(status).toBe(412)
    expect(errors).toEqual([{ code: 'exists', message: detail, pointer: '/app' }])
  })
})
