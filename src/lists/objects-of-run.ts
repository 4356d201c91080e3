import type { Registry } from '../models/registry.ts'
import type { Run } from '../views/run.ts'

/** The most objects; more would take too long. */
export const mostObjects = 10

/** The objects that a run changed, or names, in the form of the filter `object`: `application:shop`. The first of many. */
export function objectsOf(
  { slug, changes }: Pick<Run, 'slug' | 'changes'>,
  registry: Registry,
  { withUnchanged }: { readonly withUnchanged: boolean },
): string[] {
  const objects = changes
    .filter(({ action }) => withUnchanged || action !== 'unchanged')
    .slice(0, mostObjects)
    .flatMap(({ model, key }) => {
      const [name] = Object.values(key)
      const resource = registry.byName(model)?.resource
      return resource === undefined || typeof name !== 'string' ? [] : [`${resource}:${name}`]
    })
  if (slug !== null) objects.push(`application:${slug}`)
  return [...new Set(objects)]
}
