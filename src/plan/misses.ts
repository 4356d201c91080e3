import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { patience, quickMs } from '../db/in-time.ts'
import { type Statement, unprepared } from '../db/raw.ts'
import type { ErrorCode } from '../error-codes.ts'
import { nearest } from '../messages.ts'
import type { Only, ReferenceTarget } from '../models/define.ts'
import { type Actor, allows } from '../permissions.ts'
import { type Match, nameColumns } from './references.ts'
import { quoted } from './statements.ts'

/** The errors of names that no row has, or several rows. Those of unknown names suggest the one that was probably meant. */

type Miss = Exclude<Match, { is: 'row' }>

/** A name without a row. */
type Unknown = { readonly name: string; readonly target: ReferenceTarget; readonly only: Only | undefined }

const similarRow = z.object({ name: z.string(), fits: z.string().nullable(), similarity: z.number() })

/** A name that is similar. `fits` is the row's value of the column by which the reference is restricted. */
type Similar = z.output<typeof similarRow>

export class Misses {
  /** The reader of similar names, as far as it may see them. */
  actor: Actor | undefined
  readonly #reader: EngineReader
  /** Similar names, by target and name: they are searched once for each, and only for a few names. */
  readonly #hints = new Map<string, readonly Similar[]>()
  /** The names for which similar ones are searched next. */
  readonly #asked = new Map<string, Unknown>()
  #leftMs = suggestionsMs()

  constructor(reader: EngineReader) {
    this.#reader = reader
  }

  /** An error without a hint has one after the next `load`. */
  errorOf(unknown: Unknown, miss: Miss): { code: ErrorCode; message: string } {
    const { name, target, only } = unknown
    const displayName = displayNameOf(target)
    const quotedName = JSON.stringify(name)
    switch (miss.is) {
      case 'unfit': {
        const has = `The ${displayName} ${quotedName} has the ${only?.column} ${miss.found}`
        return { code: 'wrong_reference', message: `${has}: this field takes ${only?.values.join(', ')}.` }
      }
      case 'ambiguous': {
        const listed = miss.rows.slice(0, maxListed).join('; ')
        const message = `More than one ${displayName} is called ${quotedName}: ${listed}. Send the key of one${insteadOf(target)}.`
        return { code: 'ambiguous', message }
      }
      case 'gone': {
        const message = `No ${displayName} is called ${quotedName} at this place: entry ${miss.entry} of the document ${miss.verb} it.`
        return { code: 'unknown_name', message }
      }
      case 'unknown': {
        const hint = hintOf(name, only, this.#similar(unknown))
        return { code: 'unknown_name', message: `No ${displayName} is called ${quotedName}.${hint}` }
      }
      default:
        return miss satisfies never
    }
  }

  #similar(unknown: Unknown): readonly Similar[] {
    const { name, target, only } = unknown
    const asked = JSON.stringify([target.table, only, name])
    const isOffered = name.length <= maxLength && this.actor !== undefined && offers(target, this.actor)
    const isLeft = this.#hints.size + this.#asked.size < maxSuggestions
    if (isOffered && isLeft && !this.#hints.has(asked)) this.#asked.set(asked, unknown)
    return this.#hints.get(asked) ?? []
  }

  /** @returns whether similar names were searched */
  async load(): Promise<boolean> {
    const asked = [...this.#asked]
    this.#asked.clear()
    for (const [name, unknown] of asked) {
      const begun = performance.now()
      const found = this.#leftMs < 1 ? null : await readSimilar(this.#reader, unknown, this.#leftMs)
      this.#leftMs -= performance.now() - begun
      this.#hints.set(name, found ?? [])
    }
    return asked.length > 0
  }
}

/** The most rows with the same name that are listed. */
const maxListed = 5
const maxSuggestions = 10
/** The time for all suggestions of a document: an error without them is better than none. It is longer for a slow database. */
const suggestionsMs = () => (300 * patience()) / quickMs
/** Longer names are compared with no other. */
const maxLength = 100

/** The remedy for a name of several rows: in a model with several names, `!Find` by one of them. */
const insteadOf = ({ models: [model, ...others] }: ReferenceTarget): string => {
  const [name, another] = model?.names ?? []
  return model === undefined || another === undefined || others.length > 0
    ? ''
    : `, or !Find [${model.name}, {${name}: ...}]`
}

/** The name of a target's rows in messages. */
const displayNameOf = ({ models: [model, ...others] }: ReferenceTarget): string =>
  (others.length === 0 ? model?.displayName : model?.target) ?? 'row'

/** Names of mere configuration are offered to all who may write a row that refers to it; others to those who may view them. */
const offers = ({ models }: ReferenceTarget, actor: Actor): boolean =>
  models.every(({ offersNames, resource }) => offersNames === true || allows(actor, `view_${resource}`))

/** @returns ` Did you mean "default-authorization" (designation authorization)?` */
function hintOf(name: string, only: Only | undefined, similar: readonly Similar[]): string {
  const names = similar.map((each) => each.name)
  const near = nearest(name, names)
  const [first] = similar
  const meant =
    similar.find((each) => each.name === near) ?? (first && first.similarity >= minSimilarity ? first : undefined)
  if (meant !== undefined) {
    const fits = only === undefined || meant.fits === null ? '' : ` (${only.column} ${meant.fits})`
    return ` Did you mean ${JSON.stringify(meant.name)}${fits}?`
  }
  return only === undefined ? '' : ` This field takes one with the ${only.column} ${only.values.join(', ')}.`
}

/** The least similarity by PostgreSQL's pg_trgm: about half of all sequences of three letters are the same. */
const minSimilarity = 0.5

const maxSimilar = 10

/** A table with more rows has similar names for everything: fewer of them are compared. */
const manyRows = 10_000

/** Sets the least similarity of a name, by pg_trgm. The last ANALYZE gives the approximate number of rows. */
const thresholdFor = (table: string): Statement => ({
  text: `SELECT set_config('pg_trgm.similarity_threshold', CASE WHEN reltuples > $2 THEN '0.6' ELSE '0.3' END, true)
    FROM pg_class WHERE oid = $1::text::regclass`,
  values: [quoted(table), manyRows],
})

/**
 * @param withinMs the time that PostgreSQL may take
 * @returns names that are similar to an unknown one, of rows that the reference takes, the most similar first; null when
 *   that takes too long
 */
async function readSimilar(
  reader: EngineReader,
  { name, target, only }: Unknown,
  withinMs: number,
): Promise<readonly Similar[] | null> {
  const parts = nameColumns(target).map(({ column }) => {
    const folded = `lower(t.${quoted(column)})`
    const fits = only === undefined ? 'NULL' : `t.${quoted(only.column)}::text`
    const taken = only?.values.map((value) => `'${value}'`).join(', ')
    const isTaken = taken === undefined ? '' : ` AND ${fits} IN (${taken})`
    return `(SELECT t.${quoted(column)} AS name, ${fits} AS fits,
      similarity(${folded}, lower($1::text))::float8 AS similarity FROM ${quoted(target.table)} t
      WHERE ${folded} % lower($1::text)${isTaken} ORDER BY 3 DESC, 1 LIMIT ${maxSimilar})`
  })
  if (parts.length === 0) return []
  const statement = unprepared({ text: parts.join(' UNION ALL '), values: [name] })
  return reader.attempt(similarRow, statement, { withinMs, settings: thresholdFor(target.table) })
}
