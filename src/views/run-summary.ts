import { z } from 'zod'
import type { Change } from '../apply/changes.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { query } from '../db/raw.ts'
import { storedPipeline } from '../pipeline.ts'

/** The summary of a run that lists show in place of its changes and of a long log. */

/** The order of changes on pages and in sentences: effects first, and unchanged objects last. */
export const changeOrder = ['delete', 'update', 'create', 'unchanged'] as const satisfies readonly Change['action'][]

export type Counts = Readonly<Partial<Record<Change['action'], number>>>

export const countsOf = (changes: readonly Change[]): Counts =>
  Object.fromEntries([...Map.groupBy(changes, ({ action }) => action)].map(([action, all]) => [action, all.length]))

export const changeWords = { delete: 'deleted', update: 'changed', create: 'created', unchanged: 'unchanged' } as const

/** @returns `2 deleted, 1 changed`; empty for no entries */
export const countsText = (counts: Counts, number: (of: number) => string = String): string =>
  changeOrder
    .flatMap((action) => (counts[action] === undefined ? [] : [`${number(counts[action])} ${changeWords[action]}`]))
    .join(', ')

export const mostLines = 20

const extractRow = z.object({
  id: z.guid(),
  lines: z.int(),
  logs: z.array(z.string()),
  counts: z.record(z.string(), z.int()),
  pipeline: storedPipeline,
})

/** @property logs the first lines @property lines the number of all lines @property counts the counts of its changes */
type Extract = Readonly<Omit<z.output<typeof extractRow>, 'id'>>

const nothing: Extract = { logs: [], lines: 0, counts: {}, pipeline: null }

/**
 * Reads the parts of runs that their list shows. Most large runs change nothing: those are counted without reading each entry.
 *
 * @returns a function that gives the part of each run, by its id
 */
export async function readExtracts(db: Db | Tx, ids: readonly string[]): Promise<(id: string) => Extract> {
  const rows = await query(db, extractRow, {
    text: `SELECT r.id, cardinality(r.logs) AS lines, r.logs[1:${mostLines}] AS logs, r.options->'pipeline' AS pipeline,
        CASE WHEN jsonb_typeof(r.changes) IS DISTINCT FROM 'array' OR r.changes = '[]' THEN '{}'
          WHEN NOT jsonb_path_exists(r.changes, '$[*] ? (!(@.action == "unchanged"))')
            THEN jsonb_build_object('unchanged', jsonb_array_length(r.changes))
          ELSE (SELECT coalesce(jsonb_object_agg(action, number), '{}') FROM (
            SELECT e.value->>'action' AS action, count(*) AS number FROM jsonb_array_elements(r.changes) e
            WHERE e.value->>'action' IN (${changeOrder.map((each) => `'${each}'`).join(', ')}) GROUP BY 1) counted) END AS counts
      FROM (SELECT id, coalesce(logs, '{}') AS logs, changes, options FROM runs WHERE id = ANY ($1::uuid[])) r`,
    values: [ids],
  })
  const byId = new Map(rows.map(({ id, ...extract }) => [id, extract]))
  return (id) => byId.get(id) ?? nothing
}

const longestSentence = 300

/**
 * One sentence about the effect of a run, or of a plan, or why there was none. It is the same while a run is queued and while it
 * is running.
 */
export function summaryOf(
  { state, mode, applied, reason }: Pick<Prisma.RunModel, 'state' | 'mode' | 'applied' | 'reason'>,
  { logs, counts }: Pick<Extract, 'logs' | 'counts'>,
): string {
  if (state === 'queued') return 'its outcome is not known yet'
  const counted = countsText(counts)
  if (applied === true) return counted === '' ? 'applied' : counted
  if (state === 'done' && mode === 'plan' && reason === null)
    return `planned: ${counted === '' ? 'nothing would change' : counted}`
  return (logs[0] ?? reason ?? state).slice(0, longestSentence)
}
