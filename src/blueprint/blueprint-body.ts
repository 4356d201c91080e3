import { z } from 'zod'
import type { Registry } from '../models/index.ts'
import { type Blueprint, KeyOf } from './document.ts'
import { blueprintForm, print } from './yaml.ts'

/** A blueprint as a body, to describe it by: the form that is validated, with the models that there are. */

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
      'Entries, applied in their order in one transaction: all, or none. YAML can name keys besides: `!KeyOf id` is that of an earlier entry, `!Find [model, {member: value}]` that of the one row with these members.',
    examples: [{ ...example, metadata: { name: 'a group' } }],
  })

export const blueprintText = (): string => print({ ...example, entries: [engineering, platform] })
