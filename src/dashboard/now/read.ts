import type { Db } from '../../db/client.ts'
import { inTime, patience } from '../../db/in-time.ts'
import { readProcesses } from '../../db/presence.ts'
import { probe } from '../../http/probe.ts'
import { readOwners } from '../../lists/owner-states.ts'
import { type Figures, newestRuns, readFigures } from '../../lists/run-figures.ts'
import { readRunRows } from '../../lists/run-rows.ts'
import { type RunList, seenRuns } from '../../lists/runs.ts'
import { findRuns } from '../../lists/runs-of-operators.ts'
import { type Actor, allows, allowsSome } from '../../permissions.ts'
import { type Pause, readPause } from '../../queue/pause.ts'
import { readAtWork } from '../../runs/at-work.ts'
import { readBacklog } from '../../runs/queued.ts'
import { expiringCertificates, expiringTokens } from '../../views/expiries.ts'
import { readRefusals } from '../../views/refusal.ts'
import { groupByCause } from '../runs/tables.ts'
import type { Sources } from '../sources.ts'

const mostFailures = 200
const mostNewest = 10

const figuresEveryMs = 900
/** The most figures that are kept, each of callers who see the same runs. */
const mostFigures = 200

/** The contents of the first page. Each part is read by itself: null is one that could not be read. */
export type Now = Awaited<ReturnType<ReturnType<typeof openNow>>>

export function openNow({ db, registry, queue, inspect, runs }: Sources) {
  // They take longer to read than the rest, and are the same for all who may see them.
  const certificatesOfAll = probe(() => expiringCertificates(db), { everyMs: 60_000 })
  const figures = new Map<string, () => Promise<Figures>>()
  /** Callers who see the same runs share their figures. */
  function figuresOf(actor: Actor): Promise<Figures> {
    const values: unknown[] = []
    const seen = seenRuns(runs, actor, { bind: (value) => `$${values.push(value)}` })
    const key = JSON.stringify([seen, values])
    if (figures.size >= mostFigures) figures.clear()
    const ask = () => probe(() => readFigures(db, runs, actor), { everyMs: figuresEveryMs, withinMs: 0.9 * patience() })
    return figures.getOrInsertComputed(key, ask)()
  }

  return async (actor: Actor) => {
    const newest = newestRuns(db, runs, actor, mostNewest).then((ids) => readRunRows(db, runs, actor, ids))
    const lastHour = new Date(Date.now() - 3_600_000)
    return {
      ...(await together({
        checks: inspect.applies(),
        pause: known(readPause(queue, db).then((found): Pause | 'none' => found ?? 'none')),
        workers: known(inTime(readProcesses(db, 'workers'))),
        servers: known(inTime(readProcesses(db, 'servers'))),
        backlog: known(inTime(readBacklog(db))),
        atWork: known(inTime(readWork(db, runs, actor))),
        /** Undefined for callers who see no application. */
        teams: allowsSome(actor, 'view_application') ? known(inTime(readOwners(db, registry, runs, actor))) : undefined,
        figures: known(figuresOf(actor)),
        failures: known(inTime(failuresOf(db, runs, actor))),
        tokens: known(inTime(expiringTokens(db, actor))),
        /** Undefined for callers who may not view certificates. */
        certificates: allows(actor, 'view_certificatekeypair') ? known(certificatesOfAll()) : undefined,
        newest: known(inTime(newest)),
        refused: known(inTime(readRefusals(db, actor, { since: lastHour }))),
      })),
      at: new Date(),
    }
  }
}

const known = <Found>(asked: Promise<Found>): Promise<Found | null> => asked.catch(() => null)

/** The answers, by the names of the questions. */
async function together<Asked extends object>(asked: Asked): Promise<{ [Name in keyof Asked]: Awaited<Asked[Name]> }> {
  const answers = await Promise.all(Object.values(asked))
  return Object.fromEntries(Object.keys(asked).map((name, index) => [name, answers[index]])) as never
}

/** The longest at work first. @returns `ageMs`: since the first attempt */
async function readWork(db: Db, runs: RunList, actor: Actor) {
  const found = await readAtWork(db)
  const ids = found.map(({ id }) => id)
  const rows = await readRunRows(db, runs, actor, ids)
  const byId = new Map(rows.map((row) => [row.id, row]))
  const all = found.flatMap((each) => {
    const run = byId.get(each.id)
    if (run === undefined) return []
    const workMs = (each.workS ?? 0) * 1_000
    const ageMs = run.started_at === null ? workMs : Math.max(workMs, Date.now() - Date.parse(run.started_at))
    // The run that blocks it may be one that this caller does not see.
    const { blocker } = each
    const other = blocker?.run ?? null
    const shown = blocker && { ...blocker, run: other !== null && byId.has(other) ? other : null }
    return [{ ...each, run, ageMs, blocker: shown }]
  })
  return all.sort((one, other) => other.ageMs - one.ageMs)
}

/** Runs that failed, or that the service cancelled, by cause. @returns `isAll` false: there are more, of which these are the newest */
async function failuresOf(db: Db, runs: RunList, actor: Actor) {
  const sent = { period: 'week', outcome: 'attention' }
  const { ids } = await findRuns(db, runs, actor, { sent, size: mostFailures + 1 })
  const rows = await readRunRows(db, runs, actor, ids.slice(0, mostFailures))
  return { groups: groupByCause(rows), isAll: ids.length <= mostFailures }
}
