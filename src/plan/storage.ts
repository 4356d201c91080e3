import type { Keyring, SealedPlace } from '../db/seal.ts'
import { isKept, keptForm } from '../document/generate.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import type { Creator, Field, Model, Values } from '../models/define.ts'
import { expiresOf, previousOf } from '../models/overlap.ts'
import type { Key, Row, StoredRow } from './statements.ts'

/** Converts between a stored row and its fields by wire name. */

/** A sealed value is bound to its row by the row's UUID, which is known before the insert. */
const sealedPlace = ({ table, uuid }: Model, row: Row, column: string): SealedPlace => ({
  table,
  row: String(uuid ? row.uuid : row.pk),
  column,
})

/** @returns the values of all fields, with secrets opened */
export const toValues = (model: Model, row: Row, keyring: Keyring): Values =>
  valuesOf(model, row, (envelope, column) => JSON.parse(keyring.open(envelope, sealedPlace(model, row, column))))

/** @returns the values of all fields, with secrets masked, and earlier secrets in their overlaps: nothing is opened */
export const toMaskedValues = (model: Model, row: Row): Values => ({
  ...valuesOf(model, row, () => keptForm),
  ...Object.fromEntries(
    overlapsOf(model).flatMap(({ name }) => [
      [previousOf(name), typeof object(row.secrets)[previousOf(name)] === 'string' ? keptForm : null],
      [expiresOf(name), endOfOverlap(row, name)],
    ]),
  ),
})

/**
 * The values of a secret that are valid at this time, opened, each with its end: the newest one has none. Versions before 0.2.0
 * stored the mask of a value that was sent back: it is no secret.
 */
export function validSecrets(model: Model, row: Row, { name, storage }: Field, keyring: Keyring, now: Date) {
  const open = (envelope: unknown, column: string, until: unknown): { value: unknown; until: unknown }[] => {
    if (typeof envelope !== 'string') return []
    const value: unknown = JSON.parse(keyring.open(envelope, sealedPlace(model, row, column)))
    return isKept(value) ? [] : [{ value, until }]
  }
  const [secrets, previous, until] = [object(row.secrets), previousOf(name), endOfOverlap(row, name)]
  const isPast = typeof until !== 'string' || Date.parse(until) <= now.getTime()
  const present =
    storage.in === 'sealed'
      ? open(row[storage.column], storage.column, null)
      : open(secrets[name], `secrets.${name}`, null)
  return isPast ? present : [...present, ...open(secrets[previous], `secrets.${previous}`, until)]
}

const overlapsOf = ({ fields }: Model): Field[] => [...fields.values()].filter(({ overlap }) => overlap)

/** The stored time until which the earlier secret is valid; null without one. */
export const endOfOverlap = (row: Row, field: string): unknown => object(row.settings)[expiresOf(field)] ?? null

/** @param secretOf returns the value of a secret that is stored in this envelope */
function valuesOf(model: Model, row: Row, secretOf: (envelope: string, column: string) => unknown): Values {
  const open = (envelope: unknown, column: string) => (typeof envelope === 'string' ? secretOf(envelope, column) : null)
  const values: Record<string, unknown> = {}
  const [settings, secrets] = [object(row.settings), object(row.secrets)]
  for (const { name, storage, time } of model.fields.values()) {
    switch (storage.in) {
      case 'column':
        values[name] = time ? utcTime(row[storage.column]) : (row[storage.column] ?? null)
        break
      case 'sealed':
        values[name] = open(row[storage.column], storage.column)
        break
      case 'settings':
        values[name] = settings[name] ?? null
        break
      case 'secrets':
        values[name] = open(secrets[name], `secrets.${name}`)
        break
      case 'link': {
        // Links that may be very many, and were not read, have no value: they are kept.
        const keys = row.links?.[name] ?? (storage.many ? undefined : [])
        if (keys !== undefined) values[name] = keys
        break
      }
      default:
        storage satisfies never
    }
  }
  return values
}

const object = (value: unknown): JsonObject => (isObject(value) ? value : {})

/** PostgreSQL writes a time in the time zone of the session: the wire has UTC. */
const utcTime = (stored: unknown) => (typeof stored === 'string' ? new Date(stored).toISOString() : null)

/** The keys of a new row: `pk`, and the UUID of a model that has one beside it. A plan has the numbered columns too. */
export type Identity = { pk: Key; uuid?: string; [numbered: string]: unknown }

/**
 * A row as it will be read once it is written. A field with errors stays as it is.
 *
 * @param row the row before; that of a new one has its keys, its discriminator and its origin
 */
export function rowAfter(model: Model, row: Row, changed: readonly string[], values: Values, keyring: Keyring): Row {
  const known = changed.filter((name) => values[name] !== undefined)
  const { columns, links } = toChangedRow(model, row, known, values, keyring)
  const linked = Object.fromEntries([...links].map(([name, keys]) => [name, keysOf(keys)]))
  return { ...row, ...Object.fromEntries(columns), links: { ...row.links, ...linked } }
}

/** The maker of a row, and the label under which it is managed, in a model that keeps them. */
export type Origin = {
  readonly creator: Creator
  /** The effective user. */
  readonly createdBy: number | null
  readonly owner: string | null
}

export function toNewRow(
  model: Model,
  identity: Identity,
  values: Values,
  { creator, createdBy, owner }: Origin,
  keyring: Keyring,
): StoredRow {
  const { columns, links } = toColumns(model, [...model.fields.values()], identity, values, keyring)
  const seal = (plaintext: string, column: string) => keyring.seal(plaintext, sealedPlace(model, identity, column))
  const others = {
    ...identity,
    ...model.discriminator,
    ...(model.isLabelled && { created_by: createdBy, owner }),
    ...model.setByServer?.({ values, creator, keys: keyring, seal }),
  }
  return { columns: new Map([...columns, ...Object.entries(others)]), links }
}

/**
 * The columns of the changed fields; the other values in `settings` and `secrets` are kept. An earlier secret stays if `values`
 * have the end of its overlap, and is removed otherwise.
 */
export function toChangedRow(
  model: Model,
  row: Row,
  changed: readonly string[],
  values: Values,
  keyring: Keyring,
): StoredRow {
  const fields = [...model.fields.values()].filter(({ name }) => changed.includes(name))
  const { columns, links } = toColumns(model, fields, row, values, keyring)
  const overlaps = fields.filter(({ overlap }) => overlap)
  if (overlaps.length === 0) return { columns, links }
  const before = toValues(model, row, keyring)
  const settings = { ...object(columns.get('settings') ?? row.settings) }
  const secrets = { ...object(columns.get('secrets') ?? row.secrets) }
  for (const { name } of overlaps) {
    // A caller who may not view the secret sent it again: the earlier secret and its end stay.
    if (before[name] === values[name]) continue
    const [previous, expires] = [previousOf(name), expiresOf(name)]
    delete secrets[previous]
    delete settings[expires]
    if (typeof values[expires] !== 'string') continue
    const place = sealedPlace(model, row, `secrets.${previous}`)
    secrets[previous] = keyring.seal(JSON.stringify(before[name]), place)
    settings[expires] = values[expires]
  }
  return { columns: new Map([...columns, ['settings', settings], ['secrets', secrets]]), links }
}

/** @param row the row before; that of a new one has its keys alone */
function toColumns(model: Model, fields: readonly Field[], row: Row, values: Values, keyring: Keyring): StoredRow {
  const columns = new Map<string, unknown>()
  const links = new Map<string, readonly unknown[]>()
  const settings = { ...object(row.settings) }
  const secrets = { ...object(row.secrets) }
  const seal = (value: unknown, column: string) =>
    value === null || value === undefined ? null : keyring.seal(JSON.stringify(value), sealedPlace(model, row, column))
  for (const { name, storage } of fields) {
    const value = values[name]
    switch (storage.in) {
      case 'column':
        columns.set(storage.column, value)
        break
      case 'sealed':
        columns.set(storage.column, seal(value, storage.column))
        break
      case 'settings':
        settings[name] = value
        columns.set('settings', settings)
        break
      case 'secrets':
        secrets[name] = seal(value, `secrets.${name}`)
        columns.set('secrets', secrets)
        break
      case 'link':
        links.set(name, Array.isArray(value) ? value : [])
        break
      default:
        storage satisfies never
    }
  }
  return { columns, links }
}

/** The references of the named fields in `settings`, as rows of the model's reference table. */
export function referenceRowsOf(
  model: Model,
  values: Values,
  fields: Iterable<string> = model.fields.keys(),
): Values[] {
  const { referenceRows } = model
  if (referenceRows === undefined) return []
  return [...fields].flatMap((name) => {
    const field = model.fields.get(name)
    if (field?.storage.in !== 'settings' || field.reference === undefined) return []
    const column = referenceRows.columns[field.reference.target]
    // The registry refuses a model without it.
    if (column === undefined) return []
    return keysOf(values[name]).map((key, position) => ({ field: name, position, [column.name]: key }))
  })
}

/** One key, several or none, as a list. */
export const keysOf = (value: unknown): (string | number)[] =>
  (Array.isArray(value) ? value : [value]).filter((key) => typeof key === 'string' || typeof key === 'number')

/** The keys in a field of a row that was read, when the field refers to others. */
export function storedKeys({ name, storage }: Pick<Field, 'name' | 'storage'>, row: Row): (string | number)[] {
  if (storage.in === 'link') return keysOf(row.links?.[name])
  return keysOf(storage.in === 'column' ? row[storage.column] : object(row.settings)[name])
}
