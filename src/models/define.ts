import { z } from 'zod'
import type { FieldPath } from '../errors.ts'

/**
 * The contract of a model: one declaration from which the engine knows what may be written, how it is validated,
 * where each member is stored and what it refers to. A model file holds nothing but its declaration.
 */

/** What a schema alone does not say about a member. Attach with `reference`, `secret` and `madeUp` of `fields.ts`. */
export type FieldMeta = {
  /** The family of models whose key this member holds, such as `flow` or `provider`. */
  reference?: string
  /** Sealed at rest, masked in every log, plan, run, job and dashboard. */
  secret?: true
  /** The value that the service makes up when a new row comes without one; it is shown once as `generated`. */
  makeUp?: () => string
  /** A date and time: kept as the database's own kind, and read as ISO 8601 UTC. */
  time?: true
}

export const fieldMeta = z.registry<FieldMeta>()

/** Where a member's value is stored. */
export type Place =
  /** a column of the model's table; `json` values are bound as JSON */
  | { in: 'column'; column: string; json: boolean }
  /** a text column that holds a sealed value */
  | { in: 'sealed'; column: string }
  /** a member of the JSON column `settings` */
  | { in: 'settings' }
  /** a member of the JSON column `secrets`, sealed */
  | { in: 'secrets' }
  /** rows of a join table: `own` holds this row's key, `other` the referenced one */
  | ({ in: 'link' } & Link)

export type Link = {
  table: string
  own: string
  other: string
  /** The other row may be linked by one row only. */
  exclusive?: true
}

export type Member = {
  readonly name: string
  /** What a sent value must be. Defaults are not part of it: they belong to new rows only. */
  readonly schema: z.ZodType
  readonly required: boolean
  /** The value a new row gets when none is sent; undefined when the member is required. */
  readonly initial: unknown
  readonly reference: { family: string; many: boolean } | undefined
  readonly secret: boolean
  readonly makeUp: (() => string) | undefined
  readonly time: boolean
  readonly place: Place
}

/** All members of one row, by wire name. */
export type Values = Readonly<Record<string, unknown>>

/** Reports a fault of a rule that spans members. */
export type Report = (path: FieldPath, message: string) => void

/** What a row that depends on the time or on what it was is made from. */
export type Moment = {
  /** The row as it is; undefined for a new one. */
  readonly before: Values | undefined
  /** By the database's clock. */
  readonly now: Date
  /** How far ahead a token may expire, unless a superuser says so. */
  readonly tokenMaxDays: number
}

/** A row about to be inserted: its values, and how to seal a text into one of its columns. */
export type NewRow = { readonly values: Values; readonly seal: (plaintext: string, column: string) => string }

/** How a family's keys look in SQL and on the wire. */
export type KeyType = 'uuid' | 'integer'

/** What a reference may name: the rows of a table, or those of them whose `column` holds one of `values`. */
export type Family = {
  readonly table: string
  readonly key: KeyType
  readonly only?: { readonly column: string; readonly values: readonly string[] }
}

export type ModelDeclaration = {
  /** The wire name, `service_<area>.<model>`. */
  name: string
  /** What a person calls it: `application`, `provider oauth2`. */
  noun: string
  /** What its permissions are named after: `application` gives `add_application`. */
  resource: string
  /** What references call it; models of one family share a table. Default: the resource. */
  family?: string
  table: string
  key: KeyType
  /** Sets of members, each of which finds one row. The key, `pk`, always does. The first names the row in messages. */
  identifiers: readonly (readonly string[])[]
  attrs: z.ZodObject
  /** Members whose column is named otherwise. */
  columns?: Readonly<Record<string, string>>
  /** Members that live in a join table. */
  links?: Readonly<Record<string, Link>>
  /** Members that must be unique besides the first identifier. */
  unique?: readonly string[]
  /** Columns with one value for all rows of this model; a row with another value belongs to another model. */
  fixed?: Readonly<Record<string, string>>
  /** Members without a column of their own live in the JSON columns `settings` and `secrets`. */
  packed?: boolean
  /** The table that mirrors the references inside `settings` as foreign keys, one column for each family. */
  mirror?: { table: string; own: string; columns: Readonly<Record<string, string>> }
  /** Each new row gets a UUID beside its integer key, in the column `uuid`. */
  uuid?: true
  /** Members that answers show and bodies may repeat: accepted and ignored. */
  shown?: readonly string[]
  /** Values made from others for a new row, after defaults: a self-signed certificate, say. */
  complete?: (values: Values) => Promise<Values>
  /**
   * Rules that span members, on the whole row as it will be. A member that is faulty or missing is undefined: a rule
   * says nothing of what it cannot know, so that the faults of the others are told in the same answer.
   */
  rules?: (values: Values, report: Report) => void
  /**
   * Values that follow from others, from the time or from what the row was: asked of a row that is new or changes,
   * after its rules. Members that are faulty or missing are undefined here, too.
   */
  derive?: (values: Values, moment: Moment, report: Report) => Values
  /** Columns of a new row that are no members: made up by the service, and told to nobody by the engine. */
  stamp?: (row: NewRow) => Readonly<Record<string, unknown>>
  /** The member that says whose row it is: for his own, nobody needs a permission. */
  owner?: string
}

export type Model = Readonly<Omit<ModelDeclaration, 'attrs' | 'columns' | 'links'>> & {
  readonly family: string
  readonly attrs: z.ZodObject
  readonly members: ReadonlyMap<string, Member>
  readonly unique: readonly string[]
  readonly fixed: Readonly<Record<string, string>>
  readonly shown: readonly string[]
}

/**
 * Turns a declaration into a model, refusing one that cannot hold.
 *
 * @throws when an identifier or unique member is not declared, or a link is no reference
 */
export function defineModel(declaration: ModelDeclaration): Model {
  const { attrs, columns = {}, links = {}, packed = false } = declaration
  const members = new Map<string, Member>()
  for (const [name, declared] of Object.entries(attrs.shape)) {
    const { schema, initial, required } = withoutDefault(declared as z.ZodType)
    const meta = metaOf(schema)
    members.set(name, {
      name,
      schema,
      initial,
      required,
      reference: meta.reference === undefined ? undefined : { family: meta.reference, many: isArray(schema) },
      secret: meta.secret === true,
      makeUp: meta.makeUp,
      time: meta.time === true,
      place: placeOf(name, { columns, links, packed, secret: meta.secret === true, json: isJson(schema) }),
    })
  }
  const named = [...declaration.identifiers.flat(), ...(declaration.unique ?? []), ...[declaration.owner ?? []].flat()]
  const unknown = named.filter((name) => name !== 'pk' && !members.has(name))
  if (unknown.length > 0)
    throw new Error(`${declaration.name}: identifier, unique member or owner ${unknown.join(', ')} is not declared`)
  return {
    ...declaration,
    family: declaration.family ?? declaration.resource,
    members,
    unique: declaration.unique ?? [],
    fixed: declaration.fixed ?? {},
    shown: declaration.shown ?? [],
  }
}

function placeOf(
  name: string,
  {
    columns,
    links,
    packed,
    secret,
    json,
  }: {
    columns: Readonly<Record<string, string>>
    links: Readonly<Record<string, Link>>
    packed: boolean
    secret: boolean
    json: boolean
  },
): Place {
  const link = links[name]
  const column = columns[name]
  if (link !== undefined) return { in: 'link', ...link }
  if (packed && column === undefined) return secret ? { in: 'secrets' } : { in: 'settings' }
  return secret ? { in: 'sealed', column: column ?? name } : { in: 'column', column: column ?? name, json }
}

/** The schema of what may be sent, apart from what a new row gets: a PUT that omits a member leaves it as it is. */
function withoutDefault(declared: z.ZodType): { schema: z.ZodType; initial: unknown; required: boolean } {
  if (declared instanceof z.ZodDefault) {
    return { schema: declared.def.innerType as z.ZodType, initial: declared.def.defaultValue, required: false }
  }
  if (declared instanceof z.ZodOptional) {
    return { schema: declared.def.innerType as z.ZodType, initial: undefined, required: false }
  }
  return { schema: declared, initial: undefined, required: metaOf(declared).makeUp === undefined }
}

/** Looks below `nullable()`, arrays and pipes for what was attached to the innermost schema. */
function metaOf(schema: z.ZodType): FieldMeta {
  const own = fieldMeta.get(schema)
  if (own !== undefined) return own
  if (schema instanceof z.ZodNullable) return metaOf(schema.def.innerType as z.ZodType)
  if (schema instanceof z.ZodArray) return metaOf(schema.def.element as z.ZodType)
  return {}
}

const bare = (schema: z.ZodType): z.ZodType =>
  schema instanceof z.ZodNullable ? bare(schema.def.innerType as z.ZodType) : schema

const isArray = (schema: z.ZodType): boolean => bare(schema) instanceof z.ZodArray

/** Objects are bound as JSON; a list of texts is a PostgreSQL array. */
const isJson = (schema: z.ZodType): boolean =>
  bare(schema) instanceof z.ZodObject || bare(schema) instanceof z.ZodRecord
