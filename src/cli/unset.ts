import { isForNew } from '../document/generate.ts'
import { Expression, type TagError } from '../document/tags.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { entriesOf, type Unset } from './places.ts'
import { objectOf } from './runs.ts'

/**
 * Secrets whose variables are not set. A document asks for them as for a new object only: what stands keeps its secret, and the
 * service refuses to create it without one.
 */

/**
 * Replaces such secrets in a value that was read: in a plan all of them, else those that are for a new object anyway.
 *
 * @returns also the errors that are left
 */
export function keepSecrets(value: unknown, errors: readonly TagError[], registry: Registry, isPlan: boolean) {
  const variables = new Set<string>()
  const lines = new Set<string>()
  const kept = new Set<number | undefined>()
  for (const { entry } of entriesOf(value)) {
    const { model, identifiers: key, attrs } = Object(entry)
    for (const [name, sent] of isObject(attrs) ? Object.entries(attrs) : []) {
      const tags = registry.byName(String(model))?.fields.get(name)?.secret === true ? envsIn(sent) : []
      const names = tags.map(({ content }) => [typeof content === 'string' ? content.trim() : content[0]].join())
      const isNew = isForNew(sent)
      if (tags.length === 0 || !(isNew || isPlan) || names.some((each) => !/^[A-Za-z_]\w*$/.test(each))) continue
      for (const { offset } of tags) kept.add(offset)
      const env = [...new Set(names)].join(', ')
      Reflect.set(attrs, name, { create: { env } })
      if (isNew) continue
      for (const each of names) variables.add(each)
      lines.add(
        `${name} of ${objectOf({ model: String(model), key: isObject(key) ? key : {} })}: not compared: ${env} ${names.length === 1 ? 'is' : 'are'} not set`,
      )
    }
  }
  // One of the context may stand elsewhere too.
  for (const { offset } of envsIn(value)) kept.delete(offset)
  return {
    errors: errors.filter(({ offset }) => !kept.has(offset)),
    unset: { variables: [...variables], lines: [...lines] } satisfies Unset,
  }
}

/** Each `!Env` that is left in a value. */
function envsIn(value: unknown): Expression[] {
  if (value instanceof Expression && value.name === '!Env') return [value]
  const inner = value instanceof Expression ? value.content : value
  return typeof inner === 'object' && inner !== null ? Object.values(inner).flatMap(envsIn) : []
}
