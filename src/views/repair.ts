import type { Db, Tx } from '../db/client.ts'
import { type Actor, allows } from '../permissions.ts'
import { mayReadRun } from '../runs/options.ts'
import { repairs } from '../runs/repairs.ts'

/** Whether a later run repaired a failed one, and which, as far as the caller sees that run. */

export type Repair = { readonly repaired: boolean | null; readonly repaired_by: string | null }

type Failed = Parameters<typeof repairs>[1]

/** @returns the repair of each of the runs, by its id */
export async function readRepairs(db: Db | Tx, runs: Failed, actor: Actor): Promise<(id: string) => Repair> {
  if (!allows(actor, 'view_run')) return () => ({ repaired: null, repaired_by: null })
  const found = await repairs(db, runs)
  const seen = await seenOf(db, [...new Set(found.values())], actor)
  return (id) => {
    const by = found.get(id)
    return { repaired: by !== undefined, repaired_by: by !== undefined && seen.has(by) ? by : null }
  }
}

async function seenOf(db: Db | Tx, ids: string[], actor: Actor): Promise<ReadonlySet<string>> {
  if (ids.length === 0) return new Set()
  const select = { id: true, options: true, submitterPk: true } as const
  const rows = await db.run.findMany({ where: { id: { in: ids } }, select })
  return new Set(rows.filter((row) => mayReadRun(row, actor)).map(({ id }) => id))
}
