import { z } from 'zod'
import type { Db, Queryable } from '../db/client.ts'
import { reading } from '../db/client.ts'
import { Faults, Problem } from '../errors.ts'
import { type Access, type Actor, allows } from '../permissions.ts'
import { isLate, rowsInOrder } from '../views/rows.ts'
import type { Row } from '../views/view.ts'
import type { Api } from './api.ts'
import { type Filter, queryBoolean } from './filters.ts'
import { type PageWriter, pageText } from './json.ts'
import {
  type Asked,
  type Found,
  findStatement,
  isNarrowed,
  type Listed,
  pageStatement,
  sizeStatement,
} from './list-sql.ts'
import { envelopeOf, pageParameters, toEnvelope, toSorted } from './page.ts'

/** A list as a declaration: the route, its parameters and its SQL are made of it. */
export type ListSpec = Listed & {
  readonly path: string
  readonly permission: Access
  readonly summary: string
  /** As `ordering` has it. */
  readonly defaultOrder: string
  readonly filters: Readonly<Record<string, Filter>>
  /** The parameter that leaves related objects out, such as `include_groups`. */
  readonly include?: string
}

/**
 * Serves a list.
 *
 * Answers 400 naming each parameter that is unknown or wrong, 404 `invalid_page` beyond the last page, else the page in
 * its envelope. One page costs a count, the rows, and what the view needs to complete them, all of one moment.
 */
export function list(app: Api, db: Db, spec: ListSpec): void {
  const parameters = parametersOf(spec)
  const schema = {
    summary: spec.summary,
    querystring: parameters,
    response: { 200: envelopeOf(spec.view.schema) },
  }
  const config = { permission: spec.permission, document: { alsoNeeds: alsoNeedsOf(spec) } }
  app.get(spec.path, { config, schema }, async ({ query, actor }, reply) => {
    const asked = askedOf(spec, query, actor)
    reply.type('application/json; charset=utf-8')
    return pageText((page) => writePage(page, db, spec, asked, isIncluded(spec, query)))
  })
}

const alsoNeedsOf = ({ own }: ListSpec) =>
  own?.unless === undefined ? [] : [{ permission: own.unless, when: "to see others' rows" }]

function parametersOf({ filters, include, order, defaultOrder }: ListSpec) {
  return z.strictObject({
    ...pageParameters(order, defaultOrder),
    ...Object.fromEntries(Object.entries(filters).map(([name, { schema }]) => [name, schema.optional()])),
    ...(include !== undefined && { [include]: queryBoolean.default(true) }),
  })
}

type Query = Readonly<Record<string, unknown>> & z.output<ReturnType<typeof parametersOf>>

const isIncluded = ({ include }: ListSpec, query: Query): boolean => include === undefined || query[include] === true

function askedOf({ filters, own, defaultOrder }: ListSpec, query: Query, actor: Actor): Asked {
  const { page, page_size, search: terms, ordering } = query
  const sent = Object.entries(filters).flatMap(([name, filter]) =>
    query[name] === undefined ? [] : [{ name, filter, value: query[name] }],
  )
  const seesAll = own === undefined || (own.unless !== undefined && allows(actor, own.unless))
  return {
    filters: sent,
    terms,
    own: seesAll ? undefined : actor.pk,
    ordering: ordering ?? toSorted(defaultOrder),
    isPlain: sent.length + terms.length === 0 && ordering === undefined,
    page,
    page_size,
  }
}

/** Of a long page some rows are completed and written, then the next; the transaction ends with what is read last. */
async function writePage(page: PageWriter, db: Db, spec: ListSpec, asked: Asked, related: boolean): Promise<void> {
  const { view } = spec
  const read = await reading(db, async (q) => {
    const { count, rows } = await (isNarrowed(spec, asked) ? narrowedRows : allRows)(q, spec, asked)
    page.begin(toEnvelope(asked, count))
    const found = await rows()
    const parts = view.cut?.(found, related) ?? [found]
    for (const part of parts.slice(0, -1)) await page.add(await view.complete(q, part, related))
    const last = await view.complete(q, parts.at(-1) ?? [], related)
    if (!last.some(isLate)) return last
    await page.add(last)
    return []
  })
  await page.add(read)
}

/** `rows` is asked for once the page is known to be there. */
type Counted = { count: number; rows: () => Promise<readonly Row[]> }

async function allRows(q: Queryable, spec: ListSpec, asked: Asked): Promise<Counted> {
  const sized = q.query<{ count: number }>(sizeStatement(spec))
  const rowsAt = (total: number) => q.query<Row>(pageStatement(spec, asked, total))
  // The first page is known without knowing how many there are: both are asked for at once.
  const first = asked.page === 1 ? rowsAt(Number.POSITIVE_INFINITY) : undefined
  first?.catch(() => {})
  const [size] = await sized
  const count = size?.count ?? 0
  return { count, rows: () => first ?? rowsAt(count) }
}

async function narrowedRows(q: Queryable, spec: ListSpec, asked: Asked): Promise<Counted> {
  const [found] = await q.query<Found>(findStatement(spec, asked))
  if (found === undefined) throw new Error('a statement that always has a row had none')
  const { count, keys, unknown } = found
  refuseUnknown(unknown, asked)
  return {
    count,
    rows: () => (keys === null ? q.query<Row>(pageStatement(spec, asked, count)) : rowsInOrder(q, spec.view, keys)),
  }
}

function refuseUnknown(unknown: Found['unknown'], { filters }: Asked): void {
  const faults = new Faults()
  for (const { name, filter } of filters)
    for (const value of unknown[name] ?? [])
      faults.add([name], `There is no ${filter.known?.noun} ${JSON.stringify(value)}.`)
  if (faults.any) throw new Problem('invalid', 'The request is not valid.', { fields: faults.tree() })
}
