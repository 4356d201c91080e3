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

/** The objects that a run changed, in the form of the filter `object`: `application:shop`. The first of many. */
function objectsOf({ slug, changes }: Pick<Run, 'slug' | 'changes'>, registry: Registry): string[] {
  const objects = changes
    .filter(({ action }) => action !== 'unchanged')
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
    objects: objectsOf(run, registry),
    ...(run.slug !== null && { application: { slug: run.slug, since } }),
  }
  const request = { sent: { same, since, mode: ['apply'] }, ordering: 'created_at', size: mostLater }
  const { ids } = await findRuns(db, spec, actor, request)
  return readRunRows(db, spec, actor, ids)
}

/** The last applied run of an application before a time. @returns undefined when there is none */
export async function earlierRun(
  db: Db,
  spec: ListSpec<'Run'>,
  actor: Actor,
  { slug, before }: { readonly slug: string; readonly before: Date },
) {
  const sent = { application: slug, created_before: before, applied: true, mode: ['apply'] }
  const { ids } = await findRuns(db, spec, actor, { sent, size: 1 })
  const select = { id: true, createdAt: true, finishedAt: true, submitterPk: true } as const
  const row = await db.run.findFirst({ where: { id: { in: ids } }, select })
  return row === null ? undefined : { id: row.id, endedAt: row.finishedAt ?? row.createdAt, submitter: row.submitterPk }
}
