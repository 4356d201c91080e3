import { z } from 'zod'
import { defineModel } from './define.ts'
import { filledLine, filledShownLine, free, line, name, text, textLimits } from './fields.ts'
import { blankOr, scope } from './syntax.ts'

/** @param scoped the provider kinds whose mappings have a scope */
export const definePropertyMapping = (scoped: readonly string[]) =>
  defineModel({
    name: 'service_mappings.propertymapping',
    displayName: 'property mapping',
    table: 'property_mappings',
    key: 'uuid',
    identifiers: [['name', 'kind'], ['managed']],
    names: ['managed', 'name'],
    offersNames: true,
    attrs: z.object({
      name: name(),
      // The list is open: a new provider kind must not need a change here.
      kind: filledLine(50).regex(/^[a-z][a-z0-9_]*$/, 'Must be a provider kind such as oauth2.'),
      // The expression is stored, never run.
      expression: free(line(textLimits.text)).default(''),
      managed: filledShownLine(255).nullable().default(null),
      scope_name: text(blankOr(scope), 255)
        .meta({ description: 'The scope by which clients ask for it.', examples: ['email'] })
        .default(''),
    }),
    unique: ['managed'],
    rules({ kind, scope_name }, report) {
      if (typeof kind !== 'string' || scope_name === undefined || scope_name === '' || scoped.includes(kind)) return
      const message = `Only mappings of the kind ${scoped.join(' or ')} have a scope: leave it out.`
      report(['scope_name'], 'invalid_combination', message)
    },
  })
