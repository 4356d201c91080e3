import type { RunRow } from '../../lists/run-rows.ts'

/** Runs with one outcome and one cause. */
export type RunGroup = ReturnType<typeof groupByCause>[number]

/**
 * Groups runs.
 *
 * @param rows the newest first
 * @returns the groups that still fail first, and then the latest; `open`: how many of them failed or were cancelled, and were not
 * repaired by a later run; null when the caller may not know, and for other runs
 */
export function groupByCause(rows: readonly RunRow[]) {
  // Numbers of processes and times do not part what has one cause.
  const keyOf = (row: RunRow) => `${row.outcome} ${causeOf(row).replaceAll(/\d+/g, '#')}`
  const groups = [...Map.groupBy(rows, keyOf).values()].flatMap((all) => {
    const [last] = all
    if (last === undefined) return []
    const { id, outcome, created_at, repaired } = last
    const isKnown = (outcome === 'failed' || outcome === 'cancelled') && repaired !== null
    return {
      outcome,
      cause: causeOf(last),
      runs: all.length,
      open: isKnown ? all.filter((each) => each.repaired === false).length : null,
      last: { id, createdAt: new Date(created_at) },
      submitters: [...new Set(all.flatMap(({ submitter_name }) => submitter_name ?? []))],
      owners: [...new Set(all.flatMap(({ owners }) => owners))],
    }
  })
  return groups.sort((one, other) => Number((other.open ?? 0) > 0) - Number((one.open ?? 0) > 0))
}

const causeOf = ({ cause, reason, outcome, sentence }: RunRow) =>
  cause ?? (outcome === 'cancelled' ? sentence?.replace(/^not applied: /, '') : null) ?? reason ?? ''
