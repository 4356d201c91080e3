import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query, unprepared, Values } from '../db/raw.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { outcomeSql, outcomes } from '../runs/outcome.ts'
import { erasedSql } from '../runs/outside.ts'
import { type State, stateSql, states } from './application-states.ts'
import { applicationList } from './applications.ts'
import { conditionsOf } from './conditions.ts'
import type { ListSpec } from './listed.ts'
import { ownersSql, seenRuns } from './runs.ts'

/** The owners of applications, with the states of these, and the last deployment of each. */

const stateRow = z.object({
  /** Null: applications without an owner. */
  owner: z.string().nullable(),
  ...(Object.fromEntries(states.map((each) => [each, z.int()])) as Record<State, z.ZodInt>),
})

/** @property names whether it names applications */
const runRow = z.object({
  owner: z.string().nullable(),
  id: z.guid(),
  at: z.date(),
  outcome: z.enum([...outcomes, 'planned']),
  names: z.boolean(),
})

/** @property last the newest run under this owner, or under none, among the newest that the caller sees */
export type OwnerStates = z.output<typeof stateRow> & { readonly last: z.output<typeof runRow> | undefined }

/** The newest runs among which the last one of each owner is looked for. */
export const mostRuns = 2_000

/**
 * @param owner only this one; null: all
 * @returns those with failing applications first, and last those who have none yet, because their last run did not make one
 */
export async function readOwners(
  db: Db,
  registry: Registry,
  runs: ListSpec<'Run'>,
  actor: Actor,
  owner: string | null = null,
): Promise<readonly OwnerStates[]> {
  const seen = new Values()
  const applications = applicationList(registry)
  const among = [
    `(${seen.bind(owner)}::text IS NULL OR owner = ${seen.bind(owner)})`,
    ...conditionsOf(applications, { actor }, seen.bind),
  ]
  const counts = states.map((each) => `count(*) FILTER (WHERE state = '${each}')::integer AS ${each}`)
  const ofRuns = new Values()
  const newest = `SELECT * FROM runs WHERE mode = 'apply' AND ${seenRuns(runs, actor, ofRuns)}${owner === null ? '' : ` AND ${ofRuns.bind(owner)} = ANY (${ownersSql})`} ORDER BY created_at DESC LIMIT ${mostRuns}`
  const stateCounts = `SELECT owner, ${counts.join(', ')} FROM (
      SELECT owner, ${stateSql} AS state FROM applications WHERE ${among.join(' AND ')}
      UNION ALL SELECT owner, 'changed_outside' FROM ${erasedSql} applications WHERE ${among.join(' AND ')}) each
    GROUP BY owner ORDER BY failing DESC, changed_outside DESC, owner`
  const lastRuns = `SELECT DISTINCT ON (o.owner) o.owner, runs.id, runs.created_at AS at, ${outcomeSql} AS outcome,
      (runs.slug IS NOT NULL OR jsonb_exists(runs.options, 'applications')) AS names
    FROM (${newest}) runs LEFT JOIN LATERAL unnest(${ownersSql}) o(owner) ON true ORDER BY o.owner, runs.created_at DESC`
  const [all, last] = await Promise.all([
    query(db, stateRow, unprepared({ text: stateCounts, values: seen.list })),
    query(db, runRow, unprepared({ text: lastRuns, values: ofRuns.list })),
  ])
  const byOwner = new Map(last.map((each) => [each.owner, each]))
  const known = new Set(all.map((each) => each.owner))
  const without = last.filter(
    ({ owner: of, outcome, names }) =>
      !known.has(of) && (owner === null || of === owner) && names && outcome !== 'applied' && outcome !== 'unchanged',
  )
  const none = { applied: 0, failing: 0, waiting: 0, changed_outside: 0 }
  return [...all, ...without.map(({ owner }) => ({ owner, ...none }))].map((each) => ({
    ...each,
    last: byOwner.get(each.owner),
  }))
}
