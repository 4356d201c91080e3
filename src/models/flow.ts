import { z } from 'zod'
import { defineModel } from './define.ts'
import { name, oneOf, shownLine, slug } from './fields.ts'

export const designations = [
  'authentication',
  'authorization',
  'enrollment',
  'invalidation',
  'recovery',
  'stage_configuration',
  'unenrollment',
] as const

export default defineModel({
  name: 'service_flows.flow',
  displayName: 'flow',
  table: 'flows',
  key: 'uuid',
  identifiers: [['slug']],
  offersNames: true,
  attrs: z.object({
    name: name(),
    slug: slug(),
    title: shownLine().default(''),
    designation: oneOf(designations, 'FlowDesignation'),
    asks_for_consent: z
      .boolean()
      .meta({ description: 'Whether the user is asked before a client gets a token: of an authorization flow.' })
      .default(false),
  }),
})
