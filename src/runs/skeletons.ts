import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { execute, query } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import { skeletonOf } from '../models/skeleton.ts'

/** Rows of one statement. */
const portion = 1_000

const named = z.object({ pk: z.string(), name: z.string() })

/**
 * Fills in what names look like, where it is missing: rows of earlier versions, and those that were written past the product.
 * A row is changed only if it still has the name that was read. Several workers may do it at once.
 *
 * @param portions how many at most
 * @returns how many rows were filled in, and whether some may be left
 */
export async function fillSkeletons(
  db: Db,
  { models }: Registry,
  portions: number,
): Promise<{ filled: number; isDone: boolean }> {
  let filled = 0
  let left = portions
  for (const { table, key, fields } of models)
    for (const { distinct, storage } of fields.values()) {
      if (!distinct || storage.in !== 'column') continue
      for (let read = portion; read === portion; left -= 1) {
        if (left === 0) return { filled, isDone: false }
        const rows = await query(db, named, {
          text: `SELECT pk::text AS pk, "${storage.column}" AS name FROM "${table}" WHERE "skeleton" IS NULL LIMIT $1`,
          values: [portion],
        })
        read = rows.length
        if (read === 0) break
        filled += await execute(db, {
          text: `WITH anew AS (
              SELECT t.pk, n.skeleton FROM unnest($1::text[]::${key}[], $2::text[], $3::text[]) AS n(pk, name, skeleton)
              JOIN "${table}" t ON t.pk = n.pk AND t."${storage.column}" = n.name AND t."skeleton" IS NULL
              ORDER BY t.pk FOR UPDATE OF t SKIP LOCKED
            ) UPDATE "${table}" t SET "skeleton" = anew.skeleton FROM anew WHERE t.pk = anew.pk`,
          values: [rows.map(({ pk }) => pk), rows.map(({ name }) => name), rows.map(({ name }) => skeletonOf(name))],
        })
      }
    }
  return { filled, isDone: true }
}
