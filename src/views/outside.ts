import { z } from 'zod'
import { isPutBack, lastOf, recordedTables } from '../apply/outside.ts'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { seenBy } from './history.ts'

/** The number of objects that differ from their last recorded change, as the last daily check found them. */
export type OutsideCount = {
  readonly object: 'application' | 'provider'
  readonly how: 'changed' | 'deleted'
  readonly count: number
}

const application = 'service_core.application'

/** Counts each combination. */
export async function countOutside(db: Db): Promise<OutsideCount[]> {
  const found = await db.outsideChange.groupBy({ by: ['model', 'isDeleted'], _count: true })
  return (['application', 'provider'] as const).flatMap((object) =>
    (['changed', 'deleted'] as const).map((how) => {
      const own = found.filter(
        ({ model, isDeleted }) =>
          (model === application) === (object === 'application') && isDeleted === (how === 'deleted'),
      )
      return { object, how, count: own.reduce((sum, { _count }) => sum + _count, 0) }
    }),
  )
}

const deleted = z.object({ model: z.string(), name: z.string() })

/** An application or provider that was deleted outside of the service. */
export type DeletedOutside = z.output<typeof deleted>

/** The most that are named. */
const mostNamed = 50

/**
 * Objects that were deleted outside of the service and not put back, as far as the caller sees such objects: those that a worker
 * found in its last check. Owners are those of the last recorded change.
 *
 * @param owner only objects with this label; null: with any, or none
 * @returns `isAll` false: there are more
 */
export async function readDeletedOutside(
  db: Db,
  registry: Registry,
  actor: Actor,
  owner: string | null,
): Promise<{ readonly objects: readonly DeletedOutside[]; readonly isAll: boolean }> {
  const tables = recordedTables(registry)
  const seen = seenBy(registry, actor).flatMap((each) => {
    const table = tables.find(({ models }) => models.includes(each.model))
    return table === undefined ? [] : [{ ...each, models: table.models }]
  })
  const rows = await query(db, deleted, {
    text: `SELECT o.model, o.name FROM outside_changes c
        JOIN jsonb_to_recordset($1::jsonb) AS v(model text, owners text[], models text[]) USING (model),
        LATERAL (${lastOf('ARRAY[c.model]', 'c.key')}) o
      WHERE c.is_deleted AND (v.owners IS NULL OR o.owner = ANY (v.owners)) AND ($2::text IS NULL OR o.owner = $2)
        AND CASE WHEN o.action = 'delete' THEN false ELSE NOT ${isPutBack('v.models')} END
      ORDER BY o.name, o.model, o.key LIMIT $3`,
    values: [JSON.stringify(seen), owner, mostNamed + 1],
  })
  return { objects: rows.slice(0, mostNamed), isAll: rows.length <= mostNamed }
}
