import { z } from 'zod'
import { type Blueprint, KeyOf } from '../document/document.ts'
import { blueprintForm } from '../document/form.ts'
import { print } from '../document/yaml.ts'
import type { Registry } from '../models/registry.ts'

/** A blueprint as a request body: the schema that validates it, with the names of the models. */

const engineering = {
  model: 'service_core.group',
  id: 'engineering',
  state: 'present',
  identifiers: { name: 'engineering' },
  attrs: { attributes: { cost_center: 4700 } },
} as const

const example: Blueprint = { version: 1, metadata: { name: 'two groups' }, entries: [engineering] }

const platform = {
  model: 'service_core.group',
  state: 'created',
  identifiers: { name: 'platform' },
  attrs: { parent: new KeyOf('engineering') },
} as const

export const blueprintBody = ({ models }: Registry): z.ZodType =>
  blueprintForm(z.enum(models.map(({ name }) => name))).meta({
    id: 'Blueprint',
    description:
      'Entries, applied in their order in one transaction: all of them, or none. A reference is a key or a name. YAML can also refer to keys: `!KeyOf id` is the key of an earlier entry, `!Find [model, {field: value}]` is the key of the one row with these values. The other tags are in docs/blueprints.md.',
    examples: [{ ...example, metadata: { name: 'a group' } }],
  })

export const blueprintText = (): string => print({ ...example, entries: [engineering, platform] })
