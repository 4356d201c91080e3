import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Step } from './compile.ts'
import { columnOf, quoted } from './statements.ts'

/**
 * `was` of an entry: the name that its row had before. The document may stay as it is afterwards: a row that has the new
 * name already is not renamed (docs/adr/0042-a-rename-is-idempotent.md).
 */

const named = z.object({ name: z.string() })

/**
 * @returns the step that finds the row by its old name and changes it, when only that one is there; the same step
 *   otherwise, marked when both are there
 */
export async function findByOldName(reader: EngineReader, step: Step): Promise<Step> {
  const { model, identifiers, attrs, was } = step
  const [[field, name] = []] = identifiers
  if (was === undefined || field === undefined || name === was) return step
  const column = quoted(columnOf(model, field))
  const rows = await reader.query(named, {
    text: `SELECT ${column} AS name FROM ${quoted(model.table)} WHERE ${column} = ANY($1::text[])`,
    values: [[name, was]],
  })
  const found = new Set(rows.map((row) => row.name))
  if (!found.has(was)) return step
  if (found.has(String(name))) return { ...step, rename: 'both' }
  return { ...step, identifiers: new Map([[field, was]]), attrs: new Map([...attrs, [field, name]]), rename: 'old' }
}
