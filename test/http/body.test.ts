import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Problem } from '../../src/errors.ts'
import { bodyLimits, parseJson } from '../../src/http/body.ts'

const read = (text: string) => parseJson(Buffer.from(text))

test('what JSON can say is read as it stands', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
      fc.pre(!/"__proto__"|\\u0000|\\ud[89a-f]/.test(JSON.stringify(value)))
      expect(read(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)))
    }),
    { numRuns: 2_000 },
  )
})

test('any bytes are read or refused, never a surprise', () => {
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

describe('what is too much is refused at once', () => {
  const quick = (text: string): Problem => {
    const from = performance.now()
    try {
      read(text)
    } catch (error) {
      expect(performance.now() - from).toBeLessThan(1_000)
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

  test('faults by the thousand', () => {
    expect(quick(JSON.stringify(Array.from({ length: 9_000 }, () => '\0'))).fields).toMatchObject({
      non_field_errors: ['8900 more faults are not listed.'],
    })
  })
})

test('32 levels and 10 000 values are not too much', () => {
  expect(() => read(`${'['.repeat(33)}${']'.repeat(33)}`)).not.toThrow()
  expect(() => read(`[${'0,'.repeat(9_998)}0]`)).not.toThrow()
})
