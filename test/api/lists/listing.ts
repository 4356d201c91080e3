import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Asker } from '../../support/asker.ts'
import { statementsOf } from '../../support/statements.ts'

/** Tests that all lists share. */

const envelope = z.strictObject({
  pagination: z.strictObject({
    next: z.int(),
    previous: z.int(),
    count: z.int(),
    current: z.int(),
    total_pages: z.int(),
    start_index: z.int(),
    end_index: z.int(),
    count_is_exact: z.boolean().optional(),
  }),
  results: z.array(z.record(z.string(), z.unknown())),
})

export type Page = z.output<typeof envelope>
export type Parameters = Readonly<Record<string, string | number | boolean | readonly (string | number)[]>>

/**
 * A list, and a caller who may read it. `key`: the field that identifies a row, by default `pk`. `isCapped`: its count says
 * whether it is exact.
 */
export type Listed = {
  readonly path: string
  readonly by: () => Asker
  readonly view: z.ZodType
  readonly key?: string
  readonly isCapped?: true
}

export function queryOf(parameters: Parameters): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, String(one)]))
  return `?${new URLSearchParams(pairs)}`
}

/** @returns the page; every result matches the view exactly */
export async function read({ path, by, view }: Listed, parameters: Parameters = {}): Promise<Page> {
  const { status, json, text, headers } = await by().get(path + queryOf(parameters))
  expect(status, text).toBe(200)
  expect(headers['content-type']).toBe('application/json; charset=utf-8')
  const page = envelope.parse(json)
  for (const result of page.results) expect(view.parse(result)).toEqual(result)
  return page
}

/** @returns the values of one field, in order */
export const column = async (list: Listed, field: string, parameters: Parameters = {}): Promise<unknown[]> =>
  (await read(list, parameters)).results.map((result) => result[field])

export async function refusal({ path, by }: Listed, query: string) {
  const { status, json } = await by().get(path + query)
  return { status, json }
}

export const invalid = (fields: object) => ({ status: 400, json: { ...fields, code: 'invalid' } })

const wholeNumber = ['Must be a whole number.']
const ofPages = ['Must be from 1 to 1000000000000.']
const ofSizes = ['Must be from 1 to 1000.']
const notStorable = ['May not hold NUL characters or halves of surrogate pairs.']

/** Parameters that no list accepts. */
const refusedQueries: Readonly<Record<string, [query: string, fields: object]>> = {
  'an unknown parameter': ['?zzzzzz=1', { zzzzzz: ['Unknown parameter.'] }],
  'a mistyped one, with the nearest': ['?pagesize=1', { pagesize: ['Unknown parameter. Did you mean page_size?'] }],
  'a prototype': ['?__proto__=1', { ['__proto__']: ['Unknown parameter.'] }],
  'several errors, all at once': [
    '?page=0&serch=x',
    { page: ofPages, serch: ['Unknown parameter. Did you mean search?'] },
  ],
  'page 0': ['?page=0', { page: ofPages }],
  'a negative page': ['?page=-1', { page: ofPages }],
  'a page as a power': ['?page=1e18', { page: wholeNumber }],
  'a page beyond all numbers': [`?page=1${'0'.repeat(18)}`, { page: ofPages }],
  'a page with a fraction': ['?page=1.5', { page: wholeNumber }],
  'an empty page': ['?page=', { page: wholeNumber }],
  'page last': ['?page=last', { page: wholeNumber }],
  'page_size 0': ['?page_size=0', { page_size: ofSizes }],
  'page_size 1001': ['?page_size=1001', { page_size: ofSizes }],
  'two pages': ['?page=1&page=1', { page: ['Send this parameter once.'] }],
  'two searches': ['?search=a&search=b', { search: ['Send this parameter once.'] }],
  'a search of 201 characters': [`?search=${'x'.repeat(201)}`, { search: ['Must be at most 200 characters.'] }],
  'a search of nine words': ['?search=a+b+c+d+e+f+g+h+i', { search: ['Must be at most 8 words.'] }],
  'a search for NUL': ['?search=a%00b', { search: notStorable }],
  'an order by what is not shown': ['?ordering=password', { ordering: [expect.stringMatching(/^May name only: /)] }],
  'an order by SQL': ['?ordering=pk;DROP+TABLE+users', { ordering: [expect.stringMatching(/^May name only: /)] }],
  'an order by what every object has': [
    '?ordering=constructor',
    { ordering: [expect.stringMatching(/^May name only: /)] },
  ],
  'an order by nothing': ['?ordering=,', { ordering: [expect.stringMatching(/^May name only: /)] }],
  'a wrong order of two': ['?ordering=-pk&ordering=nope', { ordering: [expect.stringMatching(/^May name only: /)] }],
}

export function testRefusals(list: Listed, own: Readonly<Record<string, [query: string, fields: object]>> = {}): void {
  test.each(Object.entries({ ...refusedQueries, ...own }))('%s is refused by name', async (_, [query, fields]) => {
    expect(await refusal(list, query)).toEqual(invalid(fields))
  })

  test('a page beyond the last is a 404', async () => {
    const { pagination } = await read(list)
    expect(await refusal(list, `?page=${pagination.total_pages + 1}`)).toEqual({
      status: 404,
      json: {
        detail: expect.stringMatching(/^There (is 1 page|are \d+ pages): page \d+ is beyond the last\.$/),
        code: 'invalid_page',
      },
    })
  })
}

/** Pages of any size, in any order, together are the whole list: no row twice, none missing, forwards and backwards. */
export function testPages(list: Listed, orders: readonly string[], narrowed: readonly Parameters[]): void {
  const ordering = fc.array(
    fc.tuple(fc.constantFrom('', '-'), fc.constantFrom(...orders)).map((parts) => parts.join('')),
    { minLength: 1, maxLength: 3 },
  )
  const asked = fc.record({
    ordering: fc.option(
      ordering.map((fields) => fields.join(',')),
      { nil: undefined },
    ),
    narrowing: fc.constantFrom({}, ...narrowed),
    size: fc.integer({ min: 1, max: 9 }),
  })
  test('pages together are the whole list', async () => {
    await fc.assert(
      fc.asyncProperty(asked, async ({ ordering, narrowing, size }) => {
        const parameters = { ...narrowing, ...(ordering !== undefined && { ordering }) }
        const whole = await read(list, { ...parameters, page_size: 1000 })
        const count = whole.results.length
        const last = Math.max(1, Math.ceil(count / size))
        for (let page = 1; page <= last; page += 1) {
          const start = (page - 1) * size
          const part = await read(list, { ...parameters, page, page_size: size })
          expect({ ...part, results: part.results.map(settled) }).toEqual({
            pagination: {
              ...{ count, current: page, total_pages: last, previous: page - 1 },
              next: page === last ? 0 : page + 1,
              start_index: count === 0 ? 0 : start + 1,
              end_index: Math.min(count, start + size),
              ...(list.isCapped && { count_is_exact: true }),
            },
            results: whole.results.slice(start, start + size).map(settled),
          })
        }
      }),
      { numRuns: 15 },
    )
  })

  test.each(orders)('%s backwards is the same, reversed', async (order) => {
    const { key = 'pk' } = list
    const forwards = await column(list, key, { ordering: `${order},${key}`, page_size: 1000 })
    expect(new Set(forwards).size).toBe(forwards.length)
    expect(await column(list, key, { ordering: `-${order},-${key}`, page_size: 1000 })).toEqual(forwards.toReversed())
    // Some clients send a list by repeating its parameter.
    expect(await column(list, key, { ordering: [order, key], page_size: 1000 })).toEqual(forwards)
  })

  test('an order of no field is the usual one', async () => {
    const { key = 'pk' } = list
    expect(await column(list, key, { ordering: '', page_size: 1000 })).toEqual(
      await column(list, key, { page_size: 1000 }),
    )
  })
}

/** Why a run waits is said once it is known, and may be known in one of two reads. */
const settled = (row: Record<string, unknown>): object =>
  row.finished_at === null ? { ...row, cause: null, summary: '' } : row

/** @param most statements of one request, authentication included */
export function testStatements(list: Listed, most: number, others: readonly Parameters[]): void {
  describe(`takes at most ${most} statements`, () => {
    test.each([{}, { page_size: 1 }, { page_size: 10 }, { page_size: 1, page: 2 }, { search: 'e' }, ...others])(
      'for %j',
      async (parameters) => {
        const { length } = await statementsOf(() => read(list, parameters))
        // Two at least, authentication and the list: fewer would mean that they were not recorded.
        expect(length).toBeGreaterThanOrEqual(2)
        expect(length).toBeLessThanOrEqual(most)
      },
    )
  })
}
