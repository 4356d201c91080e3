/** The outcome of a run, in one word. `unchanged`: it was applied, and nothing was to be changed. `unknown`: it has not ended. */
export const outcomes = ['applied', 'unchanged', 'refused', 'failed', 'cancelled', 'unknown'] as const
export type Outcome = (typeof outcomes)[number]

/** A run of an earlier version has no changes: it may have changed something. */
const changesNothing = `jsonb_path_exists(runs.changes, '$[*] ? (@.action != "unchanged")') IS FALSE`

/**
 * The rows of `runs` with an outcome, as conditions in SQL. A plan has none of them once it has ended.
 */
export const hasOutcome: Readonly<Record<Outcome, string>> = {
  applied: `(runs.applied AND NOT ${changesNothing})`,
  unchanged: `(runs.applied AND ${changesNothing})`,
  refused: "(runs.state = 'done' AND NOT runs.applied AND runs.mode = 'apply')",
  failed: "runs.state = 'failed'",
  cancelled: "runs.state = 'cancelled'",
  unknown: "runs.state = 'queued'",
}

/** The outcome of a row of `runs`, in SQL: an ended plan is `planned`. */
export const outcomeSql = `CASE WHEN runs.state = 'done' AND runs.applied THEN
    CASE WHEN ${changesNothing} THEN 'unchanged' ELSE 'applied' END
  WHEN runs.state = 'failed' THEN 'failed' WHEN runs.state = 'cancelled' THEN 'cancelled'
  WHEN runs.state = 'queued' THEN 'unknown' WHEN runs.mode = 'plan' THEN 'planned' ELSE 'refused' END`

/** The outcome of a run that was read. @param isUnchanged whether it has changes, and all of them are `unchanged` */
export function outcomeOf(
  { state, mode, applied }: { readonly state: string; readonly mode: string; readonly applied: boolean | null },
  isUnchanged: boolean,
): Outcome | 'planned' {
  if (state === 'failed' || state === 'cancelled') return state
  if (state !== 'done') return 'unknown'
  if (applied !== true) return mode === 'plan' ? 'planned' : 'refused'
  return isUnchanged ? 'unchanged' : 'applied'
}
