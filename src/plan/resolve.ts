import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { unprepared } from '../db/raw.ts'
import { Find, KeyOf } from '../document/document.ts'
import type { ErrorList, FieldPath } from '../errors.ts'
import type { Registry } from '../models/registry.ts'
import { storable } from '../models/syntax.ts'
import { columnOf } from './statements.ts'

/** The key of a new row while the API checks a document: only the apply knows it. */
export const pending = Symbol('pending')

/** What `!KeyOf` of an entry refers to, by the entry's id. */
export type Keys = Map<string, EntryKey>

export type EntryKey = {
  readonly key: string | number | typeof pending
  /** This document creates the row, so no other row refers to it yet. */
  readonly isNew: boolean
  /** The row's value of a column, as it will be. */
  readonly columnValue: (column: string) => unknown
}

const keyRow = z.object({ pk: z.union([z.string(), z.int()]) })

type Context = { keys: Keys; path: FieldPath; errors: ErrorList }

/** Replaces tags by keys, in a new map: the parsed document is not changed. */
export async function resolveTags(
  reader: EngineReader,
  registry: Registry,
  sent: ReadonlyMap<string, unknown>,
  context: Context,
): Promise<Map<string, unknown>> {
  const resolved = new Map<string, unknown>()
  for (const [name, value] of sent) {
    const at = { ...context, path: [...context.path, name] }
    if (Array.isArray(value) && hasTag(value)) {
      const keys: unknown[] = []
      for (const item of value) keys.push(isTag(item) ? await keyOf(reader, registry, item, at) : item)
      resolved.set(name, keys)
    } else {
      resolved.set(name, isTag(value) ? await keyOf(reader, registry, value, at) : value)
    }
  }
  return resolved
}

const isTag = (value: unknown): value is KeyOf | Find => value instanceof KeyOf || value instanceof Find

/** Whether a value is, or holds, a tag. */
export const hasTag = (value: unknown): boolean => isTag(value) || (Array.isArray(value) && value.some(isTag))

async function keyOf(
  reader: EngineReader,
  registry: Registry,
  tag: KeyOf | Find,
  { keys, path, errors }: Context,
): Promise<unknown> {
  if (tag instanceof KeyOf) return keys.get(tag.id)?.key
  const model = registry.byName(tag.model)
  if (model === undefined) throw new Error(`compile let an unknown model through: ${tag.model}`)
  const named = Object.entries(tag.identifiers)
  const known = named.every(([name]) => name === 'pk' || model.fields.get(name)?.storage.in === 'column')
  if (!known || named.length === 0) {
    errors.add(path, `!Find ${tag.model}: each field must be one of the model's own.`)
    return undefined
  }
  for (const [name, value] of named) {
    const error = storable(String(value))
    if (error === undefined) continue
    errors.add(path, `!Find ${tag.model}: ${name}: ${error}`)
    return undefined
  }
  // Compared as text: a value of the wrong type finds no row, and does not fail the transaction.
  const where = named.map(([name], index) => `t."${columnOf(model, name)}"::text = $${index + 1}`)
  const discriminator = Object.entries(model.discriminator).map(([column, value]) => ` AND t."${column}" = '${value}'`)
  const values = named.map(([, value]) => String(value))
  const text = `SELECT pk FROM "${model.table}" t WHERE ${where.join(' AND ')}${discriminator.join('')} LIMIT 2`
  const rows = await reader.query(keyRow, unprepared({ text, values }))
  const [row, another] = rows
  if (row === undefined) errors.add(path, `!Find ${tag.model} ${JSON.stringify(tag.identifiers)} finds nothing.`)
  if (another !== undefined)
    errors.add(path, `!Find ${tag.model} ${JSON.stringify(tag.identifiers)} finds more than one row.`)
  return another === undefined ? row?.pk : undefined
}
