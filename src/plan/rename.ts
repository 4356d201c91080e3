import { renameLooks } from './looks.ts'
import type { Step } from './step.ts'
import type { World } from './world.ts'

/**
 * `was` of an entry: the name that its row had before. The document may stay as it is afterwards: a row that has the new
 * name already is not renamed (docs/adr/0042-a-rename-is-idempotent.md).
 */

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
