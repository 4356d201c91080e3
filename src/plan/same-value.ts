import { isDeepStrictEqual } from 'node:util'
import type { Field } from '../models/define.ts'

/** Whether two values of a field are one. Links are compared as sets, all other values by equality. */
export function isSame({ storage }: Field, stored: unknown, sent: unknown): boolean {
  if (storage.in === 'link' && Array.isArray(stored) && Array.isArray(sent)) {
    const keys = new Set<unknown>(sent)
    return stored.length === sent.length && stored.every((key) => keys.has(key))
  }
  return isDeepStrictEqual(stored, sent) || isDeepStrictEqual(stored, asStored(sent))
}

/** A sent value as JSON stores it: JSON has no minus zero. */
function asStored(sent: unknown): unknown {
  if (typeof sent === 'number') return sent + 0
  return typeof sent === 'object' && sent !== null ? JSON.parse(JSON.stringify(sent)) : sent
}
