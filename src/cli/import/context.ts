import { own } from '../../json-object.ts'
import type { Registry } from '../../models/registry.ts'

/** The values that a service of this API family adds to the context of every document, under a name with its own domain. */
const made: Readonly<Record<string, (registry: Registry) => unknown>> = {
  // Features that are sold there are part of this program.
  'enterprise/licensed': () => true,
  // The value maps each model to the part of its name before the dot.
  'rbac/models': ({ models }) =>
    Object.fromEntries(models.map(({ name, resource }) => [resource, name.slice(0, name.indexOf('.'))])),
}

/** @returns a value for each such name in the text */
export function familyContext(text: string, registry: Registry): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    [...text.matchAll(/[\w.-]+\/([a-z]+\/[a-z]+)/g)].flatMap(([name, what]) => {
      const make = own(made, what)
      return make === undefined ? [] : [[name, make(registry)] as const]
    }),
  )
}
