import type { Db } from '../../db/client.ts'
import type { ListSpec } from '../../lists/list.ts'
import { type RunRow, readRunRows } from '../../lists/run-rows.ts'
import { laterRuns } from '../../lists/run-search.ts'
import type { Registry } from '../../models/registry.ts'
import type { Actor } from '../../permissions.ts'
import type { RunPart } from '../../views/run-parts.ts'

/** More would take too long. */
const mostObjects = 10

type Of = { readonly db: Db; readonly registry: Registry; readonly runs: ListSpec<'Run'> }

/** The objects that a run changed, or names, as the filter `object` takes them: `application:shop`. The first of many. */
export function objectsOf(
  { slug, changes }: Pick<RunPart, 'slug' | 'changes'>,
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

/** Later runs of the same objects, the next one first. */
export async function readLater(
  { db, registry, runs }: Of,
  run: RunPart,
  actor: Actor,
  most: number,
): Promise<readonly RunRow[]> {
  const { slug, created_at } = run
  const of = { slug, createdAt: new Date(created_at), objects: objectsOf(run, registry, { withUnchanged: false }) }
  return readRunRows(db, runs, actor, await laterRuns(db, runs, actor, of, most))
}
