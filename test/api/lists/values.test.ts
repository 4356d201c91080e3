import { beforeAll, describe, expect, test } from 'vitest'
import { tokenView } from '../../../src/views/token.ts'
import { installation } from '../../support/installation.ts'
import { type Json, type Operation, readDescription } from '../../support/openapi.ts'
import { column, type Parameters } from './listing.ts'

/** Values of the parameters of all lists and reads, as an unkind client sends them. */

const on = await installation({ workers: 'none' })
const api = await readDescription(on.app)

const digits = '1'.repeat(300)

/** Encoded, as they stand in an address. */
const values: readonly string[] = [
  ...['', ' ', "'", '"', '\\', '%', '_', '\0', 'a\0b', '\u202e', '\ufeff', '💥', 'x'.repeat(300), ','.repeat(300)],
  ...['0', '-0', '-1', '1.5', '1e3', '2147483647', '2147483648', '9007199254740993', '9223372036854775808', digits],
  ...['NaN', 'Infinity', 'null', 'true', 'TRUE', '[]', '{}', '{"a":1e400}', '{"a":"\\u0000"}', '{"a":"\\ud800"}'],
  ...['{"__proto__":1}', '{"a__b":1}', `{"${'a__'.repeat(40)}":1}`, '{"a":{"b":[1e308,-0]}}'],
  ...['00000000-0000-0000-0000-000000000000', 'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'],
  ...['{01a1fd66-cb30-7a41-8c55-2f1b7a9d0e63}', '01a1fd66cb307a418c552f1b7a9d0e63'],
  ...['2026-01-01T00:00:00+15:59', '2026-01-01T00:00:00+16:00', '2026-01-01T00:00:00-16:00'],
  ...['2026-01-01T00:00:00+23:59', '2026-01-01T00:00:00-23:59', '2026-01-01T00:00:00+24:00'],
  ...['0000-06-01T00:00:00Z', '0001-01-01T00:00:00Z', '0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01'],
  ...['9999-12-31T23:59:59.9999999Z', `2026-01-01T00:00:00.${digits}Z`, '2026-02-30T00:00:00Z'],
  ...['2026-06-30T23:59:60Z', '2026-01-01T24:00:00Z', '+010000-01-01T00:00:00Z', '-000001-01-01T00:00:00Z'],
  ...['2026-01-01', '2026-01-01 00:00:00', 'infinity', '-infinity', 'now', 'epoch'],
  ...[
    'application:',
    'application:a\0b',
    `application:${'x'.repeat(380)}`,
    'group:00000000-0000-0000-0000-000000000000',
  ],
].map(encodeURIComponent)

const raw = ['%ff', '%ed%a0%80', '%00', '+', '%2']

/** Streams are narrowed as the list of runs is, and all kinds of provider are listed alike. */
const isRead = ({ method, operationId }: Operation) => method === 'GET' && !/^providers_(?!all|saml)/.test(operationId)

/** All lists have them, so those of one list are enough. */
const common = ['page', 'page_size', 'ordering']

test('every order that the description lists is taken, and what is none is no choice', async () => {
  const lists = api.operations.filter(({ parameters }) => parameters.some(({ name }) => name === 'ordering'))
  expect(lists.length).toBeGreaterThan(15)
  for (const { operationId, path, parameters } of lists) {
    const { style, explode, schema } = parameters.find(({ name }) => name === 'ordering') ?? expect.fail(operationId)
    expect.soft([style, explode, schema.type], operationId).toEqual(['form', false, 'array'])
    const choices = [resolved(schema.items).enum].flat().map(String)
    expect.soft(choices.filter((each) => each.startsWith('-')).length, operationId).toBe(choices.length / 2)
    for (const ordering of [...choices, choices.join()])
      expect.soft((await on.admin.get(`${path}?ordering=${ordering}`)).status, `${operationId} ${ordering}`).toBe(200)
    for (const wrong of ['bogus', `${choices[0]},bogus`, 'name%20name', '--pk'])
      expect
        .soft((await on.admin.get(`${path}?ordering=${wrong}`)).errors, `${operationId} ${wrong}`)
        .toEqual([expect.objectContaining({ code: 'invalid_choice', parameter: 'ordering' })])
  }
})

const urlsOf = ({ path, operationId, parameters }: Operation): string[] => {
  const places = parameters.filter((each) => each.in === 'path').map(({ name }) => `{${name}}`)
  const filled = (value: string) => places.reduce((text, place) => text.replace(place, value), path)
  const usual = filled(crypto.randomUUID())
  const all = [...values, ...raw]
  const inQuery = parameters.filter(
    (each) => each.in === 'query' && (operationId === 'core_users_list' || !common.includes(each.name)),
  )
  return [
    ...(places.length === 0 ? [] : all.filter((value) => value !== '').map(filled)),
    ...inQuery.flatMap(({ name }) => all.map((value) => `${usual}?${name}=${value}`)),
    ...inQuery.flatMap(({ name }) => `${usual}?${name}[]=1&${name}=1&${name}=2`),
  ]
}

test('none is a server error, whatever parameter of whatever read has it', async () => {
  const reads = api.operations.filter(isRead)
  expect(reads.length).toBeGreaterThan(25)
  let asked = 0
  for (const operation of reads) {
    const urls = urlsOf(operation)
    const answers: [string, number][] = []
    for (let at = 0; at < urls.length; at += 20)
      answers.push(
        ...(await Promise.all(
          urls.slice(at, at + 20).map(async (url) => [url, (await on.admin.get(url)).status] as [string, number]),
        )),
      )
    asked += answers.length
    expect(answers.filter(([, status]) => ![200, 400, 404].includes(status))).toEqual([])
  }
  expect(asked).toBeGreaterThan(5_000)
  expect(on.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
})

test('what is no choice and no key is called so, sent once and with a right one', async () => {
  const sent = api.operations.filter(isRead).flatMap(({ operationId, path, parameters }) =>
    parameters
      .filter((each) => each.in === 'query' && !common.includes(each.name))
      .flatMap(({ name, schema }) => {
        const isList = schema.type === 'array'
        const { enum: choices, type, format } = resolved(isList ? schema.items : schema)
        const code = Array.isArray(choices) ? 'invalid_choice' : 'wrong_format'
        if (!Array.isArray(choices) && type !== 'integer' && format !== 'uuid') return []
        const right = Array.isArray(choices) ? choices[0] : format === 'uuid' ? crypto.randomUUID() : 1
        const url = path.replace(/\{\w+\}/g, crypto.randomUUID())
        return [`bogus`, ...(isList ? [`${right}&${name}=bogus`, `bogus&${name}=${right}`] : [])].map((value) => ({
          ...{ operationId, name, code, url: `${url}?${name}=${value}` },
        }))
      }),
  )
  expect(sent.filter(({ code }) => code === 'invalid_choice').length).toBeGreaterThan(15)
  expect(sent.filter(({ code }) => code === 'wrong_format').length).toBeGreaterThan(15)
  for (const { operationId, name, code, url } of sent) {
    const { status, errors } = await on.admin.get(url)
    expect
      .soft([status, errors], `${operationId}: ${url}`)
      .toEqual([400, [expect.objectContaining({ code, parameter: expect.stringMatching(`^${name}(\\.\\d)?$`) })]])
  }
})

const resolved = (schema: unknown): Json => {
  const { $ref } = Object(schema)
  return typeof $ref === 'string'
    ? (api.document.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {})
    : Object(schema)
}

describe('a time is the same in every zone, to the millisecond', () => {
  const tokens = { path: '/api/v3/core/tokens/', by: () => on.admin, view: tokenView.schema }
  const names = (parameters: Parameters) => column(tokens, 'identifier', { identifier: 'at-noon', ...parameters })

  beforeAll(() => on.make.token(1, { identifier: 'at-noon', expires: new Date('2031-01-01T12:00:00.500Z') }))

  test.each([
    ['2031-01-01T12:00:00.500Z', true],
    ['2031-01-02T11:59:00.500+23:59', true],
    ['2031-01-01T04:00:00.5-08:00', true],
    ['2030-12-31T20:00:00.500-16:00', true],
    ['2031-01-01T12:00:00.500001Z', false],
    [`2031-01-01T12:00:00.5${'0'.repeat(200)}Z`, true],
    ['2031-01-02T04:00:00.501+16:00', false],
    ['2030-12-31T20:00:00.499999999-16:00', true],
  ])('%s', async (at, isLater) => {
    expect(await names({ expires_after: at })).toEqual(isLater ? ['at-noon'] : [])
    const isBefore = at.includes('.500001') || at.includes('.501')
    expect(await names({ expires_before: at })).toEqual(isBefore ? ['at-noon'] : [])
  })

  test('in a body too', async () => {
    const headers = { 'content-type': 'application/json' }
    const payload = { identifier: 'far-east', expires: '2031-01-02T11:59:00+23:59' }
    const made = await on.admin.send({ method: 'POST', url: tokens.path, headers, payload })
    expect(made).toMatchObject({ status: 201, json: { expires: '2031-01-01T12:00:00.000Z' } })
  })
})
