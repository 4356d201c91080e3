import { z } from 'zod'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { ErrorList, Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { etagHeaders, etagOf, sendTagged } from '../http/etag.ts'
import type { Actor } from '../permissions.ts'
import { readUidOf } from '../views/uid.ts'
import { type FieldOf, type Reading, StreamedList } from '../views/view.ts'
import { equals, hasKey, hasUuid, queryText } from './filters.ts'
import { find } from './find.ts'
import { alsoNeedsOf, includeParameter, isIncluded, type ListSpec, scopeOf } from './list.ts'
import type { ListQuery } from './listed.ts'
import { isStreamed } from './stream.ts'
import type { ListedModel } from './tables.ts'

/** What names one row of a list. */
type Name<Model extends ListedModel> = {
  /** Such as `slug`. */
  readonly by: FieldOf<Model>
  /** A text in this form is the key, as it is where a document refers to a row. */
  readonly key?: 'uuid' | 'integer'
}

/** One row of a list, by the field that names it. */
type One<Model extends ListedModel> = Name<Model> & {
  readonly summary: string
  /** What it is called in messages. */
  readonly displayName: string
  /** A filter of the list that tells apart rows of the same name. */
  readonly apartBy?: string
  /** The last part of the path, where it is not called as `by`. */
  readonly parameter?: string
}

/**
 * Serves one row of a list: the row that the list shows to this caller under this name or key, as the list shows it. So
 * what a caller may not see in the list is not found here.
 *
 * Answers 404 for no row, 400 for more than one, 304 for a client that has the current text, 412 when `If-Match` is of another.
 */
export function one<Model extends ListedModel>(app: Api, db: Db, spec: ListSpec<Model>, declared: One<Model>): void {
  const { by, key, summary, displayName, apartBy, parameter = by } = declared
  const querystring = z.strictObject({
    ...(apartBy !== undefined && { [apartBy]: (spec.filters[apartBy] ?? equals(apartBy)).schema.optional() }),
    ...includeParameter(spec),
  })
  const names = by === 'pk' ? 'key' : key === undefined ? by : `${by}, or the key,`
  const schema = {
    summary,
    ...(spec.description !== undefined && { description: spec.description }),
    params: z.object({ [parameter]: nameSchema(by).meta({ description: `The ${names} of the ${displayName}.` }) }),
    querystring,
    response: { 200: spec.view.schema, 304: z.null() },
  }
  const codes = ['precondition_failed'] as const
  const document = { alsoNeeds: alsoNeedsOf(spec), headers: etagHeaders, answerHeaders: ['ETag', 'Vary'], codes }
  const config = { permission: spec.permission, document, ...(spec.include && { takes: 'list' as const }) }
  app.get(`${spec.path}:${parameter}/`, { config, schema }, async ({ params, query, actor }, reply) => {
    const named = filterOf(declared, String(params[parameter]))
    const apart = apartBy === undefined ? [] : [{ name: apartBy, filter: equals(apartBy), value: query[apartBy] }]
    const asked = listQueryOf(spec, [named, ...apart.filter(({ value }) => value !== undefined)], actor)
    const results = await read(db, spec, asked, { actor, related: isIncluded(spec, query, actor) })
    const [result] = results
    if (result === undefined) throw new Problem('not_found', `There is no such ${displayName}.`)
    if (results.length > 1) throw ambiguous(displayName, apartBy ?? by)
    return sendTagged(reply, JSON.stringify(result), displayName)
  })
}

const nameSchema = (by: string) =>
  // A key of another form is that of nothing.
  by === 'pk'
    ? z.guid()
    : // Names are stored composed: a path that spells one otherwise finds it.
      queryText().overwrite((text) => text.normalize('NFC'))

/** One more than are wanted: then the name says too little. */
const enough = 2

type Asked = ListQuery['filters'][number]

function filterOf<Model extends ListedModel>({ by, key }: Name<Model>, text: string): Asked {
  const filter = key === undefined ? undefined : { uuid: hasUuid, integer: hasKey }[key]('pk', 'With this key.')
  const value = filter?.schema.safeParse(text).data
  // `007` is a name: a number is written without zeros before it.
  const isKey = typeof value === 'string' || (typeof value === 'number' && String(value) === text)
  return filter !== undefined && isKey ? { name: 'pk', filter, value } : { name: by, filter: equals(by), value: text }
}

function listQueryOf(spec: ListSpec, filters: readonly Asked[], actor: Actor): ListQuery {
  const scope = scopeOf(spec, actor)
  return { filters, terms: [], ...scope, ordering: [], isPlain: true, page: 1, page_size: enough }
}

async function read(
  db: Db,
  spec: ListSpec,
  asked: ListQuery,
  as: Pick<Reading, 'actor' | 'related'>,
): Promise<readonly object[]> {
  const reading = { uidOf: await readUidOf(db), ...as }
  const isolationLevel = 'RepeatableRead'
  const results = await transaction(db, (tx) => readIn(tx, spec, asked, reading), { isolationLevel })
  return (await spec.view.complete?.(db, results)) ?? results
}

async function readIn(tx: Tx, spec: ListSpec, asked: ListQuery, reading: Reading): Promise<object[]> {
  const { readKeys } = await find(tx, spec, asked)
  const keys = await readKeys()
  const results: object[] = []
  if (keys.length === 0) return results
  for await (const batch of spec.view.read(tx, keys, reading))
    for (const result of batch) results.push(await whole(result))
  return results
}

/** A tag is of the whole text: what a list would stream is read before it is sent. */
async function whole(result: object): Promise<object> {
  if (!isStreamed(result)) return result
  const fields: [string, unknown][] = []
  for (const [name, field] of Object.entries(result))
    fields.push([name, field instanceof StreamedList ? (await Array.fromAsync(field.batches)).flat() : field])
  return Object.fromEntries(fields)
}

/**
 * The tag of one row as this caller reads it, in a transaction that changes the row.
 *
 * @param text the name or key
 * @param uidOf read before the transaction
 * @returns none for no row
 */
export async function tagsOf<Model extends ListedModel>(
  tx: Tx,
  spec: ListSpec<Model>,
  name: Name<Model>,
  text: string,
  { actor, uidOf }: Pick<Reading, 'actor' | 'uidOf'>,
): Promise<string[]> {
  const asked = listQueryOf(spec, [filterOf(name, text)], actor)
  const results = await readIn(tx, spec, asked, { uidOf, related: true, actor })
  return results.map((result) => etagOf(JSON.stringify(result)))
}

function ambiguous(displayName: string, field: string): Problem {
  const errors = new ErrorList()
  errors.of('parameter').add([field], 'ambiguous', `Several are called so: say which ${displayName} is meant.`)
  return errors.problem()
}
