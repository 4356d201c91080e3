import { z } from 'zod'
import { objectsNamed } from '../apply/history.ts'
import type { Registry } from '../models/registry.ts'
import { narrows, queryText } from './filters.ts'

/** Runs that changed one object: `application:shop-5`, under any of the names that it had. */
export function changedObject({ models }: Registry) {
  const byResource = Map.groupBy(models, ({ resource }) => resource)
  const byTarget = Map.groupBy(models, ({ target }) => target)
  const modelsOf = (kind: string) => (byResource.get(kind) ?? byTarget.get(kind) ?? []).map(({ name }) => name)
  const schema = queryText(400)
    .transform((text, context) => {
      const [kind = '', ...rest] = text.split(':')
      const of = { models: modelsOf(kind), name: rest.join(':').normalize('NFC') }
      if (of.models.length > 0 && of.name !== '') return of
      const known = [...new Set([...byTarget.keys(), ...byResource.keys()])].sort().join(', ')
      context.addIssue({
        code: 'custom',
        message: `Must be a kind and a name, such as application:shop. Kinds: ${known}.`,
      })
      return z.NEVER
    })
    .meta({
      description:
        'That changed the object of this kind and name, such as `application:shop`, under any name that it had.',
      examples: ['application:shop'],
    })
  return narrows('id', schema, (id, { models, name }, bind) => {
    const named = objectsNamed(bind(models), bind(name))
    return `${id} IN (SELECT o.run_id FROM run_objects o JOIN (${named}) named USING (model, key) WHERE o.run_id IS NOT NULL)`
  })
}
