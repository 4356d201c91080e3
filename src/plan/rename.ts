import type { Entry } from '../document/document.ts'
import type { ErrorSink, FieldPath } from '../errors.ts'
import { codeOfIssue } from '../messages.ts'
import type { Model } from '../models/define.ts'
import { renameLooks } from './looks.ts'
import type { Step } from './step.ts'
import type { World } from './world.ts'

/**
 * `was` of an entry: the name that its row had before. The document may stay as it is afterwards: a row that has the new
 * name already is not renamed (docs/adr/0042-a-rename-is-idempotent.md).
 */

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

/**
 * @returns the step that finds the row by its old name and changes it, when only that one is there; the same step
 *   otherwise, marked when both are there
 */
export function findByOldName(world: World, step: Step): Step {
  const { identifiers, attrs, was } = step
  const [[field, name] = []] = identifiers
  const looks = renameLooks(step)
  if (was === undefined || field === undefined || looks.length === 0) return step
  const [old, present] = looks.map((look) => world.find(look).length > 0)
  if (!old) return step
  if (present) return { ...step, rename: 'both' }
  return { ...step, identifiers: new Map([[field, was]]), attrs: new Map([...attrs, [field, name]]), rename: 'old' }
}
