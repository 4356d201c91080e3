import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import { labelColumn, quoted } from '../plan/statements.ts'

/** Audit rows of one statement. */
const portion = 500

const portionRow = z.object({ read: z.int(), filled: z.int() })

/**
 * Copies audit rows to the history of objects, as far as they have the data: those of earlier versions, and those that processes
 * of an earlier version write for a day beside this one. One of several workers does it.
 *
 * @param portions how many at most
 * @returns how many objects were added, and whether some audit rows may be left
 */
export async function fillHistory(
  db: Db,
  registry: Registry,
  portions: number,
): Promise<{ filled: number; isDone: boolean }> {
  let filled = 0
  for (let done = 0; done < portions; done += 1) {
    const [row] = await query(db, portionRow, { text: textOf(registry), values: [] })
    filled += row?.filled ?? 0
    if ((row?.read ?? 0) < portion) return { filled, isDone: true }
  }
  return { filled, isDone: false }
}

/** Keys grow in the order in which they are taken, not in that of the commits: the newest audit rows are left for later. */
const textOf = ({ models }: Registry): string => `
  WITH state AS (SELECT * FROM installation WHERE history_fill_until IS NOT NULL FOR UPDATE SKIP LOCKED),
  part AS (
    SELECT a.* FROM audit_rows a, state WHERE a.pk > state.history_filled AND a.at < now() - interval '1 minute'
    ORDER BY a.pk LIMIT ${portion}
  ), changed AS (
    SELECT p.pk, p.at, p.run_id, c.value, c.position, c.value->>'model' AS model, c.value->>'key' AS key
    FROM part p, jsonb_array_elements(p.changes) WITH ORDINALITY c(value, position)
    WHERE c.value->>'action' IN ('create', 'update', 'delete')
      AND NOT EXISTS (SELECT FROM run_objects o WHERE o.audit_pk = p.pk)
  ), added AS (
    INSERT INTO run_objects (audit_pk, position, at, run_id, model, key, name, action, change, fields)
    SELECT c.pk, c.position - 1, c.at, c.run_id, c.model, c.key, coalesce(${nameOf(models)}, named.name, c.key),
      c.value->>'action', named.change, c.value->'fields'
    FROM changed c LEFT JOIN LATERAL (
      SELECT written.change, (SELECT min(value) FROM jsonb_each_text(written.value->'key')) AS name FROM (
        SELECT x.value, x.at - 1 AS change, row_number() OVER (ORDER BY x.at) AS nth
        FROM runs r, jsonb_array_elements(r.changes) WITH ORDINALITY x(value, at)
        WHERE r.id = c.run_id AND x.value->>'action' <> 'unchanged'
      ) written WHERE written.nth = c.position AND written.value->>'model' = c.model
    ) named ON true
    ON CONFLICT DO NOTHING RETURNING 1
  ), moved AS (
    UPDATE installation SET history_filled = coalesce((SELECT max(pk) FROM part), history_filled),
      history_fill_until = CASE WHEN history_fill_until > now() OR EXISTS (SELECT FROM part) THEN history_fill_until END
    WHERE EXISTS (SELECT FROM state)
  )
  SELECT (SELECT count(*) FROM part)::integer AS read, (SELECT count(*) FROM added)::integer AS filled`

/** The name of the object now, if it exists. */
const nameOf = (models: Registry['models']): string =>
  `CASE c.model ${models
    .map((model) => {
      const { name, table, key } = model
      const label = `SELECT t.${quoted(labelColumn(model))}::text FROM ${quoted(table)} t WHERE t.pk = c.key::${key}`
      return `WHEN '${name}' THEN (${label})`
    })
    .join(' ')} END`
