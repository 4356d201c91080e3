import { existsSync, readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Member, Model } from '../models/define.ts'
import type { Registry } from '../models/index.ts'

/**
 * What may be written, as schemas to describe it by. They are made of those that the engine validates with; it asks
 * them one member at a time, so as to tell every fault at once, and knows rules that span members besides.
 */

type Use = 'create' | 'change'

/** @param use for a new row some members are required; a change takes any of them */
export function writable(registry: Registry, model: string, use: Use): z.ZodType {
  const found = registry.byName(model)
  if (found === undefined) throw new Error(`There is no model ${model}.`)
  return membersOf(registry, found, use).meta({ id: nameOf(`${use}_${found.resource}`) })
}

/** The body of a submission: one variant for each provider kind. */
export function submission(registry: Registry): z.ZodType {
  const application = registry.byName('service_core.application')
  if (application === undefined) throw new Error('There is no application.')
  const app = membersOf(registry, application, 'create').meta({ id: 'ApplicationMembers' })
  const variants = [...registry.kinds.values()].map((kind) => {
    const provider = membersOf(registry, kind, 'create').meta({ id: nameOf(`${kind.provider.kind}_provider`) })
    return z
      .strictObject({ app, provider_model: z.literal(kind.name), provider })
      .meta({ id: nameOf(`${kind.provider.kind}_submission`), title: kind.provider.verboseName })
  })
  return z.xor(variants)
}

/** The shipped submissions, by kind: they work on every installation. Where they were not shipped, there are none. */
export function submissionExamples({ kinds }: Registry): Readonly<Record<string, unknown>> {
  const shipped = [...kinds.values()].flatMap(({ provider: { kind, verboseName } }) => {
    const file = new URL(`../../examples/${kind}.json`, import.meta.url)
    return existsSync(file)
      ? [[kind, { summary: verboseName, value: JSON.parse(readFileSync(file, 'utf8')) }] as const]
      : []
  })
  return Object.fromEntries(shipped)
}

function membersOf(registry: Registry, model: Model, use: Use): z.ZodObject {
  const shape: Record<string, z.ZodType> = {}
  for (const member of model.members.values()) shape[member.name] = schemaOf(registry, model, member, use)
  for (const name of model.shown)
    shape[name] ??= z
      .unknown()
      .optional()
      .meta({ readOnly: true, description: 'Only shown: read over when it is sent.' })
  return z.strictObject(shape)
}

function schemaOf({ models }: Registry, { owner }: Model, member: Member, use: Use): z.ZodType {
  const { name, schema, required, initial, reference, secret, makeUp } = member
  const isNew = use === 'create'
  const [named, ...others] = models.filter(({ family }) => family === reference?.family)
  const noun = named !== undefined && others.length === 0 ? named.noun : reference?.family
  const notes = [
    reference && (reference.many ? `Keys, of a ${noun} each.` : `The key of a ${noun}.`),
    isNew && name === owner && 'Whoever asks, when it is left out.',
    isNew && makeUp && 'Made up when it is left out.',
    secret && 'Kept sealed, and not shown again.',
  ].filter((note) => typeof note === 'string')
  const note = { ...(notes.length > 0 && { description: notes.join(' ') }), ...(secret && { writeOnly: true }) }
  if (isNew && required && name !== owner) return schema.meta(note)
  if (isNew && initial !== undefined) return schema.default(initial).meta(note)
  return schema.optional().meta(note)
}

/** `WorkspaceSyncAProvider` of `workspace_sync_a_provider`. */
const nameOf = (words: string) =>
  words
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
