import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { pageText, stringify } from '../../src/http/json.ts'
import { JsonText, jsonList } from '../../src/views/json-text.ts'

const member = fc.oneof(fc.jsonValue(), fc.constant(undefined), fc.constant(new Date(0)))
const list = fc.array(fc.jsonValue(), { maxLength: 5 })

test('an answer is what JSON.stringify makes of it, with lists that are text already put in', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), member), list, (members, items) => {
      const written = jsonList(items.map((item) => JSON.stringify(item)))
      const plain = { ...members, items, after: 1 }
      const spliced = { ...members, items: written, after: 1 }
      expect(stringify(spliced)).toBe(JSON.stringify(plain))
      expect(JSON.stringify(spliced)).toBe(JSON.stringify(plain))
      expect(stringify(members)).toBe(JSON.stringify(members))
    }),
  )
})

test.each([[null], [[]], ['text'], [{}], [[{ a: undefined }]]])('%j as it is', (value) => {
  expect(stringify(value)).toBe(JSON.stringify(value))
})

test('a small page is one text, a large one comes in pieces; both are the same JSON', async () => {
  const pagination = { count: 3 }
  const small = [{ a: 1 }, { b: new JsonText(['[1', ',2]']) }, {}]
  expect(await pageText(pagination, small)).toBe('{"pagination":{"count":3},"results":[{"a":1},{"b":[1,2]},{}]}')
  expect(await pageText(pagination, [])).toBe('{"pagination":{"count":3},"results":[]}')

  const long = Array.from({ length: 5_000 }, (_, index) => ({ index, text: 'ü'.repeat(200) }))
  const answer = await pageText(pagination, long)
  if (typeof answer === 'string') throw new Error('more than a megabyte in one piece')
  expect(JSON.parse(await text(answer))).toEqual({ pagination, results: long })
})
