import type { RunRow } from '../../lists/run-rows.ts'

/**
 * Runs with one outcome and one cause. @property open how many of them failed and were not repaired by a later run; null when the
 * caller may not know, and for runs that did not fail
 */
export type RunGroup = {
  readonly outcome: RunRow['outcome']
  readonly cause: string
  readonly runs: number
  readonly open: number | null
  readonly last: { readonly id: string; readonly createdAt: Date }
  readonly submitters: readonly string[]
  readonly owners: readonly string[]
}

/** @param rows the newest first @returns the groups that still fail first, and then the latest */
export function groupByCause(rows: readonly RunRow[]): readonly RunGroup[] {
  const causeOf = ({ cause, reason }: RunRow) => cause ?? reason ?? ''
  const groups = [...Map.groupBy(rows, (row) => `${row.outcome} ${causeOf(row)}`).values()]
  return groups
    .flatMap((all): RunGroup[] => {
      const [last] = all
      if (last === undefined) return []
      const { id, outcome, created_at, repaired } = last
      const isKnown = outcome === 'failed' && repaired !== null
      return [
        {
          outcome,
          cause: causeOf(last),
          runs: all.length,
          open: isKnown ? all.filter((each) => each.repaired === false).length : null,
          last: { id, createdAt: new Date(created_at) },
          submitters: [...new Set(all.flatMap(({ submitter_name }) => submitter_name ?? []))],
          owners: [...new Set(all.flatMap(({ owners }) => owners))],
        },
      ]
    })
    .sort((one, other) => Number((other.open ?? 0) > 0) - Number((one.open ?? 0) > 0))
}
