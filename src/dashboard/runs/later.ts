import { isDeepStrictEqual } from 'node:util'
import type { Db } from '../../db/client.ts'
import type { ListSpec } from '../../lists/list.ts'
import { mostObjects, objectsOf } from '../../lists/objects-of-run.ts'
import { type RunRow, readRunRows } from '../../lists/run-rows.ts'
import { laterRuns } from '../../lists/run-search.ts'
import type { Registry } from '../../models/registry.ts'
import { type Actor, allows, isBound } from '../../permissions.ts'
import type { RunPart } from '../../views/run-parts.ts'
import { countOf } from './changes.ts'

type Of = { readonly db: Db; readonly registry: Registry; readonly runs: ListSpec<'Run'> }

/** The objects of a run that `readLater` names. */
export const objectsAsked = ({ counts }: Pick<RunPart, 'counts'>): string =>
  countOf(counts) - (counts.unchanged ?? 0) > mostObjects ? `its first ${mostObjects} objects` : 'the same objects'

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

/**
 * Whether it is certain that a run was applied and that no later one changed an object that it names: each of them is searched by
 * its name, and the caller sees all runs and all such objects.
 */
export async function isNewest({ db, registry, runs }: Of, run: RunPart, actor: Actor): Promise<boolean> {
  const { slug, created_at, applied, changes, counts, unreadable } = run
  const isWhole = unreadable.length === 0 && changes.length === countOf(counts)
  if (applied !== true || !isWhole || changes.length === 0 || changes.length > mostObjects) return false
  if (!allows(actor, 'view_run') || isBound(actor)) return false
  const isAsked = ({ model, key }: RunPart['changes'][number]): boolean => {
    const of = registry.byName(model)
    const [identifiers = []] = of?.identifiers ?? []
    const [name] = Object.values(key)
    const isNamed = isDeepStrictEqual(Object.keys(key), identifiers) && identifiers.length === 1
    if (of === undefined || !isNamed || !allows(actor, `view_${of.resource}`)) return false
    return runs.filters.object?.schema.safeParse(`${of.resource}:${String(name)}`).success === true
  }
  if (!changes.every(isAsked)) return false
  const objects = objectsOf(run, registry, { withUnchanged: true })
  return (await laterRuns(db, runs, actor, { slug, createdAt: new Date(created_at), objects }, 1)).length === 0
}
