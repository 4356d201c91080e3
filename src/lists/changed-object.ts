import { z } from 'zod'
import { isOf, objectsNamed } from '../apply/history.ts'
import { withExample } from '../example.ts'
import type { Registry } from '../models/registry.ts'
import { type Seen, seenBy } from '../views/history.ts'
import { narrows, queryText } from './filters.ts'

/** Runs that changed one object: `application:shop-5`, under any of the names that it had. The caller must see such objects. */
export function changedObject({ models: registered }: Registry) {
  const byResource = Map.groupBy(registered, ({ resource }) => resource)
  const byTarget = Map.groupBy(registered, ({ target }) => target)
  const modelsOf = (kind: string) =>
    (byResource.get(kind) ?? byTarget.get(kind) ?? []).map(({ name }): Seen => ({ model: name, owners: null }))
  const schema = withExample(
    queryText(400).transform((text, context) => {
      const [kind = '', ...rest] = text.split(':')
      const of = { models: modelsOf(kind), name: rest.join(':').normalize('NFC') }
      if (of.models.length > 0 && of.name !== '') return of
      const known = [...new Set([...byTarget.keys(), ...byResource.keys()])].sort().join(', ')
      context.addIssue({
        code: 'custom',
        message: `Must be a kind and a name, such as application:shop. Kinds: ${known}.`,
      })
      return z.NEVER
    }),
    'application:shop',
    'That changed the object of this kind and name, such as `application:shop`, under any name that it had. The caller may view the object: else none is found.',
  )
  return narrows(
    'id',
    schema,
    (id, { models, name }, bind) => {
      const named = models.map(({ model, owners }) => objectsNamed(bind([model]), bind(name), bind(owners)))
      const none = 'SELECT model, key FROM object_changes WHERE false'
      return `${id} IN (SELECT o.run_id FROM (${named.join(' UNION ') || none}) named JOIN object_changes o ON ${isOf('o', 'named.model', 'named.key')}
        WHERE o.run_id IS NOT NULL)`
    },
    // A caller could guess the names of objects otherwise, by the runs that it sees.
    ({ models, name }, actor) => {
      const seen = seenBy({ models: registered }, actor)
      return { models: seen.filter(({ model }) => models.some((asked) => asked.model === model)), name }
    },
  )
}
