import type { Db } from '../../db/client.ts'
import type { ListSpec } from '../../lists/listed.ts'
import { type RunRow, readRunRows } from '../../lists/run-rows.ts'
import { findRuns, type Same } from '../../lists/runs-of-operators.ts'
import type { Registry } from '../../models/registry.ts'
import type { Actor } from '../../permissions.ts'
import type { Run } from '../../views/run.ts'

/** The runs before and after another one that are about the same objects, among those that the caller sees. */

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

const mostLater = 10

/** Later runs of the same objects, the next one first: those of the same application, and those that changed one of the objects. */
export async function laterRuns(
  db: Db,
  spec: ListSpec<'Run'>,
  registry: Registry,
  run: Run,
  actor: Actor,
): Promise<readonly RunRow[]> {
  const since = new Date(run.created_at)
  const same: Same = {
    objects: objectsOf(run, registry, { withUnchanged: false }),
    ...(run.slug !== null && { application: { slug: run.slug, since } }),
  }
  const request = { sent: { same, since, mode: ['apply'] }, ordering: 'created_at', size: mostLater }
  const { ids } = await findRuns(db, spec, actor, request)
  return readRunRows(db, spec, actor, ids)
}

export type Earlier = {
  readonly id: string
  readonly title: string
  readonly createdAt: Date
  readonly endedAt: Date
  readonly submitter: number | null
}

type Of = {
  /** The slug of an application, whose earlier runs have the same; null for a blueprint. */
  readonly slug: string | null
  /** The title of a blueprint. Its earlier run has the same title and submitter, or changed one of its objects. */
  readonly title: string
  readonly submitter: number | null
  readonly objects: readonly string[]
  /** Only runs that were recorded before this time. */
  readonly before: Date
}

/** The last applied run before another one: of a blueprint, one with its title if there is one. @returns undefined when there is none */
export async function earlierRun(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  { slug, title, submitter, objects, before }: Of,
): Promise<Earlier | undefined> {
  const sent = { application: slug, created_before: before, applied: true, mode: ['apply'] }
  const same: Same = { objects, document: { title, submitter } }
  for (const each of slug === null ? [{ same, title }, { same }] : [{}]) {
    const { ids } = await findRuns(db, spec, actor, { sent: { ...sent, ...each }, size: 1 })
    const row = await db.run.findFirst({ where: { id: { in: ids } }, select: earlierSelect })
    if (row !== null) return { ...row, endedAt: row.finishedAt ?? row.createdAt, submitter: row.submitterPk }
  }
  return undefined
}

const earlierSelect = { id: true, title: true, createdAt: true, finishedAt: true, submitterPk: true } as const
