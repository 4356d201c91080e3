import { z } from 'zod'
import { type Change, change } from '../apply/changes.ts'

/**
 * The changes of a run as its row holds them. An element that cannot be read, because SQL or another version wrote it, is left
 * out: the rest of the run is shown.
 */

const facts = change.omit({ fields: true })
const { valueType: field } = change.shape.fields

/** Whether an element can be read, in SQL: as `facts` and an object of fields. @param value the element */
export const isReadable = (value: string): string =>
  `(jsonb_typeof(${value}->'model') IS NOT DISTINCT FROM 'string' AND jsonb_typeof(${value}->'key') IS NOT DISTINCT FROM 'object'
    AND jsonb_typeof(${value}->'fields') IS NOT DISTINCT FROM 'object'
    AND coalesce(${value}->>'action' IN (${change.shape.action.options.map((each) => `'${each}'`).join(', ')}), false))`

/** @property isWhole false: some part of it could not be read */
export type StoredChanges = { readonly changes: Change[]; readonly isWhole: boolean }

export function readStoredChanges(stored: unknown): StoredChanges {
  if (stored === null || stored === undefined) return { changes: [], isWhole: true }
  if (!Array.isArray(stored)) return { changes: [], isWhole: false }
  const whole = z.array(change).safeParse(stored)
  if (whole.success) return { changes: whole.data, isWhole: true }
  return { changes: stored.flatMap((each: unknown) => readOne(each) ?? []), isWhole: false }
}

const loose = facts.extend({ fields: z.record(z.string(), z.unknown()) })

function readOne(stored: unknown): Change | undefined {
  const found = loose.safeParse(stored).data
  if (found === undefined) return undefined
  const fields = Object.entries(found.fields).flatMap(([name, value]) => {
    const { success, data } = field.safeParse(value)
    return success ? [[name, data] as const] : []
  })
  return { ...found, fields: Object.fromEntries(fields) }
}
