import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Problem } from '../../src/errors.ts'
import { maxStreams, type PageWriter, pageText } from '../../src/lists/stream.ts'
import { StreamedList } from '../../src/views/view.ts'
import { until } from '../support/until.ts'

/** Short lists, and those that are written in several texts. */
const list = fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 60 })
const field = fc.oneof(fc.jsonValue(), list, fc.constant(new Date(0)))

test('a result is what JSON.stringify makes of it, its lists streamed or not', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), field),
      list,
      fc.integer({ min: 1, max: 9 }),
      async (fields, items, size) => {
        const plain = { ...fields, items, after: 1 }
        const streamed = { ...fields, items: new StreamedList(inBatches(items, size)), after: 1 }
        const expected = `{"pagination":{"count":3},"results":[${JSON.stringify(plain)}]}`
        expect(await pageText(writing([plain]), take)).toBe(expected)
        expect(await pageText(writing([streamed]), take)).toBe(expected)
      },
    ),
  )
})

async function* inBatches(items: readonly unknown[], size: number) {
  yield []
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size)
}

const pagination = { count: 3 }

test('a small page is one text', async () => {
  const small = [{ a: 1 }, { b: [1, 2] }, {}]
  expect(await pageText(writing(small), take)).toBe('{"pagination":{"count":3},"results":[{"a":1},{"b":[1,2]},{}]}')
  expect(await pageText(writing([]), take)).toBe('{"pagination":{"count":3},"results":[]}')
})

test.each([
  ['buffered', 5_000],
  ['sent while it is made', 50_000],
])('a large page comes in chunks, %s', async (_, count) => {
  const results = Array.from({ length: count }, (_, index) => ({ index, text: 'ü'.repeat(200) }))
  expect(JSON.parse(await text(stream(await pageText(writing(results), take))))).toEqual({ pagination, results })
})

/** More than is buffered. */
const long = Array.from({ length: 100 }, () => ({ text: 'x'.repeat(100_000) }))

test('no more is made than is taken, and it ends when the client leaves', async () => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  let made = 0
  const answer = await pageText(async (page) => {
    page.begin(pagination)
    for (const result of long) {
      await page.add([result]).catch((error: unknown) => reject(error) ?? Promise.reject(error))
      made += 1
    }
  }, take)
  stream(answer).destroy()
  await expect(ended).rejects.toThrow()
  expect(made).toBeLessThan(30)
})

test('a client that does not take it in time is cut off', async () => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const write = (page: PageWriter) =>
    writing(long)(page).catch((error: unknown) => reject(error) ?? Promise.reject(error))
  const answer = stream(await pageText(write, take, 50))
  await expect(ended).rejects.toThrow()
  await expect(text(answer)).rejects.toThrow()
})

test('an error after the beginning is not an end', async () => {
  const answer = await pageText(async (page) => {
    page.begin(pagination)
    await page.add(long.slice(0, 50))
    throw new Error('the database is away')
  }, take)
  await expect(text(stream(answer))).rejects.toThrow('the database is away')
})

test('an error before the beginning is reported', async () => {
  const refused = pageText(() => Promise.reject(new Problem('invalid_page', 'There is 1 page.')), take)
  await expect(refused).rejects.toMatchObject({ code: 'invalid_page' })
})

test('of long answers only some are sent at once; another is refused until one is over', async () => {
  const answers = await Promise.all(Array.from({ length: maxStreams }, () => pageText(writing(long), take)))
  await expect(pageText(writing(long), take)).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 2 })
  expect(await pageText(writing([]), take)).toBe('{"pagination":{"count":3},"results":[]}')
  const [first, ...others] = answers.map(stream)
  first?.destroy()
  if (first?.closed === false) await once(first, 'close')
  const another = stream(await pageText(writing(long), take))
  for (const each of [another, ...others]) expect(JSON.parse(await text(each)).results).toEqual(long)
})

test('a long answer takes of the share of its caller, and gives it back when it is over', async () => {
  let taken = 0
  const share = () => {
    if (taken > 0) throw new Problem('too_many_requests', 'You have one.')
    taken += 1
    return () => {
      taken -= 1
    }
  }
  const first = stream(await pageText(writing(long), share))
  await expect(pageText(writing(long), share)).rejects.toMatchObject({ code: 'too_many_requests' })
  expect(await pageText(writing([]), share)).toBe('{"pagination":{"count":3},"results":[]}')
  first.destroy()
  expect(await until(async () => taken === 0, { what: 'it to be given back' })).toBe(true)
})

/** The share of a caller who has no limit. */
const take = () => () => {}

const writing = (results: readonly object[]) => async (page: PageWriter) => {
  page.begin(pagination)
  await page.add(results)
}

function stream(answer: string | Readable): Readable {
  if (typeof answer === 'string') throw new Error(`${answer.length} characters in one text`)
  return answer
}
