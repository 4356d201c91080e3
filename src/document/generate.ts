import { z } from 'zod'
import { hidden } from '../hidden.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { overlap } from '../models/overlap.ts'

/** The forms in which a document may request a secret, beside the value itself (docs/apply.md). */

/** The value of a field for which the service generates a new one each time that the document is applied. */
export const generateForm = { generate: true } as const

export const isGenerate = (value: unknown): boolean =>
  isObject(value) && value.generate === true && Object.keys(value).length === 1

/** A secret in answers. It is no text, so that no program takes it for the secret; sent back, it keeps what is stored. */
export const keptForm = { set: true } as const

// Generators make an enum of texts of a boolean that is always true.
const always = z.literal(keptForm.set).meta({ type: 'boolean', const: undefined, enum: undefined, examples: [true] })

export const secretIsSet = z.strictObject({ set: always }).meta({
  id: 'SecretIsSet',
  description: 'A secret that is stored, and not shown. Sent back, it stays as it is.',
})

/** Whether a value keeps the stored secret. The version 0.2.0 showed a text in its place. */
export const isKept = (value: unknown): boolean => value === hidden || secretIsSet.safeParse(value).success

/** A secret with the time for which the one before it stays valid: `{"value": "...", "overlap": "hours=24"}`. */
export const isWithOverlap = (value: unknown): value is JsonObject => isObject(value) && Object.hasOwn(value, 'overlap')

export const isOverlap = (value: unknown): value is string => typeof value === 'string' && overlap(value) === undefined

/** A value on the caller's side: JSON has `{"env": "NAME"}` and `{"file": "path"}` where YAML has `!Env` and `!File`. */
export const isFromCaller = (value: unknown): value is { readonly env: string } | { readonly file: string } =>
  isObject(value) && /^(env|file)$/.test(Object.keys(value).join()) && typeof Object.values(value)[0] === 'string'

/** The variable of a value that is not there, in `create`: the secret of an existing object stays, and a new one is refused. */
export const isUnset = (value: unknown): value is { readonly env: string } => isFromCaller(value) && 'env' in value

/** A secret for a new object only: `{"create": "..."}` leaves the secret of an existing object as it is. */
export const isForNew = (value: unknown): value is { readonly create: unknown } =>
  isObject(value) && Object.keys(value).join() === 'create'
