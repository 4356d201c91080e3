import type { Db } from '../../db/client.ts'
import { inTime } from '../../db/in-time.ts'
import { type KnownProcess, readProcesses } from '../../db/presence.ts'
import { seldom } from '../../http/probe.ts'
import type { Checks, Inspect } from '../../http/readiness.ts'
import { type ListSpec, scopeOf } from '../../lists/list.ts'
import { type Figures, newestRuns, type Period, readFigures } from '../../lists/run-figures.ts'
import { type RunRow, readRunRows } from '../../lists/run-rows.ts'
import { findRuns } from '../../lists/runs-of-operators.ts'
import { tokenOwners } from '../../lists/tokens.ts'
import { type Actor, allows } from '../../permissions.ts'
import type { ApplyQueue } from '../../queue/backend.ts'
import { answered } from '../../queue/enqueue.ts'
import { type Pause, readPause } from '../../queue/pause.ts'
import { type AtWork, readAtWork } from '../../runs/at-work.ts'
import { readBacklog } from '../../runs/queued.ts'
import { type Expiring, expiringCertificates, expiringTokens } from '../../views/expiries.ts'
import { type Refusals, readRefusals } from '../../views/refusal.ts'
import { groupByCause, type RunGroup } from '../runs/groups.ts'
import { shared } from './shared.ts'

/** The contents of the first page. Each part is read by itself: null is one that could not be read. */
export type Now = {
  readonly at: Date
  readonly checks: Checks
  /** `none`: the queue is not paused. */
  readonly pause: Pause | 'none' | null
  readonly failedJobs: number | null
  readonly workers: readonly KnownProcess[] | null
  /** The processes of the API. */
  readonly servers: readonly KnownProcess[] | null
  readonly backlog: Awaited<ReturnType<typeof readBacklog>> | null
  readonly atWork: readonly (AtWork & { readonly run: RunRow })[] | null
  readonly period: Period
  readonly figures: Figures | null
  readonly failures: Failures | null
  readonly tokens: readonly Expiring[] | null
  /** Undefined for callers who may not view certificates. */
  readonly certificates: readonly Expiring[] | null | undefined
  readonly newest: readonly RunRow[] | null
  /** The refusals of the last hour. */
  readonly refused: Refusals | null
}

/** Failures by cause. @property isAll false: there are more, of which these are the newest */
export type Failures = { readonly groups: readonly RunGroup[]; readonly isAll: boolean }

const mostFailures = 200
const mostNewest = 10

export type Sources = {
  readonly db: Db
  readonly queue: ApplyQueue
  readonly inspect: Inspect
  readonly runs: ListSpec<'Run'>
}

export type ReadNow = (actor: Actor, period: Period) => Promise<Now>

/** Opens the reader of the first page. Readers with the same rights, who come at the same time, share a reading. */
export function openNow({ db, queue, inspect, runs }: Sources): ReadNow {
  // They take longer to read than the rest, and are the same for all who may see them.
  const certificatesOfAll = seldom(() => expiringCertificates(db), 60_000)
  // Counts of a day take longer to make, and change less. Many readers see the same runs.
  const figuresOf = {
    hour: shared(900, (actor: Actor) => readFigures(db, runs, actor, 'hour')),
    day: shared(15_000, (actor: Actor) => readFigures(db, runs, actor, 'day')),
  }
  const read = shared(0, async (actor: Actor, period: Period): Promise<Now> => {
    const newestRows = newestRuns(db, runs, actor, mostNewest).then((ids) => readRunRows(db, runs, actor, ids))
    const [
      checks,
      pause,
      failedJobs,
      workers,
      servers,
      backlog,
      atWork,
      figures,
      failures,
      tokens,
      certificates,
      newest,
      refused,
    ] = await Promise.all([
      inspect(),
      known(readPause(queue, db).then((found): Now['pause'] => found ?? 'none')),
      known(answered(queue.getJobCounts('failed')).then(({ failed = 0 }) => failed)),
      known(inTime(readProcesses(db, 'workers'))),
      known(inTime(readProcesses(db, 'servers'))),
      known(inTime(readBacklog(db))),
      known(inTime(readWork(db, runs, actor))),
      known(inTime(figuresOf[period](scopeKey(runs, actor), actor))),
      known(inTime(failuresOf(db, runs, actor))),
      known(inTime(expiringTokens(db, actor, tokenOwners(actor)))),
      allows(actor, 'view_certificatekeypair') ? known(certificatesOfAll()) : undefined,
      known(inTime(newestRows)),
      known(inTime(readRefusals(db, actor, { since: new Date(Date.now() - 3_600_000) }))),
    ])
    return {
      at: new Date(),
      checks,
      pause,
      failedJobs,
      workers,
      servers,
      backlog,
      atWork,
      period,
      figures,
      failures,
      tokens,
      certificates,
      newest,
      refused,
    }
  })
  return (actor, period) => read(`${period} ${rightsKey(actor)}`, actor, period)
}

/** Callers with the same key see the same parts. */
const rightsKey = ({ pk, isSuperuser, permissions }: Actor): string =>
  JSON.stringify([pk, isSuperuser, [...permissions].sort()])

const known = <Found>(asked: Promise<Found>): Promise<Found | null> => asked.catch(() => null)

/** The key of a caller's runs. Callers who see the same runs share their counts. */
function scopeKey(runs: ListSpec<'Run'>, actor: Actor): string {
  const { own, owners, caller } = scopeOf(runs, actor)
  return JSON.stringify([own, owners, own === undefined && owners === undefined ? null : caller])
}

async function readWork(db: Db, runs: ListSpec<'Run'>, actor: Actor) {
  const found = await readAtWork(db)
  const rows = await readRunRows(
    db,
    runs,
    actor,
    found.map(({ id }) => id),
  )
  const byId = new Map(rows.map((row) => [row.id, row]))
  return found.flatMap((each) => {
    const run = byId.get(each.id)
    if (run === undefined) return []
    // The run that blocks it may be one that this caller does not see.
    const { blocker } = each
    const other = blocker?.run ?? null
    return [{ ...each, run, blocker: blocker && { ...blocker, run: other !== null && byId.has(other) ? other : null } }]
  })
}

async function failuresOf(db: Db, runs: ListSpec<'Run'>, actor: Actor): Promise<Failures> {
  const sent = { period: 'week', outcome: 'failed' }
  const { ids } = await findRuns(db, runs, actor, { sent, size: mostFailures + 1 })
  const rows = await readRunRows(db, runs, actor, ids.slice(0, mostFailures))
  return { groups: groupByCause(rows), isAll: ids.length <= mostFailures }
}
