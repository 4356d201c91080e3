import { z } from 'zod'
import { defineModel } from './define.ts'
import { filledLine, line, name, textLimits } from './fields.ts'

export default defineModel({
  name: 'service_mappings.propertymapping',
  displayName: 'property mapping',
  resource: 'propertymapping',
  table: 'property_mappings',
  key: 'uuid',
  identifiers: [['name', 'kind'], ['managed']],
  names: ['managed', 'name'],
  offersNames: true,
  attrs: z.object({
    name: name(),
    // Not a closed list: a new provider kind must not need a change here.
    kind: filledLine(50).regex(/^[a-z][a-z0-9_]*$/, 'Must be a provider kind such as oauth2.'),
    // Stored, never run.
    expression: line(textLimits.text).default(''),
    managed: filledLine(255).nullable().default(null),
  }),
  unique: ['managed'],
  readOnly: ['pk'],
})
