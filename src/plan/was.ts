import type { Entry } from '../document/document.ts'
import type { ErrorSink, FieldPath } from '../errors.ts'
import { codeOfIssue } from '../messages.ts'
import type { Model } from '../models/define.ts'

/** @returns the checked old name; undefined without one, and for one with errors, which are added */
export function wasOf(entry: Entry, model: Model, path: FieldPath, errors: ErrorSink): string | undefined {
  const { was, state, identifiers } = entry
  if (was === undefined) return undefined
  const at = [...path, 'was']
  const [name = '', ...others] = Object.keys(identifiers)
  const field = model.fields.get(name)
  if (state !== 'present') errors.add(at, 'invalid_rename', `An entry that is ${state} renames nothing.`)
  else if (others.length > 0 || field?.storage.in !== 'column' || typeof identifiers[name] !== 'string')
    errors.add(at, 'invalid_rename', 'Stands beside one identifier, the name.')
  else {
    const parsed = field.schema.safeParse(was)
    for (const issue of parsed.error?.issues ?? []) errors.add(at, codeOfIssue(issue, was), issue.message)
    if (typeof parsed.data === 'string') return parsed.data
  }
  return undefined
}
