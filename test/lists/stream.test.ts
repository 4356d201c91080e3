import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate, setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Source } from '../../src/db/snapshot.ts'
import { Problem } from '../../src/errors.ts'
import { maxStreams, objectText, type PageWriter, pageText } from '../../src/lists/stream.ts'
import { type Batch, StreamedList } from '../../src/views/view.ts'
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
        expect(await pageText(writing([plain]), { takeLong })).toBe(expected)
        expect(await pageText(writing([streamed]), { takeLong })).toBe(expected)
      },
    ),
  )
})

/** Some are there, and some are read. */
function inBatches(items: readonly unknown[], size: number): Batch<unknown>[] {
  const starts = Array.from({ length: Math.ceil(items.length / size) }, (_, index) => index * size)
  const batches = starts.map((start) => items.slice(start, start + size))
  return [[], ...batches.map((batch, index) => (index % 2 === 0 ? batch : async () => batch))]
}

const pagination = { count: 3 }

test('a small page is one text', async () => {
  const small = [{ a: 1 }, { b: [1, 2] }, {}]
  expect(await pageText(writing(small), { takeLong })).toBe(
    '{"pagination":{"count":3},"results":[{"a":1},{"b":[1,2]},{}]}',
  )
  expect(await pageText(writing([]), { takeLong })).toBe('{"pagination":{"count":3},"results":[]}')
})

test.each([
  ['buffered', 5_000],
  ['sent while it is made', 50_000],
])('a large page comes in chunks, %s', async (_, count) => {
  const results = Array.from({ length: count }, (_, index) => ({ index, text: 'ü'.repeat(200) }))
  expect(JSON.parse(await text(stream(await pageText(writing(results), { takeLong }))))).toEqual({
    pagination,
    results,
  })
})

/** More than is buffered. */
const long = Array.from({ length: 100 }, () => ({ text: 'x'.repeat(100_000) }))

test('no more is made than is taken, and it ends when the client leaves', async () => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  let made = 0
  const answer = await pageText(
    async (page) => {
      page.begin(source, pagination)
      for (const result of long) {
        await page.add([result]).catch((error: unknown) => reject(error) ?? Promise.reject(error))
        made += 1
      }
    },
    { takeLong },
  )
  stream(answer).destroy()
  await expect(ended).rejects.toThrow()
  expect(made).toBeLessThan(30)
})

test('a client that stops reading is cut off', async () => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const write = (page: PageWriter) =>
    writing(long)(page).catch((error: unknown) => reject(error) ?? Promise.reject(error))
  const answer = stream(await pageText(write, { takeLong, stalledMs: 50 }))
  await expect(ended).rejects.toThrow()
  await expect(text(answer)).rejects.toThrow()
})

test('a client that reads slowly is not, however long it takes', async () => {
  const answer = stream(await pageText(writing(long), { takeLong, stalledMs: 1_000 }))
  const from = performance.now()
  let received = ''
  for await (const piece of answer) {
    received += piece
    if (performance.now() - from < 2_000) await setTimeout(100)
  }
  expect(performance.now() - from).toBeGreaterThan(2_000)
  expect(JSON.parse(received)).toEqual({ pagination, results: long })
})

test('a client that reads a little now and then is cut off by its mean rate', async () => {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const write = (page: PageWriter) =>
    writing(long)(page).catch((error: unknown) => reject(error) ?? Promise.reject(error))
  // 10 MB at this rate take a second, and each piece comes within the other limit.
  const slow = { takeLong, stalledMs: 500, slowestBytesPerMs: 10_000 }
  const answer = stream(await pageText(write, slow))
  const reading = async () => {
    for await (const _ of answer) await setTimeout(100)
  }
  await Promise.all([expect(ended).rejects.toThrow(), expect(reading()).rejects.toThrow('too slowly')])
})

test('the end of an answer must be taken in time, too', async () => {
  const answer = stream(await pageText(writing(long.slice(0, 22)), { takeLong, stalledMs: 300 }))
  const pieces = answer[Symbol.asyncIterator]()
  let received = 0
  // All but what is written when the answer ends.
  while (received < 2_150_000) received += String((await pieces.next()).value).length
  await expect(once(answer, 'close')).rejects.toThrow('too slowly')
})

test('its source is ended before it waits for the client, and only when it is long', async () => {
  const heard: string[] = []
  const ending: Source = { ...source, end: async () => void heard.push('end') }
  const portions = Array.from({ length: 60 }, (_, index) => async () => {
    heard.push(`portion ${index}`)
    return ['x'.repeat(50_000)]
  })
  const ask = (batches: Batch<unknown>[]) =>
    pageText(
      async (page) => {
        page.begin(ending, pagination)
        await page.add([{ items: new StreamedList(batches) }])
      },
      { takeLong },
    )
  await ask(portions.slice(0, 5))
  expect(heard.splice(0)).toEqual(['portion 0', 'portion 1', 'portion 2', 'portion 3', 'portion 4'])
  const answer = stream(await ask(portions))
  await setImmediate()
  expect(heard.filter((what) => what === 'end')).toHaveLength(1)
  expect(heard.length).toBeLessThan(50)
  expect(JSON.parse(await text(answer)).results).toHaveLength(1)
  expect(heard).toHaveLength(61)
})

test('one object is its text alone, however it is made', async () => {
  const write = (items: unknown) => async (page: PageWriter) => {
    page.begin(source)
    await page.add([{ items }])
  }
  const [short, wide] = [['a', 'b'], Array.from({ length: 4_000 }, () => 'x'.repeat(100))]
  for (const items of [short, wide]) {
    expect(await objectText(write(items), {})).toBe(JSON.stringify({ items }))
    expect(await objectText(write(new StreamedList(inBatches(items, 300))), {})).toBe(JSON.stringify({ items }))
  }
  const many = Array.from({ length: 40_000 }, () => 'x'.repeat(100))
  const answer = stream(await objectText(write(new StreamedList(inBatches(many, 300))), {}))
  expect(JSON.parse(await text(answer))).toEqual({ items: many })
})

test('an error after the beginning is not an end', async () => {
  const answer = await pageText(
    async (page) => {
      page.begin(source, pagination)
      await page.add(long.slice(0, 50))
      throw new Error('the database is away')
    },
    { takeLong },
  )
  await expect(text(stream(answer))).rejects.toThrow('the database is away')
})

test('an error before the beginning is reported', async () => {
  const refused = pageText(() => Promise.reject(new Problem('invalid_page', 'There is 1 page.')), { takeLong })
  await expect(refused).rejects.toMatchObject({ code: 'invalid_page' })
})

test('of long answers only some are sent at once; another is refused until one is over', async () => {
  const answers = await Promise.all(Array.from({ length: maxStreams }, () => pageText(writing(long), { takeLong })))
  await expect(pageText(writing(long), { takeLong })).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 2 })
  expect(await pageText(writing([]), { takeLong })).toBe('{"pagination":{"count":3},"results":[]}')
  const [first, ...others] = answers.map(stream)
  first?.destroy()
  if (first?.closed === false) await once(first, 'close')
  const another = stream(await pageText(writing(long), { takeLong }))
  for (const each of [another, ...others]) expect(JSON.parse(await text(each)).results).toEqual(long)
})

test.each([
  ['read', 'write'],
  ['write', 'read'],
] as const)('long answers of a %s take no place of a %s', async (of, other) => {
  const all = Array.from({ length: maxStreams }, () => pageText(writing(long), { takeLong, of }))
  const answers = (await Promise.all(all)).map(stream)
  await expect(pageText(writing(long), { takeLong, of })).rejects.toMatchObject({ code: 'unavailable' })
  const another = stream(await pageText(writing(long), { takeLong, of: other }))
  expect(JSON.parse(await text(another)).results).toEqual(long)
  for (const each of answers) each.destroy()
  await until(async () => answers.every(({ closed }) => closed), { what: 'all places to be free' })
})

test('what need not be streamed takes no place, however long it is', async () => {
  const none = () => {
    throw new Problem('too_many_requests', 'You have all.')
  }
  const pieces = await pageText(writing(long), { takeLong: none, buffered: Number.POSITIVE_INFINITY })
  expect(JSON.parse(await text(stream(pieces))).results).toEqual(long)
})

test('a long answer takes of the share of its caller, and gives it back when it is over', async () => {
  let taken = 0
  const share = async () => {
    if (taken > 0) throw new Problem('too_many_requests', 'You have one.')
    taken += 1
    return () => {
      taken -= 1
    }
  }
  const first = stream(await pageText(writing(long), { takeLong: share }))
  await expect(pageText(writing(long), { takeLong: share })).rejects.toMatchObject({ code: 'too_many_requests' })
  expect(await pageText(writing([]), { takeLong: share })).toBe('{"pagination":{"count":3},"results":[]}')
  first.destroy()
  expect(await until(async () => taken === 0, { what: 'it to be given back' })).toBe(true)
})

/** The share of a caller who has no limit. */
const takeLong = async () => () => {}

/** Of portions that need no database. */
const source: Source = { read: (portion) => portion(Object.create(null)), end: async () => {} }

const writing = (results: readonly object[]) => async (page: PageWriter) => {
  page.begin(source, pagination)
  await page.add(results)
}

function stream(answer: string | Readable): Readable {
  if (typeof answer === 'string') throw new Error(`${answer.length} characters in one text`)
  return answer
}
