import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query, unprepared } from '../db/raw.ts'
import { isObject } from '../json-object.ts'
import type { ReferenceTarget } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, ownersWith } from '../permissions.ts'
import { nameColumns } from '../plan/references.ts'
import { ownRows, quoted } from '../plan/statements.ts'
import { keysOf } from '../plan/storage.ts'

/** Fields of an object, or their changes: values, or from -> to. */
type Shown = { readonly model: string; readonly fields: Readonly<Record<string, unknown>> | null }

/** The most rows of a table that are named. */
const mostNamed = 1_000
const row = z.object({ place: z.string(), name: z.string() })
const placeOf = ({ table }: ReferenceTarget, key: unknown) => `${table} ${key}`

/**
 * Reads the names of the rows to which fields refer, as far as this caller may see them: one statement, and none without keys.
 *
 * @returns a function that puts them in place of the keys
 */
export async function readKeyNames(db: Db, { targets, byName }: Registry, actor: Actor, all: readonly Shown[]) {
  const targetOf = (model: string, field: string) =>
    targets.get(byName(model)?.fields.get(field)?.reference?.target ?? '')
  const keys = new Map<ReferenceTarget, Set<string | number>>()
  for (const { model, fields } of all)
    for (const [field, value] of Object.entries(fields ?? {})) {
      const target = targetOf(model, field)
      if (target === undefined) continue
      const isKey = target.key === 'uuid' ? z.guid() : z.int32()
      const found = sidesOf(value)
        .flatMap(keysOf)
        .filter((key) => isKey.safeParse(key).success)
      if (found.length > 0) keys.set(target, new Set([...(keys.get(target) ?? []), ...found]))
    }
  const values: unknown[] = []
  const parts = [...keys].flatMap(([target, found]) => partsOf(target, [...found].slice(0, mostNamed), actor, values))
  const rows = parts.length === 0 ? [] : await query(db, row, unprepared({ text: parts.join(' UNION ALL '), values }))
  const names = new Map(rows.map(({ place, name }) => [place, name]))
  return <Fields extends Shown['fields']>({ model, fields }: { model: string; fields: Fields }): Fields => {
    const named = Object.entries(fields ?? {}).map(([field, value]) => {
      const target = targetOf(model, field)
      if (target === undefined) return [field, value]
      const side = (of: unknown): unknown => (Array.isArray(of) ? of.map(side) : (names.get(placeOf(target, of)) ?? of))
      return [field, isObject(value) ? { ...value, from: side(value.from), to: side(value.to) } : side(value)]
    })
    return fields && Object.fromEntries(named)
  }
}

const sidesOf = (value: unknown) => (isObject(value) ? [value.from, value.to] : [value])

/** A statement for each model of the rows that the caller sees, all of them or those of its owners. Mere configuration is free. */
const partsOf = (target: ReferenceTarget, keys: readonly unknown[], actor: Actor, values: unknown[]): string[] =>
  target.models.flatMap((model) => {
    const { table, key, resource, offersNames } = model
    const owners = offersNames ? null : ownersWith(actor, `view_${resource}`)
    if (owners?.length === 0) return []
    const names = nameColumns(target).map(({ column }) => quoted(column))
    const where = [
      `pk = ANY ($${values.push(keys)}::${key}[])`,
      ...ownRows(model),
      ...(owners === null ? [] : [`owner = ANY ($${values.push(owners)}::text[])`]),
    ]
    return `SELECT '${table} ' || pk AS place, coalesce(${names.join(', ')})::text AS name FROM ${quoted(table)} t
      WHERE ${where.join(' AND ')}`
  })
