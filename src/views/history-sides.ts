import type { Change } from '../apply/changes.ts'
import { markerText } from '../sides.ts'
import type { Side, Value } from './comparison.ts'
import type { HistoryEntry } from './history.ts'

/**
 * Two states of an application and its providers, as far as the changes between them say.
 *
 * @param entries all changes after the first state up to the second, the oldest first
 */
export function sidesOf(entries: readonly HistoryEntry[]): { readonly before: Side; readonly after: Side } {
  const [before, after] = [new Map<string, Found>(), new Map<string, Found>()]
  const known = new Set<string>()
  for (const { model, key, name, action, fields } of entries) {
    const id = JSON.stringify([model, key])
    const found = { model, key: { name } }
    if (!known.has(id) && action !== 'create') before.set(id, { ...found, values: {} })
    known.add(id)
    const [first, last] = [before.get(id), after.get(id)?.values ?? {}]
    if (action === 'delete') {
      after.delete(id)
      // Most of what it was is not known.
      if (first !== undefined) first.values = {}
      continue
    }
    after.set(id, { ...found, values: last })
    for (const [name, change] of Object.entries(fields ?? {})) {
      if (change === 'unchanged') continue
      if (first !== undefined) first.values[name] ??= sideOf(change, 'from')
      last[name] = sideOf(change, 'to')
    }
  }
  return { before, after }
}

type Found = Pick<Change, 'model' | 'key'> & { values: Record<string, Value> }

/** A value that is not known, such as one that the service set, may be another one each time. */
function sideOf(change: Change['fields'][string], side: 'from' | 'to'): Value {
  if (typeof change === 'string') return { raw: Symbol(change) }
  const value = change[side]
  return { raw: markerText(value) === undefined ? value : Symbol('not known'), shown: value }
}
