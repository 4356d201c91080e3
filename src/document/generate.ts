import { isObject, type JsonObject } from '../json-object.ts'
import { overlap } from '../models/overlap.ts'

/** The forms in which a secret may be asked for, beside the value itself (docs/apply.md). */

/** The value of a field for which the service shall generate a new one, each time that the document is applied. */
export const generateForm = { generate: true } as const

export const isGenerate = (value: unknown): boolean =>
  isObject(value) && value.generate === true && Object.keys(value).length === 1

/** A secret with the time for which the one before it stays valid: `{"value": "...", "overlap": "hours=24"}`. */
export const isWithOverlap = (value: unknown): value is JsonObject => isObject(value) && Object.hasOwn(value, 'overlap')

export const isOverlap = (value: unknown): value is string => typeof value === 'string' && overlap(value) === undefined

/** A value of the caller's side: `{"env": "NAME"}` and `{"file": "path"}` are to JSON what `!Env` and `!File` are to YAML. */
export const isFromCaller = (value: unknown): value is { readonly env: string } | { readonly file: string } =>
  isObject(value) && /^(env|file)$/.test(Object.keys(value).join()) && typeof Object.values(value)[0] === 'string'

/** A secret for a new object only: `{"create": "..."}` leaves that of an object that is there as it is. */
export const isForNew = (value: unknown): value is { readonly create: unknown } =>
  isObject(value) && Object.keys(value).join() === 'create'
