import type { Entry } from '../document/document.ts'
import type { ErrorList, FieldPath } from '../errors.ts'
import type { Model } from '../models/define.ts'

/** @returns the checked old name; undefined without one, and for one with errors, which are added */
export function wasOf(entry: Entry, model: Model, path: FieldPath, errors: ErrorList): string | undefined {
  const { was, state, identifiers } = entry
  if (was === undefined) return undefined
  const at = [...path, 'was']
  const [name = '', ...others] = Object.keys(identifiers)
  const field = model.fields.get(name)
  if (state !== 'present') errors.add(at, `An entry that is ${state} renames nothing.`)
  else if (others.length > 0 || field?.storage.in !== 'column' || typeof identifiers[name] !== 'string')
    errors.add(at, 'Stands beside one identifier, the name.')
  else {
    const parsed = field.schema.safeParse(was)
    for (const { message } of parsed.error?.issues ?? []) errors.add(at, message)
    if (typeof parsed.data === 'string') return parsed.data
  }
  return undefined
}
