import type { Change } from '../apply/changes.ts'
import type { Field } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { isSame } from '../plan/same-value.ts'
import { markerText } from '../sides.ts'
import type { HistoryEntry } from './history.ts'

/** The difference between two states of an application and its providers, by the changes between them. */

export type Difference = {
  /** The changes of each object that differs. */
  readonly changes: readonly Change[]
  /** The number of changes whose fields are deleted: objects may differ in more than is known. */
  readonly unknown: number
}

type Fields = Change['fields']
type Found = { -readonly [Name in keyof Change]: Change[Name] } & { wasCreated: boolean }

/** @param entries all changes after the first state up to the second, the oldest first */
export function differenceOf(entries: readonly HistoryEntry[], registry: Registry): Difference {
  const found = new Map<string, Found>()
  for (const { model, key, name, action, fields } of entries) {
    const id = JSON.stringify([model, key])
    const before = found.get(id)
    const wasCreated = before?.wasCreated ?? action === 'create'
    const isGone = action === 'delete'
    found.set(id, {
      model,
      key: { name },
      wasCreated,
      action: isGone ? 'delete' : wasCreated ? 'create' : 'update',
      fields: isGone ? {} : joined(before?.fields ?? {}, fields ?? {}),
    })
  }
  const changes = [...found.values()].flatMap(({ wasCreated, ...change }): Change[] => {
    // The object exists in neither state.
    if (wasCreated && change.action === 'delete') return []
    const { fields: known } = registry.byName(change.model) ?? {}
    const fields = Object.fromEntries(
      Object.entries(change.fields).filter(([name, each]) => isDifferent(each, known?.get(name))),
    )
    return change.action === 'update' && Object.keys(fields).length === 0 ? [] : [{ ...change, fields }]
  })
  return { changes, unknown: entries.filter(({ action, fields }) => fields === null && action !== 'delete').length }
}

/** The difference the other way round: from the second state to the first. */
export const reversed = ({ changes, unknown }: Difference): Difference => ({
  unknown,
  changes: changes.map(({ action, fields, ...change }) => ({
    ...change,
    action: action === 'create' ? 'delete' : action === 'delete' ? 'create' : action,
    fields:
      action === 'create' ? {} : Object.fromEntries(Object.entries(fields).map(([name, each]) => [name, turned(each)])),
  })),
})

const turned = (each: Fields[string]): Fields[string] =>
  typeof each === 'string' ? each : { from: each.to, to: each.from }

/** Joins two changes of fields: the first `from`, and the last `to`. */
function joined(before: Fields, after: Fields): Fields {
  const all: Fields = { ...before }
  for (const [name, next] of Object.entries(after)) {
    const last = all[name]
    if (typeof next === 'string') all[name] = last === 'changed' ? last : next
    else all[name] = typeof last === 'object' ? { from: last.from, to: next.to } : next
  }
  return all
}

/** Whether a field differs. A value that is not known, such as one that the service set, may be another one each time. */
const isDifferent = (each: Fields[string], field: Field | undefined): boolean =>
  typeof each === 'string'
    ? each === 'changed'
    : !isSame(field, each.from, each.to) || markerText(each.from) !== undefined
