import fc from 'fast-check'
import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors.ts'
import { acceptJson, bodyLimits, parseJson } from '../../src/http/body.ts'
import { answerProblems } from '../../src/http/problems.ts'
import { storableJson } from '../../src/models/syntax.ts'
import { costOf } from '../support/cpu-time.ts'

const read = (text: string) => parseJson(Buffer.from(text))

test('valid JSON is read unchanged', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
      fc.pre(!/"__proto__"|\\u0000|\\ud[89a-f]/.test(JSON.stringify(value)))
      const { value: there, errors } = read(JSON.stringify(value))
      expect(there).toEqual(JSON.parse(JSON.stringify(value)))
      expect(errors.list).toEqual([])
    }),
    { numRuns: 2_000 },
  )
})

test('a byte order mark before JSON is ignored: one, and nowhere else', () => {
  expect(read('\ufeff{"name":"a"}').value).toEqual({ name: 'a' })
  expect(read('{"name":"\ufeff"}').value).toEqual({ name: '\ufeff' })
  for (const text of ['\ufeff', '\ufeff\ufeff{}', ' \ufeff{}', '{}\ufeff'])
    expect(() => read(text), JSON.stringify(text)).toThrow(/^The body is not JSON/)
})

test('what cannot be stored is reported, and sanitised so that the rest can be stored', () => {
  const piece = fc.constantFrom('a', '\\u0000', '\\ud800', '\\udc00', '\\u0000b', 'é', '')
  const quotedText = fc.array(piece, { maxLength: 3 }).map((parts) => `"${parts.join('')}"`)
  const name = fc.oneof(quotedText, fc.constant('"__proto__"'))
  const { json } = fc.letrec<{ json: string }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 5 },
      quotedText,
      fc.constantFrom('1', '1e400', '-1e400', 'null'),
      fc.array(tie('json'), { maxLength: 4 }).map((items) => `[${items}]`),
      fc
        .array(fc.tuple(name, tie('json')), { maxLength: 4 })
        .map((fields) => `{${fields.map((each) => each.join(':'))}}`),
    ),
  }))
  const isSound = (value: unknown) => storableJson(value) === undefined && !JSON.stringify(value).includes('__proto__')
  let withErrors = 0
  fc.assert(
    fc.property(json, (text) => {
      const { value, errors } = read(text)
      expect(isSound(value)).toBe(true)
      expect(errors.any).toBe(!isSound(JSON.parse(text)))
      if (errors.any) withErrors += 1
      else expect(value).toEqual(JSON.parse(text))
    }),
    { numRuns: 2_000 },
  )
  expect(withErrors).toBeGreaterThan(500)
})

test('a route that does not report such texts itself is not reached', async () => {
  const app = Fastify()
  acceptJson(app)
  answerProblems(app)
  app.post('/plain', async ({ body }) => ({ body }))
  app.post('/reporting', { config: { reportsTextErrors: true } }, async ({ body, textErrors }) => ({
    body,
    reported: textErrors?.tree(),
  }))
  const post = async (url: string, payload?: string) => {
    const headers = payload === undefined ? {} : { 'content-type': 'application/json' }
    const { statusCode, body } = await app.inject({
      method: 'POST',
      url,
      headers,
      ...(payload !== undefined && { payload }),
    })
    return [statusCode, JSON.parse(body)]
  }
  const errors = { name: ['May not hold the NUL character.'] }
  expect(await post('/plain', '{"name":"a\\u0000"}')).toEqual([
    400,
    { ...errors, code: 'invalid', errors: [{ code: 'invalid_text', message: errors.name[0], pointer: '/name' }] },
  ])
  expect(await post('/plain', '{"name":"a"}')).toEqual([200, { body: { name: 'a' } }])
  expect(await post('/plain')).toEqual([200, {}])
  expect(await post('/reporting', '{"name":"a\\u0000"}')).toEqual([200, { body: { name: 'a' }, reported: errors }])
})

test('any bytes are read or refused, without another error', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc
      .string({ unit: fc.constantFrom(...'{}[]",:\\u0d8-1e.tn \n\u0000\ufeff') })
      .map((text) => new TextEncoder().encode(text)),
  )
  fc.assert(
    fc.property(bytes, (sent) => {
      try {
        parseJson(Buffer.from(sent))
      } catch (error) {
        expect(error).toBeInstanceOf(Problem)
        expect(['invalid', 'invalid_json']).toContain((error as Problem).code)
      }
    }),
    { numRuns: 5_000 },
  )
})

describe('a body beyond the limits is refused at once', () => {
  const quick = (text: string): Problem => {
    expect(costOf(() => expect(() => read(text)).toThrow(Problem), { rounds: 1 })).toBeLessThan(15)
    try {
      read(text)
    } catch (error) {
      return error as Problem
    }
    throw new Error('it was read')
  }
  const nested = (levels: number, open = '[', close = ']') => `${open.repeat(levels)}1${close.repeat(levels)}`

  test.each([
    ['lists', nested(50_000)],
    ['objects', nested(50_000, '{"a":', '}')],
    ['a million levels', nested(500_000)],
  ])('levels of %s', (_, text) => {
    expect(JSON.stringify(quick(text).fields)).toContain('Is nested deeper than 32 levels.')
  })

  test('half a million values', () => {
    expect(quick(`[${'0,'.repeat(500_000)}0]`).fields).toEqual({
      non_field_errors: [`Holds more than ${bodyLimits.nodes} values.`],
    })
  })

  test('thousands of errors', () => {
    const { errors } = read(JSON.stringify(Array.from({ length: 9_000 }, () => '\0')))
    expect(errors.tree()).toMatchObject({ non_field_errors: ['8900 more errors are not listed.'] })
  })
})

test('32 levels and 10 000 values are accepted', () => {
  expect(() => read(`${'['.repeat(33)}${']'.repeat(33)}`)).not.toThrow()
  expect(() => read(`[${'0,'.repeat(9_998)}0]`)).not.toThrow()
})
