import { z } from 'zod'
import { isOf, objectsNamed } from '../apply/history.ts'
import { withExample } from '../example.ts'
import type { Registry } from '../models/registry.ts'
import { type SeenObjects, seenBy } from '../views/history.ts'
import { type Bind, narrows, queryText } from './filters.ts'

/** Filters by one object: `application:shop-5`, under any of the names that it had, or by its key. */

const ofKind =
  'the object of this kind and name, such as `application:shop`, under any name that it had, or with this key.'

function objectText({ models: registered }: Registry, description: string) {
  const byResource = Map.groupBy(registered, ({ resource }) => resource)
  const byTarget = Map.groupBy(registered, ({ target }) => target)
  const modelsOf = (kind: string) =>
    (byResource.get(kind) ?? byTarget.get(kind) ?? []).map(({ name }): SeenObjects => ({ model: name, owners: null }))
  return withExample(
    queryText(400).transform((text, context) => {
      const [kind = '', ...rest] = text.split(':')
      const of = { models: modelsOf(kind), name: rest.join(':').normalize('NFC') }
      if (of.models.length > 0 && of.name !== '') return of
      const known = [...new Set([...byTarget.keys(), ...byResource.keys()])].sort().join(', ')
      const message = `Must be a kind and a name, such as application:shop. Kinds: ${known}.`
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }),
    'application:shop',
    description,
  )
}

type NamedObject = { readonly models: readonly SeenObjects[]; readonly name: string }

const among =
  (column: 'run_id' | 'audit_pk') =>
  (key: string, { models, name }: NamedObject, bind: Bind) => {
    const named = models.map(({ model, owners }) => {
      const asked = bind(name)
      return objectsNamed(bind([model]), asked, bind(owners), asked)
    })
    const none = 'SELECT model, key FROM object_changes WHERE false'
    return `${key} IN (SELECT o.${column} FROM (${named.join(' UNION ') || none}) named
    JOIN object_changes o ON ${isOf('o', 'named.model', 'named.key')} WHERE o.${column} IS NOT NULL)`
  }

/** Runs that changed the object. */
export const changedObject = (registry: Registry) =>
  narrows(
    'id',
    objectText(registry, `That changed ${ofKind} The caller may view the object: else none is found.`),
    among('run_id'),
    // A caller could guess the names of objects otherwise, by the runs that it sees.
    ({ models, name }, actor) => {
      const seen = seenBy(registry, actor)
      return { models: seen.filter(({ model }) => models.some((asked) => asked.model === model)), name }
    },
  )

/** Audit rows of the object. They show the names of all objects to those who may view the audit. */
export const auditedObject = (registry: Registry) =>
  narrows('pk', objectText(registry, `With a change of ${ofKind}`), among('audit_pk'))
