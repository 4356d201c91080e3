import { z } from 'zod'
import type { Db, Tx } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { RunState } from './life.ts'

/** The later runs that repaired failed ones. */

/** The most later runs of a submitter that are searched for one of the same name. */
const mostLater = 1_000

/**
 * Finds what repaired failed runs: a later run that applied an application with the same slug, the newest one of the same
 * document, or the first that changed the application as part of a set; the earliest of these. Two blueprints of one submitter
 * with the same name are the same document, although their contents may differ.
 *
 * @returns the ids of these runs, by the ids of the failed ones
 */
export async function repairs(
  db: Db | Tx,
  runs: readonly { readonly id: string; readonly state: RunState }[],
): Promise<ReadonlyMap<string, string>> {
  const failed = runs.filter(({ state }) => state === 'failed').map(({ id }) => id)
  if (failed.length === 0) return new Map()
  const rows = await query(db, z.object({ id: z.guid(), by: z.guid().nullable() }), {
    text: `SELECT f.id, (SELECT later.id FROM (
        (SELECT l.id, l.created_at FROM runs l WHERE l.slug = f.slug AND l.created_at > f.created_at AND l.applied
          ORDER BY l.created_at LIMIT 1)
        UNION ALL (SELECT l.id, l.created_at FROM runs l WHERE l.document = f.document AND l.blueprint IS NOT NULL
          AND l.created_at > f.created_at AND l.applied ORDER BY l.created_at LIMIT 1)
        UNION ALL (SELECT o.run_id, o.at FROM run_objects o WHERE o.model = 'service_core.application' AND o.name = f.slug
          AND o.action <> 'delete' AND o.run_id IS NOT NULL AND o.at > f.created_at ORDER BY o.audit_pk LIMIT 1)
        UNION ALL (SELECT n.id, n.created_at FROM (SELECT l.id, l.created_at, l.title, l.applied FROM runs l
            WHERE f.slug IS NULL AND f.title LIKE 'apply blueprint _%' AND l.submitter_pk = f.submitter_pk
              AND l.created_at > f.created_at ORDER BY l.created_at, l.id LIMIT ${mostLater}) n
          WHERE n.title = f.title AND n.applied ORDER BY n.created_at LIMIT 1)
      ) later ORDER BY later.created_at LIMIT 1) AS by
      FROM runs f WHERE f.id = ANY ($1::uuid[])`,
    values: [failed],
  })
  return new Map(rows.flatMap(({ id, by }) => (by === null ? [] : [[id, by]])))
}
