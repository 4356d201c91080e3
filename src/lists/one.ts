import { z } from 'zod'
import type { Db, Tx } from '../db/client.ts'
import { openSnapshot, within } from '../db/snapshot.ts'
import { ErrorList, Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { etagHeaders, etagOf, sendTagged } from '../http/etag.ts'
import { answerOf, objectText, shortText } from '../http/long-answer.ts'
import type { Actor } from '../permissions.ts'
import { readUidOf } from '../views/uid.ts'
import { type FieldOf, type Reading, readBatch, type View } from '../views/view.ts'
import { equals, hasKey, hasUuid, queryText } from './filters.ts'
import { find } from './find.ts'
import { alsoNeedsOf, includeParameter, isIncluded, list, readRows } from './list.ts'
import type { ListQuery, ListSpec } from './listed.ts'
import type { ListedModel } from './tables.ts'

/** The name of one row of a list. */
type Name<Model extends ListedModel> = {
  /** The field, such as `slug`. */
  readonly by: FieldOf<Model>
  /** A text in this form is the key, as it is where a document refers to a row. */
  readonly key?: 'uuid' | 'integer'
}

/** One row of a list, by the field that names it. */
type One<Model extends ListedModel> = Name<Model> & {
  /** Its name in messages. */
  readonly displayName: string
  readonly summary?: string
  /** A filter of the list that distinguishes rows of the same name. */
  readonly apartBy?: string
  /** The form in which names of another form find it. Default: composed, as names are stored. */
  readonly fold?: (text: string) => string
  /** Shows more of it than the list. */
  readonly view?: View<Model>
  /** The last part of the path, if its name is not that of `by`. */
  readonly parameter?: string
}

type NamedList<Model extends ListedModel> = ListSpec<Model> & { readonly one: One<Model> }

/**
 * Serves a list, and each of its rows: the row that the list shows to this caller under this name or key, as the list shows it. A row that
 * the caller may not see in the list is not found here either.
 *
 * Answers 404 for no row, 400 for more than one, 304 for a client that has the current text, 412 when `If-Match` is of another. A
 * row that is long is streamed, without a tag.
 */
export function listAndOne<Model extends ListedModel>(app: Api, db: Db, { one, ...spec }: NamedList<Model>): void {
  list(app, db, spec)
  const { by, key, displayName, apartBy, parameter = by, view = spec.view } = one
  const querystring = z.strictObject({
    ...(apartBy !== undefined && { [apartBy]: (spec.filters[apartBy] ?? equals(apartBy)).schema.optional() }),
    ...includeParameter(spec),
  })
  const names = by === 'pk' ? 'key' : key === undefined ? by : `${by}, or the key,`
  const schema = {
    summary: one.summary ?? `Read ${/^[aeiou]/.test(displayName) ? 'an' : 'a'} ${displayName}`,
    ...(spec.description !== undefined && { description: spec.description }),
    params: z.object({
      [parameter]: nameSchema(one).meta({ description: `The ${names} of the ${displayName}.` }),
    }),
    querystring,
    response: { 200: view.schema, 304: z.null() },
  }
  const codes = ['precondition_failed'] as const
  const document = { alsoNeeds: alsoNeedsOf(spec), headers: etagHeaders, answerHeaders: ['ETag', 'Vary'], codes }
  const config = { permission: spec.permission, document }
  app.get(`${spec.path}:${parameter}/`, { config, schema }, async (request, reply) => {
    const { params, query, actor } = request
    const named = filterOf(one, String(params[parameter]))
    const apart = apartBy === undefined ? [] : [{ name: apartBy, filter: equals(apartBy), value: query[apartBy] }]
    const asked = listQueryOf([named, ...apart.filter(({ value }) => value !== undefined)], actor)
    const reading = { uidOf: await readUidOf(db), actor, related: isIncluded(spec, query, actor) }
    const snapshot = openSnapshot(db)
    async function* readOne(): AsyncIterable<string> {
      const { keys } = await snapshot.read((tx) => find(tx, spec, asked))
      if (keys.length === 0) throw new Problem('not_found', `There is no such ${displayName}.`)
      if (keys.length > 1) throw ambiguous(apartBy ?? by, `Several are called so: say which ${displayName} is meant.`)
      for await (const results of readRows(snapshot, db, { view, keys, reading }))
        for (const result of results) yield* objectText(snapshot, result)
    }
    return sendTagged(reply, await answerOf(reply, snapshot, readOne()), displayName)
  })
}

/** A key of another form finds no row. */
const nameSchema = ({ by, fold = (text) => text.normalize('NFC') }: Pick<One<ListedModel>, 'by' | 'fold'>) =>
  by === 'pk' ? z.guid() : queryText().overwrite(fold)

type GivenFilter = ListQuery['filters'][number]

function filterOf<Model extends ListedModel>({ by, key }: Name<Model>, text: string): GivenFilter {
  const filter = key === undefined ? undefined : { uuid: hasUuid, integer: hasKey }[key]('pk', 'With this key.')
  const value = filter?.schema.safeParse(text).data
  // `007` is a name: a number is written without zeros before it.
  const isKey = typeof value === 'string' || (typeof value === 'number' && String(value) === text)
  return filter !== undefined && isKey ? { name: 'pk', filter, value } : { name: by, filter: equals(by), value: text }
}

/** Two rows show that the name is ambiguous. */
function listQueryOf(filters: readonly GivenFilter[], actor: Actor): ListQuery {
  return { actor, filters, terms: [], ordering: [], isPlain: true, page: 1, page_size: 2 }
}

/**
 * The tag of one row as this caller reads it, in a transaction that changes the row.
 *
 * @param text the name or key
 * @param uidOf was read before the transaction
 * @returns none for no row; null for a text that is so long that it has no tag
 */
export async function tagsOf<Model extends ListedModel>(
  tx: Tx,
  spec: ListSpec<Model>,
  name: Name<Model>,
  text: string,
  { actor, uidOf }: Pick<Reading, 'actor' | 'uidOf'>,
): Promise<readonly (string | null)[]> {
  const { keys } = await find(tx, spec, listQueryOf([filterOf(name, text)], actor))
  if (keys.length === 0) return []
  const tags: (string | null)[] = []
  for await (const batch of spec.view.read(tx, keys, { uidOf, related: true, actor }))
    for (const result of await readBatch(within(tx), batch)) tags.push(await tagOf(tx, result))
  return tags
}

/** The tag with which a read answers this result; null for a text that is so long that it has none. */
export async function tagOf(tx: Tx, result: object): Promise<string | null> {
  const text = await shortText(within(tx), result)
  return text === null ? null : etagOf(text)
}

export function ambiguous(parameter: string, text: string): Problem {
  const errors = new ErrorList()
  errors.of('parameter').add([parameter], 'ambiguous', text)
  return errors.problem()
}
