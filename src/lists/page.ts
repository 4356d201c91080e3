import { z } from 'zod'
import { Problem } from '../errors.ts'
import { queryInteger, queryText } from './filters.ts'
import type { ListSpec, Sorted } from './listed.ts'

/** Pages, orders and searches: the parts that all lists share. */

const maxPageSize = 1_000
/** Rows of a page without `page_size`. */
export const usualPageSize = 100
/** The largest page; no table has as many rows. */
const maxPage = 1_000_000_000_000
const maxTerms = 8

export const pageSize = (description: string) =>
  queryInteger(1, maxPageSize).default(usualPageSize).meta({ description })

/** The most rows that a list with a capped count counts, unless a page ends behind them. */
const mostCounted = 10_000

/** @returns how far such a list counts for this page */
export const cappedFor = ({ page, page_size }: { page: number; page_size: number }): number =>
  Math.max(mostCounted, page * page_size)

const numbersOfPage = {
  next: z.int().meta({ description: 'Number of the next page; 0: there is none.' }),
  previous: z.int().meta({ description: 'Number of the previous page; 0: there is none.' }),
  count: z.int().meta({
    description: `How many results there are on all pages, exactly; the lists of runs and of audit rows count up to ${mostCounted}.`,
  }),
  current: z.int(),
  total_pages: z.int(),
  start_index: z.int(),
  end_index: z.int(),
}
const example = { next: 2, previous: 0, count: 23, current: 1, total_pages: 3, start_index: 1, end_index: 10 }

const pagination = z.object(numbersOfPage).meta({ id: 'Pagination', examples: [example] })

const cappedPagination = z
  .object({
    ...numbersOfPage,
    count: z.int().meta({
      description: `How many results there are on all pages: exactly up to ${mostCounted}, or up to the end of this page. Of more, one more than that.`,
    }),
    count_is_exact: z.boolean().meta({
      description:
        'False: there are at least `count` results, and at least `total_pages` pages. `next` leads to all of them.',
    }),
  })
  .meta({ id: 'CappedPagination', examples: [{ ...example, count_is_exact: true }] })

export const envelopeOf = (item: z.ZodType, { count }: { readonly count: string }): z.ZodType =>
  z.object({ pagination: count === 'capped' ? cappedPagination : pagination, results: z.array(item) })

export function pageParameters({ view, order, defaultOrder, compared = {} }: ListSpec) {
  const names = Object.keys(order)
  const shown = names.map((name) => (compared[name] === undefined ? name : `${name} (by ${compared[name]})`)).join(', ')
  const ordering = queryText(200).transform((text, context) => {
    const sorted = toSorted(text)
    if (sorted.every(({ field }) => names.includes(field))) return sorted
    const message = `May name only: ${names.join(', ')}.`
    context.addIssue({ code: 'custom', params: { code: 'invalid_choice' }, message })
    return z.NEVER
  })
  const choices = names.flatMap((name) => [name, `-${name}`])
  return {
    page: queryInteger(1, maxPage).default(1).meta({ description: 'The number of the page, from 1.' }),
    page_size: pageSize('How many results a page has.'),
    search: queryText(200)
      .transform(toTerms)
      .default([])
      .meta({ description: 'Every word must be in what is searched.' }),
    ordering: z.preprocess(joined, ordering.optional()).meta({
      // A text between commas is a list in one parameter of the API's description.
      type: 'array',
      items: { type: 'string', enum: choices, title: `${view.schema.meta()?.id?.replace(/^Read/, '')}Ordering` },
      explode: false,
      maxLength: undefined,
      description: `A comma list of ${shown}; \`-\` before one: descending. Default: ${defaultOrder}. Texts are in the order of the database's collation: with the embedded database by code point.`,
    }),
  }
}

/** Joins a list. Some clients repeat the parameter for each item, and send an empty list as an empty text. */
const joined = (sent: unknown) => (sent === '' ? undefined : Array.isArray(sent) ? sent.join() : sent)

function toTerms(text: string, context: z.RefinementCtx): string[] {
  const terms = text.split(/\s+/u).filter((term) => term !== '')
  if (terms.length <= maxTerms) return terms
  context.addIssue({ code: 'custom', message: `Must be at most ${maxTerms} words.` })
  return z.NEVER
}

/** `name,-pk`; a field that is named again changes nothing. */
export function toSorted(text: string): Sorted[] {
  const sorted = new Map<string, Sorted>()
  for (const part of text.split(',')) {
    const [, minus, field = ''] = /^\s*(-?)\s*(.*?)\s*$/.exec(part) ?? []
    if (!sorted.has(field)) sorted.set(field, { field, descending: minus === '-' })
  }
  return [...sorted.values()]
}

/** @throws {Problem} `invalid_page` beyond the last one */
export function toEnvelope({ page, page_size }: { page: number; page_size: number }, count: number) {
  const total_pages = Math.max(1, Math.ceil(count / page_size))
  if (page > total_pages) {
    const pages = total_pages === 1 ? 'is 1 page' : `are ${total_pages} pages`
    throw new Problem('invalid_page', `There ${pages}: page ${page} is beyond the last.`)
  }
  const start = (page - 1) * page_size
  return {
    next: page < total_pages ? page + 1 : 0,
    previous: page - 1,
    count,
    current: page,
    total_pages,
    start_index: count === 0 ? 0 : start + 1,
    end_index: Math.min(start + page_size, count),
  }
}
