import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Problem } from '../../src/errors.ts'
import { mostAtOnce, type PageWriter, pageText, stringify } from '../../src/http/json.ts'
import { JsonText, jsonList, LateJson, lateList } from '../../src/views/json-text.ts'

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

const pagination = { count: 3 }

test('a small page is one text', async () => {
  const small = [{ a: 1 }, { b: new JsonText(['[1', ',2]']) }, {}]
  expect(await pageText(writing(small))).toBe('{"pagination":{"count":3},"results":[{"a":1},{"b":[1,2]},{}]}')
  expect(await pageText(writing([]))).toBe('{"pagination":{"count":3},"results":[]}')
})

test.each([
  ['held', 5_000],
  ['sent while it is made', 50_000],
])('a large page comes in pieces, %s', async (_, count) => {
  const results = Array.from({ length: count }, (_, index) => ({ index, text: 'ü'.repeat(200) }))
  expect(JSON.parse(await text(stream(await pageText(writing(results)))))).toEqual({ pagination, results })
})

test('what is read late stands where it belongs', async () => {
  async function* items() {
    yield '1,2'
    yield '3'
  }
  async function* none() {}
  const late = [{ a: 1, b: new LateJson(lateList(items())), c: 2 }, { b: new LateJson(lateList(none())) }]
  expect(await pageText(writing(late))).toBe(
    '{"pagination":{"count":3},"results":[{"a":1,"b":[1,2,3],"c":2},{"b":[]}]}',
  )
})

/** More than may be held. */
const long = Array.from({ length: 100 }, () => ({ text: 'x'.repeat(100_000) }))

test('no more is made than is taken, and whoever makes it hears that the reader left', async () => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  let made = 0
  const answer = await pageText(async (page) => {
    page.begin(pagination)
    for (const result of long) {
      await page.add([result]).catch((error: unknown) => reject(error) ?? Promise.reject(error))
      made += 1
    }
  })
  stream(answer).destroy()
  await expect(ended).rejects.toThrow()
  expect(made).toBeLessThan(30)
})

test('whoever does not take it in time is not waited for', async () => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const write = (page: PageWriter) =>
    writing(long)(page).catch((error: unknown) => reject(error) ?? Promise.reject(error))
  const answer = stream(await pageText(write, 50))
  await expect(ended).rejects.toThrow()
  await expect(text(answer)).rejects.toThrow()
})

test('an error after the beginning is not an end', async () => {
  const answer = await pageText(async (page) => {
    page.begin(pagination)
    await page.add(long.slice(0, 50))
    throw new Error('the database is away')
  })
  await expect(text(stream(answer))).rejects.toThrow('the database is away')
})

test('an error before the beginning is told', async () => {
  const refused = pageText(() => Promise.reject(new Problem('invalid_page', 'There is 1 page.')))
  await expect(refused).rejects.toMatchObject({ code: 'invalid_page' })
})

test('of long answers only some are sent at once; another is refused until one is over', async () => {
  const answers = await Promise.all(Array.from({ length: mostAtOnce }, () => pageText(writing(long))))
  await expect(pageText(writing(long))).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 2 })
  expect(await pageText(writing([]))).toBe('{"pagination":{"count":3},"results":[]}')
  const [first, ...others] = answers.map(stream)
  first?.destroy()
  if (first?.closed === false) await once(first, 'close')
  const another = stream(await pageText(writing(long)))
  for (const each of [another, ...others]) expect(JSON.parse(await text(each)).results).toEqual(long)
})

const writing = (results: readonly unknown[]) => async (page: PageWriter) => {
  page.begin(pagination)
  await page.add(results)
}

function stream(answer: string | Readable): Readable {
  if (typeof answer === 'string') throw new Error(`${answer.length} characters in one piece`)
  return answer
}
