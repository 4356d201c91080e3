import { once } from 'node:events'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { setImmediate, setTimeout } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Source } from '../../src/db/snapshot.ts'
import { Problem } from '../../src/errors.ts'
import { answerOf, maxStreams, objectText, pageText } from '../../src/http/long-answer.ts'
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
        expect(await paged([plain])).toBe(expected)
        expect(await paged([streamed])).toBe(expected)
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
  expect(await paged(small)).toBe('{"pagination":{"count":3},"results":[{"a":1},{"b":[1,2]},{}]}')
  expect(await paged([])).toBe('{"pagination":{"count":3},"results":[]}')
})

test.each([
  ['buffered', 5_000, false],
  ['sent while it is made', 50_000, true],
])('a large page is whole, %s', async (_, count, isStream) => {
  const results = Array.from({ length: count }, (_, index) => ({ index, text: 'ü'.repeat(200) }))
  const answer = await paged(results)
  expect(answer instanceof Readable).toBe(isStream)
  const whole = answer instanceof Readable ? await text(answer) : answer
  expect(JSON.parse(whole)).toEqual({ pagination, results })
})

/** More than is buffered. */
const long = Array.from({ length: 100 }, () => ({ text: 'x'.repeat(100_000) }))

test('no more is made than is taken, and it ends when the client leaves', async () => {
  let [made, isOver] = [0, false]
  async function* results() {
    try {
      for (const result of long) {
        made += 1
        yield [result]
      }
    } finally {
      isOver = true
    }
  }
  const answer = stream(await answerOf(to(), source, pageText(source, { pagination }, results())))
  answer.destroy()
  expect(await until('its end', async () => isOver)).toBe(true)
  expect(made).toBeLessThan(30)
})

test('a client that stops reading is cut off', async () => {
  const answer = stream(await paged(long, { stalledMs: 50 }))
  await expect(once(answer, 'close')).rejects.toThrow('too slowly')
  await expect(text(answer)).rejects.toThrow()
})

test('a client that reads slowly is not, however long it takes', async () => {
  const answer = stream(await paged(long, { stalledMs: 1_000 }))
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
  // 10 MB at this rate take a second, and each piece comes within the other limit.
  const answer = stream(await paged(long, { stalledMs: 500, slowestBytesPerMs: 10_000 }))
  const reading = async () => {
    for await (const _ of answer) await setTimeout(100)
  }
  await expect(reading()).rejects.toThrow('too slowly')
})

test('the end of an answer must be taken in time, too', async () => {
  const answer = stream(await paged(long.slice(0, 22), { stalledMs: 300 }))
  const pieces = answer[Symbol.asyncIterator]()
  let received = 0
  // All but what is written when the answer ends.
  while (received < 2_150_000) received += String((await pieces.next()).value).length
  await expect(once(answer, 'close')).rejects.toThrow('too slowly')
})

test('its source is ended before it waits for the client', async () => {
  const heard: string[] = []
  const ending: Source = { ...source, end: async () => void heard.push('end') }
  const portions = Array.from({ length: 60 }, (_, index) => async () => {
    heard.push(`portion ${index}`)
    return ['x'.repeat(50_000)]
  })
  const ask = (batches: Batch<unknown>[]) =>
    answerOf(to(), ending, objectText(ending, { items: new StreamedList(batches) }))
  await ask(portions.slice(0, 5))
  expect(heard.splice(0)).toEqual(['portion 0', 'portion 1', 'portion 2', 'portion 3', 'portion 4', 'end'])
  const answer = stream(await ask(portions))
  await setImmediate()
  expect(heard.filter((what) => what === 'end')).toHaveLength(1)
  expect(heard.length).toBeLessThan(50)
  expect(JSON.parse(await text(answer)).items).toHaveLength(60)
  expect(heard).toHaveLength(61)
})

test('one object is its text alone, however it is made', async () => {
  const ask = (items: unknown) => answerOf(to(), source, objectText(source, { items }))
  const [short, wide] = [['a', 'b'], Array.from({ length: 4_000 }, () => 'x'.repeat(100))]
  for (const items of [short, wide]) {
    expect(await ask(items)).toBe(JSON.stringify({ items }))
    expect(await ask(new StreamedList(inBatches(items, 300)))).toBe(JSON.stringify({ items }))
  }
  const many = Array.from({ length: 40_000 }, () => 'x'.repeat(100))
  const answer = stream(await ask(new StreamedList(inBatches(many, 300))))
  expect(JSON.parse(await text(answer))).toEqual({ items: many })
})

/** Pieces that end with an error. */
async function* broken(results: readonly object[], error: Error): AsyncIterable<readonly object[]> {
  yield results
  throw error
}

test('an error after the beginning is not an end', async () => {
  const results = broken(long.slice(0, 50), new Error('the database is away'))
  const answer = await answerOf(to(), source, pageText(source, { pagination }, results))
  await expect(text(stream(answer))).rejects.toThrow('the database is away')
})

test('an error before that is reported, and the source fails with it', async () => {
  const failed: unknown[] = []
  const fail = async (error: unknown) => {
    failed.push(error)
    throw error
  }
  const problem = new Problem('invalid_page', 'There is 1 page.')
  const refused = answerOf(to(), { ...source, fail }, pageText(source, { pagination }, broken([], problem)))
  await expect(refused).rejects.toBe(problem)
  expect(failed).toEqual([problem])
})

test('of long answers only some are sent at once; another is refused until one is over', async () => {
  const answers = await Promise.all(Array.from({ length: maxStreams }, () => paged(long)))
  await expect(paged(long)).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 2 })
  expect(await paged([])).toMatch(/results/)
  const [first, ...others] = answers.map(stream)
  first?.destroy()
  if (first?.closed === false) await once(first, 'close')
  const another = stream(await paged(long))
  for (const each of [another, ...others]) expect(JSON.parse(await text(each)).results).toEqual(long)
})

test.each([
  ['read', 'write'],
  ['write', 'read'],
] as const)('long answers of a %s take no place of a %s', async (of, other) => {
  const all = Array.from({ length: maxStreams }, () => paged(long, { of }))
  const answers = (await Promise.all(all)).map(stream)
  await expect(paged(long, { of })).rejects.toMatchObject({ code: 'unavailable' })
  const another = stream(await paged(long, { of: other }))
  expect(JSON.parse(await text(another)).results).toEqual(long)
  for (const each of answers) each.destroy()
  await until('all places to be free', async () => answers.every(({ closed }) => closed))
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
  const first = stream(await paged(long, {}, share))
  await expect(paged(long, {}, share)).rejects.toMatchObject({ code: 'too_many_requests' })
  expect(await paged([], {}, share)).toMatch(/results/)
  first.destroy()
  expect(await until('it to be given back', async () => taken === 0)).toBe(true)
})

/** A reply to a caller who has no limit, unless another share is given. */
const to = (takeLongAnswer = async () => () => {}) => ({ request: { takeLongAnswer }, raw: { socket: null } })

/** A source of portions that need no database. */
const source: Source = {
  read: (portion) => portion(Object.create(null)),
  end: async () => {},
  fail: (error) => Promise.reject(error),
}

function paged(
  results: readonly object[],
  sending?: Parameters<typeof answerOf>[3],
  share?: () => Promise<() => void>,
) {
  async function* batches() {
    yield results
  }
  return answerOf(to(share), source, pageText(source, { pagination }, batches()), sending)
}

function stream(answer: string | Readable): Readable {
  if (answer instanceof Readable) return answer
  throw new Error(`${answer.length} characters that are not streamed`)
}
