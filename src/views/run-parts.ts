import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import { mayReadRun } from '../runs/options.ts'
import { changesShown, logNotShown, runsWithHiddenLogs } from './former-owner.ts'
import { conditionsShown, documentText, type Opening, readAttempts } from './one-run.ts'
import { readRepairs } from './repair.ts'
import { type Run, runHeadSelect, runView, toRunHead } from './run.ts'
import { type Counts, changeOrder } from './run-summary.ts'
import { isReadable, readStoredChanges } from './stored-changes.ts'

/** A run in parts: a run of many entries is too long to be read whole for a page of it. */

const partRow = z.object({
  lines: z.int(),
  logs: z.array(z.string()),
  counts: z.record(z.string(), z.int()),
  changes: z.array(z.unknown()),
  isWhole: z.boolean(),
})

/**
 * @property logs the first lines, shortened @property lines the number of all lines
 * @property changes some of them, in `changeOrder` @property counts the number of all changes of each action
 */
export type RunPart = Omit<Run, 'unnamed' | 'unmanaged' | 'etag' | 'blueprint' | 'generated'> & {
  readonly lines: number
  readonly counts: Counts
}

/** @property from index of the first change @property most the most changes @property lines the most lines of the log */
type Part = { readonly from: number; readonly most: number; readonly lines: number }

const longestLine = 400

/** @returns null when there is no such run, or none that the caller may see */
export async function readRunPart(
  db: Db,
  id: string,
  actor: Actor,
  { from, most, lines }: Part,
  progressOf: (run: { readonly id: string }, attempt: number) => Promise<Run['progress']>,
): Promise<RunPart | null> {
  const row = await db.run.findUnique({ where: { id }, select: { ...runHeadSelect, options: true } })
  if (row === null || !mayReadRun(row, actor)) return null
  const [part] = await query(db, partRow, {
    text: `WITH run AS MATERIALIZED (
        SELECT coalesce(logs, '{}') AS logs, changes FROM runs WHERE id = $1::uuid
      ), all_of_it AS MATERIALIZED (
        SELECT e.value, e.value->>'action' AS action, e.ordinality AS place, ${isReadable('e.value')} AS is_readable
        FROM run, jsonb_array_elements(CASE jsonb_typeof(run.changes) WHEN 'array' THEN run.changes ELSE '[]' END)
          WITH ORDINALITY e
      ), c AS (SELECT * FROM all_of_it WHERE is_readable
      ), page AS (
        SELECT value, array_position($2::text[], action) AS rank, place FROM c ORDER BY rank, place OFFSET $3 LIMIT $4
      )
      SELECT cardinality(logs) AS lines, ARRAY(SELECT left(l, ${longestLine}) FROM unnest(logs[1:$5]) l) AS logs,
        coalesce((SELECT jsonb_object_agg(action, number) FROM (SELECT action, count(*) AS number FROM c GROUP BY action) g), '{}')
          AS counts,
        coalesce((SELECT jsonb_agg(value ORDER BY rank, place) FROM page), '[]') AS changes,
        coalesce(jsonb_typeof(changes), 'null') IN ('array', 'null') AND NOT EXISTS (SELECT FROM all_of_it WHERE NOT is_readable)
          AS "isWhole"
      FROM run`,
    values: [id, [...changeOrder], from, most, lines],
  })
  const { changes, isWhole, ...counted } = part ?? { lines: 0, logs: [], counts: {}, changes: [], isWhole: true }
  const stored = readStoredChanges(changes)
  const said = (await runsWithHiddenLogs(db, [id], actor)).has(id) ? { logs: [logNotShown], lines: 1 } : counted
  const head = toRunHead(row, actor, (await readRepairs(db, [row], actor))(id))
  const [completed = head] = await runView.complete(db, [head])
  return {
    ...completed,
    ...conditionsShown(row, isWhole && stored.isWhole),
    counts: counted.counts,
    logs: said.logs,
    lines: said.lines,
    changes: changesShown(stored.changes, actor),
    failed_attempts: await readAttempts(db, id, actor),
    progress: completed.state === 'running' ? await progressOf(completed, completed.attempts) : null,
  }
}

/** The document of a run, masked, with the run's title. @returns null as above */
export async function readRunDocument(
  db: Db,
  opening: Opening,
  id: string,
  actor: Actor,
): Promise<{ readonly id: string; readonly title: string; readonly blueprint: string } | null> {
  const of = { id: true, title: true, submitterPk: true, options: true, blueprint: true, document: true } as const
  const row = await db.run.findUnique({ where: { id }, select: of })
  if (row === null || !mayReadRun(row, actor)) return null
  return { id, title: row.title, blueprint: await documentText(db, opening, row) }
}
