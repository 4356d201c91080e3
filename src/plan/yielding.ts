import type { EngineReader } from '../db/engine-tx.ts'
import type { Registry } from '../models/registry.ts'
import { readLabels } from './claims.ts'
import type { Effect } from './effect.ts'
import { ListEdit } from './list-edit.ts'
import type { Resolver } from './resolve.ts'
import type { Step } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'

/**
 * Of an entry that would put one row in the place of another in a field that yields (`ModelDeclaration.yields`): the entry
 * that keeps both, with one of them in the list. So the order in which the two are sent does not matter.
 *
 * @param step as asked @param effect what it would do by itself
 * @returns undefined for an entry that does as it says
 */
export async function yielding(
  reader: EngineReader,
  registry: Registry,
  resolver: Resolver,
  step: Step,
  { row, sent, isForeign, step: { model } }: Effect,
): Promise<Step | undefined> {
  const { field: name = '', to = '', target = '' } = model.yields ?? {}
  const field = model.fields.get(name)
  const { table = '', only } = registry.targets.get(target) ?? {}
  if (field?.reference === undefined || only === undefined || row === undefined || isForeign) return undefined
  const [key, [had]] = [sent.get(name), storedKeys(field, row)]
  if (key === undefined || key === null || had === undefined || had === key) return undefined
  const tag = step.attrs.get(name)
  const entries = [resolver.entryOf(tag, key, field.reference), resolver.written(table, had)]
  if (entries.some((entry) => entry?.isGone)) return undefined
  const rows = await readLabels(reader, registry, table, { keys: keysOf([key, had]) })
  const [isSort, wasSort] = [key, had].map((pk, index) => {
    const { discriminator } = rows.find((each) => each.pk === pk)?.model ?? {}
    const value = entries[index]?.value(only.column) ?? discriminator?.[only.column]
    return only.values.some((each) => each === value)
  })
  if (isSort === wasSort) return undefined
  const attrs = new Map(step.attrs)
  if (isSort) attrs.delete(name)
  const items = withItem(attrs.get(to) ?? new ListEdit([], []), isSort ? tag : had)
  return items && { ...step, attrs: attrs.set(to, items) }
}

/** @param list as sent, or an edit; what only the database evaluates stays as it is */
function withItem(list: unknown, item: unknown): ListEdit | unknown[] | undefined {
  if (Array.isArray(list)) return list.includes(item) ? list : [...list, item]
  if (!(list instanceof ListEdit) || !Array.isArray(list.add)) return undefined
  return new ListEdit([...list.add, item], list.remove)
}
