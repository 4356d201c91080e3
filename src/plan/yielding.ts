import type { Effect } from './effect.ts'
import { ListEdit } from './list-edit.ts'
import { byKey } from './look.ts'
import type { Step } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

/**
 * Changes an entry that would replace one row by another in a field that yields (`ModelDeclaration.yields`): both are kept, one
 * of them in the list. So the order in which the two are sent does not matter. A row that moves into the field leaves the list.
 *
 * @param step the requested step @param effect its effect without this
 * @param replaces whether the row replaces the other in any order
 * @returns undefined for an entry that needs no change
 */
export function yielding(
  world: World,
  step: Step,
  { row, sent, isForeign, step: { model } }: Effect,
  replaces: boolean,
): Step | undefined {
  const { field: name = '', to = '', target = '' } = model.yields ?? {}
  const [field, list] = [model.fields.get(name), model.fields.get(to)]
  const { table = '', only, models: [of] = [] } = world.registry.targets.get(target) ?? {}
  if (!field?.reference || !list || !only || !of || !row || isForeign) return undefined
  const [key, [had]] = [sent.get(name), storedKeys(field, row)]
  const isListed = !step.attrs.has(to) && keysOf(key).some((each) => storedKeys(list, row).includes(each))
  const isReplacing = had !== undefined && had !== key && !replaces
  if (key === undefined || key === null || !(isReplacing || isListed)) return undefined
  const tag = step.attrs.get(name)
  if (keysOf([key, had]).some((each) => world.isGone(table, each))) return undefined
  const [isSort, wasSort] = [key, had].map((pk) => {
    const [found] = keysOf(pk).map((each) => world.find(byKey(of, each))[0]?.[only.column])
    return only.values.some((each) => each === found)
  })
  const yields = isSort === true && !replaces && (isListed || (isReplacing && !wasSort))
  const makesWay = isReplacing && wasSort === true && !isSort
  if (!yields && !makesWay && !isListed) return undefined
  const attrs = new Map(step.attrs)
  if (yields) attrs.delete(name)
  const added = yields ? [tag] : makesWay ? [had] : []
  const items = withItems(attrs.get(to) ?? new ListEdit([], isListed && !yields ? [tag] : []), added)
  return items && { ...step, attrs: attrs.set(to, items) }
}

/** @param list the sent list, or an edit; a list that only the database evaluates is kept */
function withItems(list: unknown, items: readonly unknown[]): ListEdit | unknown[] | undefined {
  if (Array.isArray(list)) return [...list, ...items.filter((each) => !list.includes(each))]
  if (!(list instanceof ListEdit) || !Array.isArray(list.add)) return undefined
  return new ListEdit([...list.add, ...items], list.remove)
}
