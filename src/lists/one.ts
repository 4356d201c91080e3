import { z } from 'zod'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { ErrorList, Problem } from '../errors.ts'
import type { Api } from '../http/api.ts'
import { etagHeaders, etagOf, sendTagged } from '../http/etag.ts'
import type { Actor } from '../permissions.ts'
import { readUidOf } from '../views/uid.ts'
import type { FieldOf, Reading } from '../views/view.ts'
import { equals, queryText } from './filters.ts'
import { find, type ListedModel, type ListQuery } from './find.ts'
import { alsoNeedsOf, type ListSpec, scopeOf } from './list.ts'

/** One row of a list, by the field that names it. */
type One<Model extends ListedModel> = {
  /** Such as `slug`, which is the last part of the path. */
  readonly by: FieldOf<Model>
  readonly summary: string
  /** What it is called in messages. */
  readonly displayName: string
  /** A filter of the list that tells apart rows of the same name. */
  readonly apartBy?: string
}

/**
 * Serves one row of a list: the row that the list shows to this caller under this name, as the list shows it. So what a
 * caller may not see in the list is not found here.
 *
 * Answers 404 for no row, 400 for more than one, 304 for a client that has the current text.
 */
export function one<Model extends ListedModel>(
  app: Api,
  db: Db,
  spec: ListSpec<Model>,
  { by, summary, displayName, apartBy }: One<Model>,
): void {
  // Names are stored composed: a path that spells one otherwise finds it.
  const name = queryText()
    .overwrite((text) => text.normalize('NFC'))
    .meta({ description: `The ${by} of the ${displayName}.` })
  const querystring = z.strictObject(
    apartBy === undefined ? {} : { [apartBy]: (spec.filters[apartBy] ?? equals(apartBy)).schema.optional() },
  )
  const schema = {
    summary,
    ...(spec.description !== undefined && { description: spec.description }),
    params: z.object({ [by]: name }),
    querystring,
    response: { 200: spec.view.schema, 304: z.null() },
  }
  const document = { alsoNeeds: alsoNeedsOf(spec), headers: etagHeaders, answerHeaders: ['ETag'] }
  app.get(
    `${spec.path}:${by}/`,
    { config: { permission: spec.permission, document }, schema },
    async ({ params, query, actor }, reply) => {
      const asked = listQueryOf(spec, { ...params, ...query }, actor)
      const results = await read(db, spec, asked, actor)
      const [result] = results
      if (result === undefined) throw new Problem('not_found', `There is no such ${displayName}.`)
      if (results.length > 1) throw ambiguous(displayName, apartBy ?? by)
      return sendTagged(reply, JSON.stringify(result))
    },
  )
}

/** One more than are wanted: then the name says too little. */
const enough = 2

function listQueryOf(spec: ListSpec, sent: Readonly<Record<string, unknown>>, actor: Actor): ListQuery {
  const filters = Object.entries(sent).flatMap(([name, value]) =>
    value === undefined ? [] : [{ name, filter: equals(name), value }],
  )
  const scope = scopeOf(spec, actor)
  return { filters, terms: [], ...scope, ordering: [], isPlain: true, page: 1, page_size: enough }
}

async function read(db: Db, spec: ListSpec, asked: ListQuery, actor: Actor): Promise<readonly object[]> {
  const reading = { uidOf: await readUidOf(db), related: true, actor }
  const isolationLevel = 'RepeatableRead'
  const results = await transaction(db, (tx) => readIn(tx, spec, asked, reading), { isolationLevel })
  return (await spec.view.complete?.(db, results)) ?? results
}

async function readIn(tx: Tx, spec: ListSpec, asked: ListQuery, reading: Reading): Promise<object[]> {
  const { readKeys } = await find(tx, spec, asked)
  const keys = await readKeys()
  return keys.length === 0 ? [] : (await Array.fromAsync(spec.view.read(tx, keys, reading))).flat()
}

/**
 * The tag of one row as this caller reads it, in a transaction that changes the row.
 *
 * @param named such as `{slug: 'grafana'}`
 * @param uidOf read before the transaction
 * @returns undefined for no row
 */
export async function tagOf<Model extends ListedModel>(
  tx: Tx,
  spec: ListSpec<Model>,
  named: Readonly<Record<string, string>>,
  { actor, uidOf }: Pick<Reading, 'actor' | 'uidOf'>,
): Promise<string | undefined> {
  const [result] = await readIn(tx, spec, listQueryOf(spec, named, actor), { uidOf, related: true, actor })
  return result === undefined ? undefined : etagOf(JSON.stringify(result))
}

function ambiguous(displayName: string, field: string): Problem {
  const errors = new ErrorList()
  errors.of('parameter').add([field], 'ambiguous', `Several are called so: say which ${displayName} is meant.`)
  return errors.problem()
}
