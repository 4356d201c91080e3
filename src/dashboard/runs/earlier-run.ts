import type { Db } from '../../db/client.ts'
import type { ListSpec } from '../../lists/listed.ts'
import { findRuns } from '../../lists/runs-of-operators.ts'
import type { Actor } from '../../permissions.ts'

/** The last applied run of an application before a time, among those that the caller sees. @returns undefined when there is none */
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
