import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { unprepared } from '../db/raw.ts'
import { Find, KeyOf } from '../document/document.ts'
import { evaluate } from '../document/evaluate.ts'
import { Key, type Lookup, NotKnownYet, scopeOf } from '../document/scope.ts'
import { TagError } from '../document/tags.ts'
import type { ErrorCode } from '../error-codes.ts'
import type { ErrorList, FieldPath } from '../errors.ts'
import type { Registry } from '../models/registry.ts'
import { storable } from '../models/syntax.ts'
import { Deferred, isOpen } from './deferred.ts'
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
    } else if (value instanceof Deferred) {
      resolved.set(name, await knownValue(reader, registry, value, at))
    } else {
      resolved.set(name, isTag(value) ? await keyOf(reader, registry, value, at) : value)
    }
  }
  return resolved
}

const isTag = (value: unknown): value is KeyOf | Find => value instanceof KeyOf || value instanceof Find

/** Whether a value is, or holds, a tag. */
export const hasTag = (value: unknown): boolean =>
  isTag(value) || value instanceof Deferred || (Array.isArray(value) && value.some(isTag))

/** @returns undefined for a value with errors, which are added, and for one that is not known yet */
async function knownValue(reader: EngineReader, registry: Registry, deferred: Deferred, at: Context): Promise<unknown> {
  try {
    const value = await evaluateWith(reader, registry, deferred.value, at.keys)
    return isOpen(value) ? undefined : deferred.check(value, at.path, at.errors)
  } catch (error) {
    if (error instanceof TagError) at.errors.add(at.path, 'invalid_value', error.message)
    else if (!(error instanceof NotKnownYet)) throw error
    return undefined
  }
}

/**
 * Evaluates tags with what the database holds.
 *
 * @param asks whether it matters only if the value is true: no row is no error then
 * @throws {TagError} for what has no value
 * @throws {NotKnownYet} for what depends on a row that is not written yet
 */
export async function evaluateWith(
  reader: EngineReader,
  registry: Registry,
  value: unknown,
  keys: Keys,
  asks = false,
): Promise<unknown> {
  const evaluation = evaluate(value, { ...scopeOf(value), asks })
  let next = evaluation.next()
  while (next.done !== true) next = evaluation.next(await lookUp(reader, registry, next.value, keys))
  return next.value
}

async function lookUp(
  reader: EngineReader,
  registry: Registry,
  { tag, asks }: Lookup,
  keys: Keys,
): Promise<Key | null> {
  if (tag instanceof KeyOf) {
    const entry = keys.get(tag.id)
    if (entry !== undefined) return new Key(entry.key === pending ? undefined : entry.key, tag)
    if (asks) return null
    throw new TagError(undefined, skipped(tag))
  }
  const identifiers = Object.entries(tag.identifiers).map(([name, value]) => {
    if (value instanceof Key && value.key === undefined) throw new NotKnownYet()
    return [name, value instanceof Key ? value.key : value] as const
  })
  const find = new Find(tag.model, Object.fromEntries(identifiers))
  const found = await findRow(reader, registry, find)
  if ('key' in found) return new Key(found.key, tag)
  if (asks && found.isNone) return null
  throw new TagError(undefined, found.error)
}

const skipped = ({ id }: KeyOf) => `!KeyOf ${id} names an entry that is skipped: it has no key.`

async function keyOf(
  reader: EngineReader,
  registry: Registry,
  tag: KeyOf | Find,
  { keys, path, errors }: Context,
): Promise<unknown> {
  if (tag instanceof KeyOf) {
    const entry = keys.get(tag.id)
    if (entry === undefined) errors.add(path, 'unknown_entry', skipped(tag))
    return entry?.key
  }
  const found = await findRow(reader, registry, tag)
  if ('key' in found) return found.key
  errors.add(path, found.code, found.error)
  return undefined
}

type Found =
  | { readonly key: string | number }
  | { readonly error: string; readonly code: ErrorCode; readonly isNone: boolean }

async function findRow(reader: EngineReader, registry: Registry, tag: Find): Promise<Found> {
  const model = registry.byName(tag.model)
  if (model === undefined) throw new Error(`compile let an unknown model through: ${tag.model}`)
  const refuse = (code: ErrorCode, why: string): Found => ({ error: `!Find ${tag.model}${why}`, code, isNone: false })
  const named = Object.entries(tag.identifiers)
  const known = named.every(([name]) => name === 'pk' || model.fields.get(name)?.storage.in === 'column')
  if (!known || named.length === 0) return refuse('unknown_field', `: each field must be one of the model's own.`)
  for (const [name, value] of named) {
    const error = storable(String(value))
    if (error !== undefined) return refuse('invalid_text', `: ${name}: ${error}`)
  }
  // Compared as text: a value of the wrong type finds no row, and does not fail the transaction.
  const where = named.map(([name], index) => `t."${columnOf(model, name)}"::text = $${index + 1}`)
  const discriminator = Object.entries(model.discriminator).map(([column, value]) => ` AND t."${column}" = '${value}'`)
  const values = named.map(([, value]) => String(value))
  const text = `SELECT pk FROM "${model.table}" t WHERE ${where.join(' AND ')}${discriminator.join('')} LIMIT 2`
  const [row, another] = await reader.query(keyRow, unprepared({ text, values }))
  const by = ` ${JSON.stringify(tag.identifiers)}`
  if (row === undefined) return { error: `!Find ${tag.model}${by} finds nothing.`, code: 'no_such_row', isNone: true }
  return another === undefined ? { key: row.pk } : refuse('ambiguous', `${by} finds more than one row.`)
}
