import { randomUUID } from 'node:crypto'
import type { Keyring, SealedPlace } from '../db/seal.ts'
import { uuid7 } from '../ids.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import type { Member, Model, Values } from '../models/define.ts'
import type { Packed, Row } from './statements.ts'

/** Between a row as the database holds it and its members by wire name. */

/** Sealed values are bound to the row by a key that is known before it is inserted: its UUID. */
const sealedPlace = (model: Model, row: string, column: string): SealedPlace => ({ table: model.table, row, column })

const rowId = (model: Model, row: Row): string => String(model.uuid ? row.uuid : row.pk)

/** @returns every member's value, secrets opened */
export function unpack(model: Model, row: Row, keyring: Keyring): Values {
  const id = rowId(model, row)
  const open = (envelope: unknown, column: string) =>
    typeof envelope === 'string' ? opened(keyring.open(envelope, sealedPlace(model, id, column))) : null
  const values: Record<string, unknown> = {}
  const [settings, secrets] = [object(row.settings), object(row.secrets)]
  for (const { name, place, time } of model.members.values()) {
    switch (place.in) {
      case 'column':
        values[name] = time ? moment(row[place.column]) : (row[place.column] ?? null)
        break
      case 'sealed':
        values[name] = open(row[place.column], place.column)
        break
      case 'settings':
        values[name] = settings[name] ?? null
        break
      case 'secrets':
        values[name] = open(secrets[name], `secrets.${name}`)
        break
      case 'link':
        values[name] = row[`link:${name}`] ?? []
        break
      default:
        place satisfies never
    }
  }
  return values
}

const object = (value: unknown): JsonObject => (isObject(value) ? value : {})

/** The database writes a moment as its session has it. */
const moment = (stored: unknown) => (typeof stored === 'string' ? new Date(stored).toISOString() : null)

const opened = (plaintext: string): unknown => JSON.parse(plaintext)

/** The identity of a row to be inserted: its key when that is a UUID, and its UUID when it has one beside. */
export type Identity = { pk?: string | number; uuid?: string }

/** @param pk given by an identifier, or drawn from the table's sequence already */
export function newIdentity(model: Model, pk: string | number | undefined): Identity {
  if (model.key === 'uuid') return { pk: typeof pk === 'string' ? pk : uuid7() }
  return { ...(typeof pk === 'number' && { pk }), ...(model.uuid && { uuid: randomUUID() }) }
}

/** All columns of a new row. */
export function packNew(model: Model, identity: Identity, values: Values, keyring: Keyring): Packed {
  const row = identity.uuid ?? String(identity.pk ?? '')
  const packed = pack(model, [...model.members.values()], row, values, {}, keyring)
  const columns = new Map(packed.columns)
  const seal = (plaintext: string, column: string) => keyring.seal(plaintext, sealedPlace(model, row, column))
  for (const [column, value] of Object.entries({ ...identity, ...model.fixed, ...model.stamp?.({ values, seal }) }))
    columns.set(column, { value, json: false })
  return { columns, links: packed.links }
}

/** The columns that changed members touch; what else `settings` and `secrets` hold stays as it is. */
export function packChanged(
  model: Model,
  row: Row,
  changed: readonly string[],
  values: Values,
  keyring: Keyring,
): Packed {
  const members = [...model.members.values()].filter(({ name }) => changed.includes(name))
  return pack(model, members, rowId(model, row), values, row, keyring)
}

function pack(
  model: Model,
  members: readonly Member[],
  row: string,
  values: Values,
  before: Readonly<Record<string, unknown>>,
  keyring: Keyring,
): Packed {
  const columns = new Map<string, { value: unknown; json: boolean }>()
  const links = new Map<string, readonly unknown[]>()
  const settings = { ...object(before.settings) }
  const secrets = { ...object(before.secrets) }
  const seal = (value: unknown, column: string) =>
    value === null || value === undefined ? null : keyring.seal(JSON.stringify(value), sealedPlace(model, row, column))
  for (const { name, place } of members) {
    const value = values[name]
    switch (place.in) {
      case 'column':
        columns.set(place.column, { value, json: place.json })
        break
      case 'sealed':
        columns.set(place.column, { value: seal(value, place.column), json: false })
        break
      case 'settings':
        settings[name] = value
        columns.set('settings', { value: settings, json: true })
        break
      case 'secrets':
        secrets[name] = seal(value, `secrets.${name}`)
        columns.set('secrets', { value: secrets, json: true })
        break
      case 'link':
        links.set(name, Array.isArray(value) ? value : [])
        break
      default:
        place satisfies never
    }
  }
  return { columns, links }
}

/** The references inside `settings` of the named members, as rows of the mirror table. */
export function mirrorRows(model: Model, values: Values, members: Iterable<string> = model.members.keys()): Values[] {
  const { mirror } = model
  if (mirror === undefined) return []
  return [...members].flatMap((name) => {
    const member = model.members.get(name)
    if (member?.place.in !== 'settings' || member.reference === undefined) return []
    const column = mirror.columns[member.reference.family]
    if (column === undefined)
      throw new Error(
        `${model.name}: ${name} refers to ${member.reference.family}, which ${mirror.table} has no column for`,
      )
    return keysOf(values[name]).map((key, position) => ({ member: name, position, [column]: key }))
  })
}

/** One key, several or none, as a list. */
export const keysOf = (value: unknown): (string | number)[] =>
  (Array.isArray(value) ? value : [value]).filter((key) => typeof key === 'string' || typeof key === 'number')
