import { z } from 'zod'
import type { Keyring } from '../db/seal.ts'
import type { ErrorCode } from '../error-codes.ts'
import type { FieldPath } from '../errors.ts'
import { checkExamples, fileOf } from './declared.ts'
import { expiresOf, previousOf } from './overlap.ts'

/**
 * A model is one declaration: which fields may be written, how they are validated, where they are stored and what they refer to.
 * The engine works from it alone.
 */

/** Restricts a reference to the rows whose `column` holds one of `values`. `atFirst`: only when the referring row is created. */
export type Only = { readonly column: string; readonly values: readonly string[]; readonly atFirst?: true }

/** A further condition of a reference on its row, which reads these fields of the row. */
export type Needs = {
  readonly fields: readonly string[]
  /** Fields of the referring row that count, too. */
  readonly beside: readonly string[]
  /** @returns why a row does not fit, behind its name; undefined when it does. A secret field may be masked. */
  readonly misfit: (row: Values, referring: Values) => string | undefined
}

/** Facts about a field that a schema does not express. Attach them with `reference`, `secret` and `generated` of `fields.ts`. */
export type FieldMeta = {
  reference?: Omit<Reference, 'many'>
  /** Sealed at rest, masked in every log, plan, run, job and dashboard. */
  secret?: true
  /** Generates the value of a new row that is sent without one. The answer shows it once, as `generated`. */
  generate?: () => string
  /** The secret before it may stay valid for a time, when a document requests it. */
  overlap?: true
  /** A name: unique ones are unique as names compare (`names.ts`). */
  name?: true
  /** A date and time: stored as a timestamp, read as ISO 8601 in UTC. */
  time?: true
  /** A list, or a text with commas, whose order has no meaning; that of references never has. */
  set?: true
  /** A text that may hold something that looks like a placeholder. */
  free?: true
}

export const fieldMeta = z.registry<FieldMeta>()

export type FieldStorage =
  /** a column of the model's table; no row is found by a `json` one */
  | { in: 'column'; column: string; json: boolean }
  /** a text column that holds a sealed value */
  | { in: 'sealed'; column: string }
  /** a field of the JSON column `settings` */
  | { in: 'settings' }
  /** a field of the JSON column `secrets`, sealed */
  | { in: 'secrets' }
  /** rows of a join table: `own` holds this row's key, `other` the referenced one */
  | ({ in: 'link' } & Link)

export type Link = {
  table: string
  own: string
  other: string
  /** The other row may be linked by one row only. */
  exclusive?: true
  /** Whether a row may have very many: they are read for an entry that sends the field or deletes the row, and for a plan. */
  many?: true
}

export type Field = Readonly<Pick<FieldMeta, 'secret' | 'generate' | 'overlap' | 'time'>> & {
  readonly name: string
  /** The schema of a sent value, without the default, which applies to new rows only. */
  readonly schema: z.ZodType
  readonly required: boolean
  /** The value a new row gets when none is sent; undefined when the field is required. */
  readonly initial: unknown
  readonly reference: Reference | undefined
  /** No other row may have this value as names compare: `Admins` and `admins`. */
  readonly folded: boolean
  /** Whether another order of its items is no change. */
  readonly isSet: boolean
  /** Whether it may hold text that looks like a placeholder: a name of this row or of another, prose, an expression. */
  readonly isFree: boolean
  readonly storage: FieldStorage
}

/** The rows to which a field refers: one row or several, all of a target or those of `only`. */
export type Reference = {
  /** The reference target whose key this field holds, such as `flow` or `provider`. */
  readonly target: string
  readonly many: boolean
  readonly only?: Only
  readonly needs?: Needs
  /** Whether the database deletes no row to which this column refers. The same holds for references that are stored in JSON. */
  readonly holds?: true
}

/** All fields of one row, by wire name. */
export type Values = Readonly<Record<string, unknown>>

/** Reports an error of a rule that spans fields. */
export type Report = (path: FieldPath, code: ErrorCode, message: string) => void

/** The time and the previous row, from which values may be computed. */
export type Moment = {
  /** The row as it is; undefined for a new one. */
  readonly before: Values | undefined
  /** The time by the database's clock. */
  readonly now: Date
  /** The longest lifetime of a token, in days; superusers may exceed it. */
  readonly tokenMaxDays: number
}

export type Creator = {
  /** The real user; null for the service itself. */
  readonly pk: number | null
  /** The user who is authenticated in full: null while impersonating, and for a token with a ceiling. */
  readonly self: number | null
  /** The permissions that the creator holds; null for a superuser, who holds all. */
  readonly permissions: readonly string[] | null
  /** The stacks to which its token is bound; null: to none. */
  readonly stacks?: ReadonlySet<string> | null
  /** All permissions that exist, where a row may need them: a superuser's. */
  readonly all?: readonly string[]
}

/** A row about to be inserted: its values, its creator, the keys, and a function that seals a text into one of its columns. */
export type NewRow = {
  readonly values: Values
  readonly creator: Creator
  readonly keys: Pick<Keyring, 'digests' | 'ids'>
  readonly seal: (plaintext: string, column: string) => string
}

/** The type of a model's keys, in SQL and on the wire. */
export type KeyType = 'uuid' | 'integer'

/** The rows that a reference may name: all rows of a table, or those of `only`. */
export type ReferenceTarget = {
  readonly table: string
  readonly key: KeyType
  readonly only?: Only
  /** The models whose rows it has: one, or all that share the table. */
  readonly models: readonly Model[]
}

/** The column in which reference rows keep the key of one target. */
export type ReferenceColumn = { readonly name: string; readonly key: KeyType }

export type ModelDeclaration = {
  /** The wire name, `service_<area>.<model>`. */
  name: string
  /** The name in messages: `application`, `provider oauth2`. */
  displayName: string
  /** The name in references; models of one reference target share a table. Default: the resource. */
  target?: string
  table: string
  key: KeyType
  /** Sets of fields that find one row, as `pk` always does. The very first field names the row in messages. */
  identifiers: readonly (readonly string[])[]
  attrs: z.ZodObject
  /** Fields whose column has another name. */
  columns?: Readonly<Record<string, string>>
  /** Fields that are stored in a join table. */
  links?: Readonly<Record<string, Link>>
  /** Fields whose value names a row where another refers to it, the first before the second. Default: each single identifier. */
  names?: readonly string[]
  /** Whether an error about an unknown name suggests existing ones to every caller, not only to those who may view them. */
  offersNames?: true
  /** Fields that must be unique besides the first identifier. */
  unique?: readonly string[]
  /** Columns with one value for all rows of this model; a row with another value belongs to another model. */
  discriminator?: Readonly<Record<string, string>>
  /** Fields without a column of their own are stored in the JSON columns `settings` and `secrets`. */
  storedInJson?: boolean
  /** The table that holds the references in `settings` as foreign keys, with one column for each reference target. */
  referenceRows?: { table: string; own: string; columns: Readonly<Record<string, ReferenceColumn>> }
  /** Columns that a sequence of the database fills, beside an integer key. */
  numbered?: readonly string[]
  /** Each new row gets a UUID beside its integer key, in the column `uuid`. */
  uuid?: true
  /** Fields of answers that bodies may repeat, beside the key: accepted and ignored. */
  readOnly?: readonly string[]
  /** Fields of answers that are not stored and always null: in a body, only null is taken. */
  alwaysNull?: readonly string[]
  /** Generates missing values of a new row from the others, after defaults: for example a self-signed certificate. */
  generateMissing?: (values: Values) => Promise<Values>
  /** Whether the row is one that `generateMissing` made: its secrets never left the service. */
  isGenerated?: (values: Values) => boolean
  /**
   * Rules that span fields, on the whole row as it will be. A field that has errors or is missing is undefined: a rule
   * skips it, so that one answer reports the errors of all fields.
   */
  rules?: (values: Values, report: Report) => void
  /** What the author of a new or changed row should know: a sentence each, behind its name. It is written all the same. */
  doubts?: (values: Values) => readonly string[]
  /**
   * Computes values from the others, the time and the previous row. Called for a new or changed row, after its rules.
   * Fields that have errors or are missing are undefined here, too.
   */
  compute?: (values: Values, moment: Moment, report: Report) => Values
  /** Columns of a new row that are not fields: set by the server, and never reported by the engine. */
  setByServer?: (row: NewRow) => Readonly<Record<string, unknown>>
  /** The field with the user who owns the row: owners need no permission for their own rows. */
  owner?: string
  /**
   * How many rows may refer to the same row by this field. The database has the same limit, for simultaneous writes.
   *
   * @property until the time after which a row does not count
   */
  limit?: { per: string; rows: number; until: string }
  /**
   * A field of one reference makes way for a row of another kind: of two rows, those of `target` stand in the list `to`, and the
   * field has the other. The new row takes the field only to replace the row that the field had.
   */
  yields?: { field: string; to: string; target: string }
  /** Fields whose rows become part of this one: to name an existing one needs the permission to change it. */
  claims?: readonly string[]
  /** Whether the table keeps who made a row, in `created_by`, and the label under which it is managed, in `owner`. */
  isLabelled?: true
}

export type Model = Readonly<Omit<ModelDeclaration, 'attrs' | 'columns' | 'links'>> & {
  /** The suffix of its permissions, the end of its name: `application` gives `add_application`. */
  readonly resource: string
  readonly target: string
  readonly attrs: z.ZodObject
  readonly fields: ReadonlyMap<string, Field>
  readonly names: readonly string[]
  readonly unique: readonly string[]
  readonly discriminator: Readonly<Record<string, string>>
  readonly readOnly: readonly string[]
}

/**
 * Makes a model from a declaration.
 *
 * @throws when an identifier, name, unique field, owner or limit is not declared as a field, or an example does not fit
 *   its field
 */
export function defineModel(declaration: ModelDeclaration): Model {
  const fields = new Map<string, Field>()
  for (const [name, declared] of Object.entries(declaration.attrs.shape)) {
    const { schema, initial, required } = withoutDefault(declared as z.ZodType)
    checkExamples(fileOf(declaration), name, schema)
    const { reference, name: isName, set, free, ...facts } = metaOf(schema)
    fields.set(name, {
      ...facts,
      name,
      schema,
      initial,
      required,
      reference: reference && { ...reference, many: isArray(schema) },
      folded: isName === true && isUnique(declaration, name),
      isSet: set === true || (reference !== undefined && isArray(schema)),
      isFree: free === true || reference !== undefined,
      storage: storageOf(declaration, name, schema),
    })
  }
  const named = [
    ...declaration.identifiers.flat(),
    ...(declaration.unique ?? []),
    ...(declaration.names ?? []),
    ...[declaration.owner ?? [], declaration.limit?.per ?? [], declaration.limit?.until ?? []].flat(),
  ]
  const unknown = named.filter((name) => name !== 'pk' && !fields.has(name))
  if (unknown.length > 0)
    throw new Error(
      `${declaration.name}: identifier, name, unique field, owner or limit ${unknown.join(', ')} is not declared`,
    )
  const overlaps = [...fields.values()].filter(({ overlap }) => overlap)
  if (overlaps.some(({ storage }) => storage.in !== 'secrets'))
    throw new Error(`${declaration.name}: a field with an overlap is a secret that is stored in JSON`)
  const resource = declaration.name.replace(/^.*\./, '')
  return {
    ...declaration,
    resource,
    target: declaration.target ?? resource,
    fields,
    names: declaration.names ?? declaration.identifiers.flatMap((set) => (set.length === 1 ? set : [])),
    unique: declaration.unique ?? [],
    discriminator: declaration.discriminator ?? {},
    readOnly: [
      'pk',
      ...(declaration.readOnly ?? []),
      ...(declaration.isLabelled ? ['owner', 'created_by', 'created_by_name'] : []),
      ...overlaps.flatMap(({ name }) => [previousOf(name), expiresOf(name)]),
    ],
  }
}

const isUnique = ({ unique = [], identifiers }: ModelDeclaration, name: string): boolean =>
  unique.includes(name) || identifiers.some((set) => set.length === 1 && set[0] === name)

function storageOf({ columns, links, storedInJson }: ModelDeclaration, name: string, schema: z.ZodType): FieldStorage {
  const { secret } = metaOf(schema)
  const link = links?.[name]
  const column = columns?.[name]
  if (link !== undefined) return { in: 'link', ...link }
  if (storedInJson && column === undefined) return secret ? { in: 'secrets' } : { in: 'settings' }
  return secret
    ? { in: 'sealed', column: column ?? name }
    : { in: 'column', column: column ?? name, json: isJson(schema) }
}

/** Separates the schema of a sent value from the default of a new row: a PUT that omits a field keeps its value. */
function withoutDefault(declared: z.ZodType): { schema: z.ZodType; initial: unknown; required: boolean } {
  if (declared instanceof z.ZodDefault)
    return { schema: declared.def.innerType as z.ZodType, initial: declared.def.defaultValue, required: false }
  if (declared instanceof z.ZodOptional)
    return { schema: declared.def.innerType as z.ZodType, initial: undefined, required: false }
  return { schema: declared, initial: undefined, required: metaOf(declared).generate === undefined }
}

/** The meta of the innermost schema, below `nullable()` and arrays. */
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

/** Objects, and lists of them, are bound as JSON; a list of texts is a PostgreSQL array. */
const isJson = (schema: z.ZodType): boolean => {
  const inner = bare(schema)
  if (inner instanceof z.ZodArray) return isJson(inner.def.element as z.ZodType)
  return inner instanceof z.ZodObject || inner instanceof z.ZodRecord
}
