import type { Change } from '../apply/changes.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { isSame } from '../plan/same-value.ts'

/** The difference between two documents, or between two states of some objects. */

/** A value of a field. @property shown left out: it is a secret, of which only a change is shown */
export type Value = { readonly raw: unknown; readonly shown?: unknown }
export type Values = Readonly<Record<string, Value>>

/** The objects of one side, each under an id that it has on both. */
export type Side = ReadonlyMap<string, Pick<Change, 'model' | 'key'> & { readonly values: Values }>

/** Compares two sides. An object that is only in `to` is created. Those that are deleted come first. */
export function compare(from: Side, to: Side, registry: Registry): Change[] {
  const all = new Map([...from].filter(([id]) => !to.has(id)).concat([...to]))
  return [...all].flatMap(([id, { model, key }]): Change[] => {
    const [before, after] = [from.get(id), to.get(id)]
    const fields = fieldsBetween(before?.values ?? {}, after?.values ?? {}, registry.byName(model))
    const action = before === undefined ? 'create' : after === undefined ? 'delete' : 'update'
    return action === 'update' && Object.keys(fields).length === 0 ? [] : [{ model, key, action, fields }]
  })
}

export function fieldsBetween(from: Values, to: Values, model?: Model): Change['fields'] {
  const fields: Change['fields'] = {}
  for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const sides = [from[name], to[name]]
    if (isSame(model?.fields.get(name), sides[0]?.raw, sides[1]?.raw)) continue
    const isSecret = sides.some((side) => side !== undefined && !('shown' in side))
    fields[name] = isSecret ? 'changed' : { from: sides[0]?.shown ?? null, to: sides[1]?.shown ?? null }
  }
  return fields
}
