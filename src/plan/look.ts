import type { Field, Model } from '../models/define.ts'
import { comparedName } from '../names.ts'
import { isRowOf, type Key, type Row } from './statements.ts'
import { storedKeys } from './storage.ts'

/** The one form of all questions about rows. The World answers them, and the loader makes SQL of those that it does not know. */

/**
 * A question: the rows of a table that have all of these values, or those of a model that refer to a key in a field. Values are
 * texts, as PostgreSQL writes them.
 */
export type Look = {
  readonly model: Model
  readonly columns: readonly string[]
  readonly values: readonly string[]
  /** Whether the value is compared like a name. */
  readonly folded?: true
  /** The reference field, in place of a column. The value is the key of the row that it refers to. */
  readonly field?: Field
  /** A column with a time: rows count until then. */
  readonly until?: string
  /** The most rows that are read. */
  readonly most?: number
}

/** The links of a row in a field where it may have very many. @property among the keys that are asked for; undefined: all */
export type LinkLook = {
  readonly model: Model
  readonly name: string
  readonly pk: Key
  readonly among?: readonly Key[] | undefined
}

export const byKey = (model: Model, key: unknown): Look => ({ model, columns: ['pk'], values: [String(key)] })

/** The storage of a field within its table: a column, a join table, or a name in JSON. */
export const storageOf = ({ name, storage }: Pick<Field, 'name' | 'storage'>): string =>
  storage.in === 'column' ? storage.column : storage.in === 'link' ? `link ${name}` : `json ${name}`

/** The key in a question: one of digits is a number. */
export const keyIn = (value: string): Key => (/^\d+$/.test(value) ? Number(value) : value)

/** The rows among which a question looks: those of a table, or those of a model in one of its fields. */
export const scopeOf = ({ model, field }: Look): string =>
  field === undefined ? model.table : `${model.name}.${field.name}`

/** A question as text. No stored value has the separator. */
export const questionOf = (look: Look, folded = look.folded): string =>
  `${scopeOf(look)} ${look.columns.join()} ${folded} ${look.until ?? ''} ${look.values.join('\0')}`

/** Whether a row has the values of a question. */
export function isFoundBy({ model, columns, values, folded, field, until }: Look, row: Row): boolean {
  const [value = ''] = values
  const end = until === undefined ? null : row[until]
  if (typeof end === 'string' && new Date(end) <= new Date()) return false
  if (field !== undefined) {
    return isRowOf(model, row) && storedKeys(field, row).some((key) => String(key) === value)
  }
  const compared = folded === true ? comparedName : (text: string) => text
  return columns.every((column, index) => compared(String(row[column] ?? '')) === compared(values[index] ?? ''))
}
