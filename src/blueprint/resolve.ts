import type { Queryable } from '../db/client.ts'
import { unprepared } from '../db/sql.ts'
import type { Faults, FieldPath } from '../errors.ts'
import type { Registry } from '../models/index.ts'
import { Find, KeyOf } from './document.ts'
import { columnOf } from './statements.ts'

/** A key that an entry will have once it is written: known while applying, pending while only looking. */
export const pending = Symbol('pending')

/** Keys by entry id. A new row's key stands nowhere else yet. */
export type Keys = Map<string, { readonly key: string | number | typeof pending; readonly isNew: boolean }>

type Context = { keys: Keys; path: FieldPath; faults: Faults }

/** Puts keys in the place of tags. The parsed document is left as it is: the result is a map of its own. */
export async function resolveTags(
  q: Queryable,
  registry: Registry,
  sent: ReadonlyMap<string, unknown>,
  context: Context,
): Promise<Map<string, unknown>> {
  const resolved = new Map<string, unknown>()
  for (const [name, value] of sent) {
    const at = { ...context, path: [...context.path, name] }
    if (Array.isArray(value) && hasTag(value)) {
      const keys: unknown[] = []
      for (const item of value) keys.push(isTag(item) ? await keyOf(q, registry, item, at) : item)
      resolved.set(name, keys)
    } else {
      resolved.set(name, isTag(value) ? await keyOf(q, registry, value, at) : value)
    }
  }
  return resolved
}

const isTag = (value: unknown): value is KeyOf | Find => value instanceof KeyOf || value instanceof Find

/** Whether a value is, or holds, a tag. */
export const hasTag = (value: unknown): boolean => isTag(value) || (Array.isArray(value) && value.some(isTag))

async function keyOf(
  q: Queryable,
  registry: Registry,
  tag: KeyOf | Find,
  { keys, path, faults }: Context,
): Promise<unknown> {
  if (tag instanceof KeyOf) return keys.get(tag.id)?.key
  const model = registry.byName(tag.model)
  if (model === undefined) throw new Error(`compile let an unknown model through: ${tag.model}`)
  const named = Object.entries(tag.identifiers)
  const known = named.every(([name]) => name === 'pk' || model.members.get(name)?.place.in === 'column')
  if (!known || named.length === 0) {
    faults.add(path, `!Find ${tag.model}: each member must be one of the model's own.`)
    return undefined
  }
  // A value of another type than the column's finds nothing instead of failing the transaction.
  const where = named.map(([name], index) => `t."${columnOf(model, name)}"::text = $${index + 1}`)
  const fixed = Object.entries(model.fixed).map(([column, value]) => ` AND t."${column}" = '${value}'`)
  const values = named.map(([, value]) => String(value))
  const rows = await q.query<{ pk: string | number }>(
    unprepared(`SELECT pk FROM "${model.table}" t WHERE ${where.join(' AND ')}${fixed.join('')} LIMIT 2`, values),
  )
  const [row, another] = rows
  if (row === undefined) faults.add(path, `!Find ${tag.model} ${JSON.stringify(tag.identifiers)} finds nothing.`)
  if (another !== undefined)
    faults.add(path, `!Find ${tag.model} ${JSON.stringify(tag.identifiers)} finds more than one row.`)
  return row?.pk
}
