import { z } from 'zod'

/** The notes of a plan, beside its changes. They are no part of the plan: none of them is applied. */

const key = z.record(z.string(), z.unknown()).meta({ description: 'Its identifiers.', examples: [{ slug: 'shop' }] })
const model = z.string().meta({ examples: ['service_core.application'] })

export const unnamedObject = z.object({ model, key, owner: z.string().meta({ examples: ['team-a'] }) })

export const unmanagedFields = z.object({
  model,
  key,
  fields: z.array(z.string()).meta({ examples: [['meta_description']] }),
})

export type Unmanaged = z.output<typeof unmanagedFields>

export const notes = z.object({
  unnamed: z.array(unnamedObject).nullable().default(null),
  unmanaged: z.array(unmanagedFields).default([]),
})

export type Notes = z.output<typeof notes>

/** @returns none for a run without notes, and for notes of a version with another form */
export const notesOf = (stored: unknown): Notes => notes.safeParse(stored ?? {}).data ?? notes.parse({})
