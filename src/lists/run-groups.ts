import type { Db } from '../db/client.ts'
import { type Actor, allows } from '../permissions.ts'
import { repairs } from '../runs/repairs.ts'
import type { RunFact } from './run-search.ts'

/**
 * Runs with one outcome and one cause. @property open how many of them failed and were not repaired by a later run; null when the
 * caller may not know, and for runs that did not fail
 */
export type RunGroup = {
  readonly outcome: RunFact['outcome']
  readonly cause: string
  readonly runs: number
  readonly open: number | null
  readonly last: Pick<RunFact, 'id' | 'createdAt'>
  readonly submitters: readonly string[]
  readonly owners: readonly string[]
}

/** @param facts the newest first @returns the groups that still fail first, and then the latest */
export async function groupByCause(db: Db, actor: Actor, facts: readonly RunFact[]): Promise<readonly RunGroup[]> {
  const maySeeCauses = allows(actor, 'view_run')
  const failed = facts.filter(({ outcome }) => outcome === 'failed')
  const repaired = maySeeCauses
    ? await repairs(
        db,
        failed.map(({ id }) => ({ id, state: 'failed' })),
      )
    : null
  const causeOf = ({ cause, reason }: RunFact) => (maySeeCauses ? cause : null) ?? reason ?? ''
  const groups = [...Map.groupBy(facts, (fact) => `${fact.outcome} ${causeOf(fact)}`).values()]
  return groups
    .flatMap((all): RunGroup[] => {
      const [last] = all
      if (last === undefined) return []
      const { outcome } = last
      const distinct = (of: (each: RunFact) => string | readonly string[] | null) => [
        ...new Set(all.flatMap((each) => of(each) ?? [])),
      ]
      const open = outcome === 'failed' && repaired !== null ? all.filter(({ id }) => !repaired.has(id)).length : null
      const names = { submitters: distinct(({ submitter }) => submitter), owners: distinct(({ owners }) => owners) }
      return [{ outcome, cause: causeOf(last), runs: all.length, open, last, ...names }]
    })
    .sort((one, other) => Number((other.open ?? 0) > 0) - Number((one.open ?? 0) > 0))
}
