import { z } from 'zod'
import { hasName } from '../apply/history.ts'
import type { Db, Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { type Actor, allows } from '../permissions.ts'
import type { RunState } from '../runs/life.ts'
import { mayReadRun } from '../runs/options.ts'

/** Whether a later run repaired one that failed or was cancelled, and which, as far as the caller sees that run. */

export type Repair = { readonly repaired: boolean | null; readonly repaired_by: string | null }

type Runs = readonly { readonly id: string; readonly state: RunState }[]

/** @returns the repair of each of the runs, by its id */
export async function readRepairs(db: Db | Tx, runs: Runs, actor: Actor): Promise<(id: string) => Repair> {
  if (!allows(actor, 'view_run')) return () => ({ repaired: null, repaired_by: null })
  const found = await repairs(db, runs)
  const id = { in: [...new Set(found.values())] }
  const select = { id: true, options: true, submitterPk: true } as const
  const seen = id.in.length === 0 ? [] : await db.run.findMany({ where: { id }, select })
  const shown = new Set(seen.filter((row) => mayReadRun(row, actor)).map(({ id }) => id))
  return (id) => {
    const by = found.get(id)
    return { repaired: by !== undefined, repaired_by: by !== undefined && shown.has(by) ? by : null }
  }
}

/** What makes two runs the same document: the slug, or the submitter and the title of a blueprint; null for one without a name. */
const documentName = (run: string): string => `coalesce(${run}.slug,
  CASE WHEN ${run}.title LIKE 'apply blueprint _%' THEN ${run}.submitter_pk || ' ' || ${run}.title END)`

/**
 * Finds what repaired failed runs: a later run that applied an application with the same slug, the newest one of the same
 * document, or the first that changed the application as part of a set; the earliest of these. Two blueprints of one submitter
 * with the same name are the same document, although their contents may differ.
 *
 * @returns the ids of these runs, by the ids of the failed ones
 */
async function repairs(db: Db | Tx, runs: Runs): Promise<ReadonlyMap<string, string>> {
  const failed = runs.filter(({ state }) => state === 'failed' || state === 'cancelled').map(({ id }) => id)
  if (failed.length === 0) return new Map()
  const rows = await query(db, z.object({ id: z.guid(), by: z.guid() }), {
    text: `WITH failed AS MATERIALIZED (
        SELECT id, created_at, document, slug, ${documentName('r')} AS name FROM runs r WHERE id = ANY ($1::uuid[])
      ), later AS (
        SELECT f.id, l.id AS by, l.created_at AS at FROM failed f JOIN runs l ON ${documentName('l')} = f.name
          WHERE l.created_at > f.created_at AND l.created_at > (SELECT min(created_at) FROM failed) AND l.applied
        UNION ALL SELECT f.id, l.id, l.created_at FROM failed f JOIN runs l ON l.document = f.document
          WHERE l.blueprint IS NOT NULL AND l.created_at > f.created_at AND l.applied
        UNION ALL SELECT f.id, o.run_id, o.at FROM failed f JOIN object_changes o
          ON ${hasName('o', "'service_core.application'", 'f.slug')}
          WHERE o.action <> 'delete' AND o.run_id IS NOT NULL AND o.at > f.created_at
      ) SELECT DISTINCT ON (id) id, by FROM later ORDER BY id, at`,
    values: [failed],
  })
  return new Map(rows.map(({ id, by }) => [id, by]))
}
