import { isDeepStrictEqual } from 'node:util'
import type { Field } from '../models/define.ts'
import { isSameSet } from '../sides.ts'

/** Whether two values of a field are one: sets in any order, all other values by equality. */
export function isSame(field: Pick<Field, 'isSet'> | undefined, stored: unknown, sent: unknown): boolean {
  if (isDeepStrictEqual(stored, sent) || isDeepStrictEqual(stored, asStored(sent))) return true
  return field?.isSet === true && isSameSet(itemsOf(stored), itemsOf(sent))
}

const itemsOf = (value: unknown): unknown =>
  typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value

/** A sent value as JSON stores it: JSON has no minus zero. */
function asStored(sent: unknown): unknown {
  if (typeof sent === 'number') return sent + 0
  return typeof sent === 'object' && sent !== null ? JSON.parse(JSON.stringify(sent)) : sent
}
