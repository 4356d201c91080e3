import { z } from 'zod'
import { type Blueprint, documentLimits, KeyOf } from '../document/document.ts'
import { blueprintForm } from '../document/form.ts'
import { print } from '../document/yaml.ts'
import type { JsonObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { submissionExamples } from './submission-examples.ts'
import { submission } from './writable.ts'

/** A blueprint as a request body: the schema that validates it, with the names of the models. */

const engineering = {
  model: 'service_core.group',
  id: 'engineering',
  state: 'present',
  identifiers: { name: 'engineering' },
  attrs: { attributes: { cost_center: 4700 } },
} as const

const example: Blueprint = { version: 1, metadata: { name: 'a group' }, entries: [engineering] }

const platform = {
  model: 'service_core.group',
  state: 'created',
  identifiers: { name: 'platform' },
  attrs: { parent: new KeyOf('engineering') },
} as const

const blueprintBody = ({ models }: Registry): z.ZodType =>
  blueprintForm(z.enum(models.map(({ name }) => name))).meta({
    id: 'Blueprint',
    description:
      'Entries, applied in one transaction, in their order and each behind those that it refers to: all of them, or none. A reference is a key or a name. YAML can also refer to keys: `!KeyOf id` is the key of another entry, `!Find [model, {field: value}]` is the key of the one row with these values. The other tags are in docs/blueprints.md.',
    examples: [example],
  })

/**
 * A blueprint, or submissions, as JSON. The routes also take the list alone, which the schema leaves out: openapi-generator makes
 * Java and TypeScript that do not compile of a list beside an object.
 */
export const blueprintOrSubmissions = (registry: Registry): z.ZodType =>
  z
    .xor([
      blueprintBody(registry),
      z
        .strictObject({
          submissions: z
            .array(submission(registry))
            .min(1)
            .max(documentLimits.entries / 2),
        })
        .meta({
          id: 'ApplicationSubmissions',
          description:
            'All of them are applied in one transaction, or none. The list may be sent without the object around it.',
        }),
    ])
    .meta({ id: 'BlueprintOrSubmissions' })

/** Examples of both forms. A build may leave out the examples of submissions. */
export function bodyExamples(registry: Registry): JsonObject {
  const submissions = Object.values(submissionExamples(registry))
    .slice(0, 2)
    .map((each) => Object(each).value)
  return {
    blueprint: { summary: 'A blueprint', value: example },
    ...(submissions.length > 0 && { submissions: { summary: 'Submissions', value: { submissions } } }),
  }
}

export const blueprintText = (): string =>
  print({ ...example, metadata: { name: 'two groups' }, entries: [engineering, platform] })
