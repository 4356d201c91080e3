import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query, Values } from '../db/raw.ts'
import type { Actor } from '../permissions.ts'
import { storedPipeline } from '../pipeline.ts'
import { outcomeSql, outcomes } from '../runs/outcome.ts'
import { logNotShown, runsWithHiddenLogs } from '../views/former-owner.ts'
import { readRepairs } from '../views/repair.ts'
import { completePage, type RunHead, runHeadSelect, toRunHead } from '../views/run.ts'
import { inOrder } from '../views/view.ts'
import { ownersSql, type RunList, seenRuns } from './runs.ts'

/** Runs as the pages of operators list them: without their logs, which may have a line for each of many entries. */

const factRow = z.object({
  id: z.guid(),
  outcome: z.enum([...outcomes, 'planned']),
  owners: z.array(z.string()),
  sentence: z.string().nullable(),
  former: z.string().nullable(),
  pipeline: storedPipeline,
})

/**
 * A run in a list of operators.
 *
 * @property sentence the first line of the log of a run that was not applied; null for a plan that was made
 * @property outcome `planned`: it was a plan
 * @property former the run that it rolls back to
 * @property isBlocked a lock is not given to it
 */
export type RunRow = RunHead & z.output<typeof factRow> & { readonly isBlocked: boolean }

/** Reads runs by their ids, one page or less, in this order, as far as the caller sees them. */
export async function readRunRows(
  db: Db,
  spec: RunList,
  actor: Actor,
  ids: readonly string[],
): Promise<readonly RunRow[]> {
  if (ids.length === 0) return []
  const values = new Values()
  const facts = await query(db, factRow, {
    text: `SELECT runs.id, ${outcomeSql} AS outcome, ${ownersSql} AS owners,
        CASE WHEN runs.applied IS NOT TRUE AND (runs.mode = 'apply' OR runs.reason IS NOT NULL) THEN left(runs.logs[1], 300)
        END AS sentence, runs.options->>'former' AS former, runs.options->'pipeline' AS pipeline
      FROM runs WHERE runs.id = ANY (${values.bind(ids)}::uuid[]) AND ${seenRuns(spec, actor, values)}`,
    values: values.list,
  })
  const byId = new Map(facts.map((fact) => [fact.id, fact]))
  const found = await db.run.findMany({
    where: { id: { in: [...byId.keys()] } },
    select: runHeadSelect,
    relationLoadStrategy: 'join',
  })
  const seen = ids.filter((id) => byId.has(id))
  const repairOf = await readRepairs(db, found, actor)
  const hidden = await runsWithHiddenLogs(db, seen, actor)
  const rows = inOrder(seen, found, ({ id }) => id).flatMap((row) => {
    const fact = byId.get(row.id)
    if (fact === undefined) return []
    const sentence = fact.sentence !== null && hidden.has(row.id) ? logNotShown : fact.sentence
    const pipeline = storedPipeline.parse(fact.pipeline)
    return { ...toRunHead(row, actor, repairOf(row.id)), ...fact, pipeline, sentence, isBlocked: false }
  })
  return completePage(db, rows, { actor, whyOf: spec.whyOf, add: ({ code }) => ({ isBlocked: code === 'lock' }) })
}
