import type { Step } from './compile.ts'
import type { Resolver } from './resolve.ts'
import { columnOf } from './statements.ts'

/**
 * `was` of an entry: the name that its row had before. The document may stay as it is afterwards: a row that has the new
 * name already is not renamed (docs/adr/0042-a-rename-is-idempotent.md).
 */

/**
 * @returns the step that finds the row by its old name and changes it, when only that one is there; the same step
 *   otherwise, marked when both are there
 */
export async function findByOldName(resolver: Resolver, step: Step): Promise<Step> {
  const { model, identifiers, attrs, was } = step
  const [[field, name] = []] = identifiers
  if (was === undefined || field === undefined || name === was) return step
  const isThere = async (value: string) =>
    (await resolver.rowsBy(model, [{ columns: [columnOf(model, field)], values: [value] }])).length > 0
  if (!(await isThere(was))) return step
  if (await isThere(String(name))) return { ...step, rename: 'both' }
  return { ...step, identifiers: new Map([[field, was]]), attrs: new Map([...attrs, [field, name]]), rename: 'old' }
}
