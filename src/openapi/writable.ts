import { z } from 'zod'
import { wasMeaning } from '../document/form.ts'
import { examplesOf } from '../models/declared.ts'
import type { Field, Model } from '../models/define.ts'
import { ownerLabel } from '../models/fields.ts'
import type { ProviderModel } from '../models/provider.ts'
import type { Registry } from '../models/registry.ts'
import { discriminatorOf, schemaName } from '../views/schema-names.ts'
import { noteOf, sentForms } from './sent-forms.ts'

/**
 * The bodies that the engine validates, as schemas for the description, made from the engine's schema of each field. The engine
 * checks field by field, so that it reports every error at once; rules that span fields are not part of a schema.
 */

type Use = 'create' | 'change'

/** @param use a new row has required fields, a change has none */
export function writable(registry: Registry, model: string, use: Use): z.ZodType {
  const found = registry.byName(model)
  if (found === undefined) throw new Error(`There is no model ${model}.`)
  const examples = [...found.fields.values()].flatMap(({ name, schema }) => {
    const [example] = examplesOf(schema)
    return example === undefined ? [] : [[name, example] as const]
  })
  return fieldsOf(registry, found, use).meta({
    id: schemaName(`${use}_${found.resource}`),
    ...(examples.length > 0 && { examples: [Object.fromEntries(examples)] }),
  })
}

/** The body of a submission: one variant for each provider kind. The same object is returned each time, as it has a name. */
export const submission = (registry: Registry): z.ZodType => submissions.getOrInsertComputed(registry, submissionOf)

const submissions = new WeakMap<Registry, z.ZodType>()

function submissionOf(registry: Registry): z.ZodType {
  const application = registry.byName('service_core.application')
  if (application === undefined) throw new Error('There is no application.')
  const was = z.string().optional().meta({ description: wasMeaning })
  const app = fieldsOf(registry, application, 'create').extend({ was }).meta({ id: 'ApplicationFields' })
  const owner = ownerLabel().optional().meta({ description: 'As `Gatewright-Owner`.' })
  const kinds = usualFirst(registry)
  const variants = kinds.map((kind) => {
    const provider = fieldsOf(registry, kind, 'create')
      .extend({ was })
      .meta({ id: schemaName(`${kind.provider.kind}_provider`) })
    return z
      .strictObject({ app, provider_model: z.literal(kind.name), provider, owner })
      .meta({ id: schemaName(`${kind.provider.kind}_submission`), description: kind.provider.verboseName })
  })
  const named = kinds.map(({ name, provider: { kind } }) => [name, schemaName(`${kind}_submission`)] as const)
  return z.xor(variants).meta({ id: 'ApplicationSubmission', discriminator: discriminatorOf('provider_model', named) })
}

/** The provider kinds, the usual one first: generators and pages show the first. */
export const usualFirst = ({ kinds }: Registry): ProviderModel[] =>
  [...kinds.values()].sort((one, other) => Number(other.provider.usual ?? false) - Number(one.provider.usual ?? false))

export function fieldsOf(registry: Registry, model: Model, use: Use): z.ZodObject {
  const shape: Record<string, z.ZodType> = {}
  for (const field of model.fields.values()) shape[field.name] = schemaOf(registry, model, field, use)
  return z.strictObject(shape)
}

function schemaOf({ targets }: Registry, { owner }: Model, field: Field, use: Use): z.ZodType {
  const { name, required, initial, reference, secret, generate, overlap } = field
  const isNew = use === 'create'
  const target = targets.get(reference?.target ?? '')
  const schema = sentForms(field, target)
  const notes = [
    noteOf(field, target),
    reference?.only && `With the ${reference.only.column} ${reference.only.values.join(' or ')}.`,
    isNew && name === owner && 'A new one has the caller.',
    isNew && name !== owner && initial !== undefined && `A new one has \`${JSON.stringify(initial)}\`.`,
    isNew && generate && 'Generated when it is left out.',
    generate && '`{"generate": true}` makes a new one at each apply.',
    overlap && 'With `"overlap": "hours=24"` beside it, or beside `"value"`, the one before stays valid for that time.',
    secret && '`{"create": ...}` sets it for a new row only.',
    secret && '`{"set": true}`, which answers show, keeps it.',
    secret && 'Stored encrypted.',
  ].filter((note) => typeof note === 'string')
  const note = { ...(notes.length > 0 && { description: notes.join(' ') }), ...(secret && { writeOnly: true }) }
  return (isNew && required && name !== owner ? schema : schema.optional()).meta(note)
}
