import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import { generateForm, secretIsSet } from '../document/generate.ts'
import type { Field, ReferenceTarget } from '../models/define.ts'
import { textLimits } from '../models/fields.ts'

/**
 * The forms that the engine takes beside the stored one: names of rows, null for a default, a request for a new value, a secret
 * for a new row only, the secret that is stored. Items to add to a list and to remove stand in its description: generated clients
 * make a type of a union, in which a list is no list.
 */

export function sentForms(field: Field, target: ReferenceTarget | undefined): z.ZodType {
  const { schema, reference, initial, secret, generate, overlap } = field
  const hasNames = reference !== undefined && target?.models.some(({ names }) => names.length > 0) === true
  const stored = hasNames ? named(schema) : schema
  const overlapped = overlap ? { overlap: overlapTime.optional() } : {}
  const others = [
    ...(generate === undefined ? [] : [z.strictObject({ generate: z.literal(generateForm.generate), ...overlapped })]),
    ...(overlap ? [z.strictObject({ value: schema, overlap: overlapTime })] : []),
    // An object with any members allows these forms already: generators make no type of a union of both.
    ...(secret && !schema.safeParse({ create: {} }).success ? [z.strictObject({ create: schema }), secretIsSet] : []),
    ...(initial === undefined || schema.safeParse(null).success ? [] : [z.null()]),
  ]
  return others.length === 0 ? stored : z.union([stored, ...others])
}

const overlapTime = z
  .string()
  .meta({ description: 'For how long the one before stays valid, at most `days=90`.', examples: ['hours=24'] })

const name = z.string().min(1).max(textLimits.name)

/** A key or a name, or a list of them. Where the key is a text, both are one text: generated clients make a type of a union. */
function named(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodNullable) {
    const form = named(schema.def.innerType as z.ZodType)
    return form instanceof z.ZodUnion ? z.union([...form.options, z.null()]) : form.nullable()
  }
  if (schema instanceof z.ZodArray)
    return new z.ZodArray({ ...schema.def, element: named(schema.element as z.ZodType) })
  return schema.safeParse(randomUUID()).success ? name : z.union([schema, name])
}

/** @returns `The flow, by key or slug.` */
export function noteOf({ reference }: Field, target: ReferenceTarget | undefined): string | undefined {
  const [model, ...others] = target?.models ?? []
  if (reference === undefined || model === undefined) return undefined
  const displayName = others.length === 0 ? model.displayName : reference.target
  const ways = ['key', ...model.names]
  const by = ways.length === 1 ? 'key' : `${ways.slice(0, -1).join(', ')} or ${ways.at(-1)}`
  return reference.many
    ? `The ${displayName}s, each by ${by}: all of them, or \`{"add": [...], "remove": [...]}\`.`
    : `The ${displayName}, by ${by}.`
}
