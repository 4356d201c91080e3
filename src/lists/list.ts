import { z } from 'zod'
import { type Db, transaction } from '../db/client.ts'
import { openSnapshot, type Source } from '../db/snapshot.ts'
import { ErrorList } from '../errors.ts'
import type { Api } from '../http/api.ts'
import type { Need } from '../http/documented.ts'
import { answerOf, pageText } from '../http/long-answer.ts'
import { queryBoolean } from '../http/query.ts'
import { checkExamples } from '../models/declared.ts'
import { type Actor, allows } from '../permissions.ts'
import { StartError } from '../start-error.ts'
import { readUidOf } from '../views/uid.ts'
import { isStreamed, type Key, type Reading, readBatch, type View } from '../views/view.ts'
import { checkList } from './check.ts'
import { type Found, find } from './find.ts'
import type { ListQuery, ListSpec, Sorted } from './listed.ts'
import { cappedFor, envelopeOf, pageParameters, toEnvelope, toSorted, usualPageSize } from './page.ts'
import type { ListedModel } from './tables.ts'

/**
 * Serves a list.
 *
 * Answers 400 naming each parameter that is unknown or wrong, 404 `invalid_page` beyond the last page, else the page in
 * its envelope. Its keys and count are found first, then its rows are read by key, all in one snapshot unless the page is
 * so long that it is streamed. The application does not become ready when the database lacks what the declaration names.
 *
 * @throws {StartError} when the view's schema has no name, or an example that does not fit its field
 */
export function list<Model extends ListedModel>(app: Api, db: Db, spec: ListSpec<Model>): void {
  checkSchema(spec)
  const schema = {
    summary: spec.summary,
    ...(spec.description !== undefined && { description: spec.description }),
    querystring: z.strictObject({
      ...pageParameters(spec),
      ...Object.fromEntries(Object.entries(spec.filters).map(([name, filter]) => [name, filter.schema.optional()])),
      ...includeParameter(spec),
      ...spec.before?.parameters,
    }),
    response: { 200: envelopeOf(spec.view.schema, spec) },
  }
  const config = {
    permission: spec.permission,
    takes: 'list' as const,
    document: { alsoNeeds: alsoNeedsOf(spec), ...(spec.before && { answerHeaders: spec.before.answerHeaders }) },
    ...(spec.before && { laterBy: spec.before.laterBy }),
    exceptBy: Object.entries(spec.filters).flatMap(([name, { isUnique }]) => (isUnique ? [name] : [])),
  }
  app.addHook('onReady', () => checkList(db, spec))
  app.get(spec.path, { config, schema }, async (request, reply) => {
    await spec.before?.run(request, reply)
    const { query, actor } = request
    const asked = listQueryOf(spec, query, actor)
    const reading = { uidOf: await readUidOf(db), related: isIncluded(spec, query, actor), actor }
    reply.type('application/json; charset=utf-8')
    const snapshot = openSnapshot(db, { plans: 'auto' })
    async function* readPage(): AsyncIterable<string> {
      const { count, isExact, unknown, keys } = await snapshot.read((tx) => find(tx, spec, asked))
      refuseUnknown(unknown, asked)
      const pagination = { ...toEnvelope(asked, count), ...(spec.count === 'capped' && { count_is_exact: isExact }) }
      yield* pageText(snapshot, { pagination }, readRows(snapshot, db, { view: spec.view, keys, reading }))
    }
    return answerOf(reply, snapshot, readPage())
  })
}

function checkSchema({ path, view: { model, schema } }: ListSpec): void {
  if (schema.meta()?.id === undefined)
    throw new StartError(
      `${path} lists ${model}, but the schema of its view in src/views/ has no name for the API's description: end it with .meta({ id: '${model}' }).`,
    )
  const fields = schema instanceof z.ZodObject ? Object.entries<z.ZodType>(schema.shape) : []
  for (const [name, field] of fields) checkExamples(`The view of ${model} in src/views/`, name, field)
}

export const alsoNeedsOf = ({ own, include, alsoNeeds = [] }: Partial<ListSpec>): Need[] => [
  ...alsoNeeds,
  ...(own === undefined ? [] : [{ permission: own.unless, when: "to see others' rows" }]),
  ...(include?.permission === undefined
    ? []
    : [{ permission: include.permission, when: `to get \`${include.field}\`, which else is null` }]),
]

export const includeParameter = ({ include }: Pick<ListSpec, 'include'>) => ({
  ...(include !== undefined && {
    [include.parameter]: queryBoolean.default(true).meta({
      description: `False: \`${include.field}\` is null, and the answer is faster.`,
    }),
  }),
})

/** Parameters by name, with values that their schemas returned. */
type Sent = Readonly<Record<string, unknown>>

/** Whether the related objects that a caller may leave out are read. */
export function isIncluded({ include }: Pick<ListSpec, 'include'>, query: Sent, actor: Actor): boolean {
  if (include === undefined) return true
  return query[include.parameter] === true && (include.permission === undefined || allows(actor, include.permission))
}

/** A page of a list. */
type PageQuery = Sent & {
  readonly page: number
  readonly page_size: number
  readonly search: readonly string[]
  readonly ordering?: readonly Sorted[] | undefined
}

function listQueryOf(spec: ListSpec, query: PageQuery, actor: Actor): ListQuery {
  const { filters, defaultOrder } = spec
  const { page, page_size, search: terms, ordering } = query
  const sent = Object.entries(filters).flatMap(([name, filter]) =>
    query[name] === undefined ? [] : [{ name, filter, value: filter.seen?.(query[name], actor) ?? query[name] }],
  )
  const isPlain = sent.length + terms.length === 0 && ordering === undefined
  return {
    actor,
    filters: sent,
    terms,
    ordering: ordering ?? toSorted(defaultOrder),
    isPlain: isPlain && page === 1 && page_size === usualPageSize,
    page,
    page_size,
    ...(spec.count === 'capped' && { mostCounted: cappedFor(query) }),
  }
}

/** What a page of operators requests: filters by their names. */
export type Request = {
  readonly sent: Sent
  readonly terms?: readonly string[]
  readonly ordering?: string
  readonly page?: number
  readonly size: number
} & Pick<ListQuery, 'mostCounted' | 'behind'>

/** Finds a page of the rows that a caller sees, for a page of operators. */
export function findPage(db: Db, spec: ListSpec, actor: Actor, request: Request): Promise<Found> {
  const { sent, terms: search = [], ordering, page = 1, size, ...counting } = request
  const query = { ...sent, search, page, page_size: size, ...(ordering && { ordering: toSorted(ordering) }) }
  const asked = { ...listQueryOf(spec, query, actor), ...counting }
  return transaction(db, (tx) => find(tx, spec, asked), { isolationLevel: 'RepeatableRead', plans: 'auto' })
}

/** Reads the rows of a page in batches. The transaction ends with the last read, and not with the last chunk that is sent. */
export async function* readRows(
  snapshot: Source,
  db: Db,
  { view, keys, reading }: { readonly view: View; readonly keys: readonly Key[]; readonly reading: Reading },
): AsyncIterable<readonly object[]> {
  if (keys.length === 0) return
  const batches = await snapshot.read((tx) => Array.fromAsync(view.read(tx, keys, reading)))
  const last = batches.pop() ?? []
  for (const batch of batches) yield await readBatch(snapshot, batch)
  const results = await readBatch(snapshot, last)
  if (!results.some(isStreamed)) await snapshot.end()
  yield (await view.complete?.(db, results, reading)) ?? results
}

function refuseUnknown(unknown: Found['unknown'], { filters }: ListQuery): void {
  const errors = new ErrorList()
  for (const { name, filter } of filters)
    for (const value of unknown[name] ?? [])
      errors
        .of('parameter')
        .add([name], 'no_such_row', `There is no ${filter.known?.displayName} ${JSON.stringify(value)}.`)
  if (errors.any) throw errors.problem()
}
