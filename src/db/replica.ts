import { Readable } from 'node:stream'
import { z } from 'zod'
import { Problem } from '../errors.ts'
import { causeOf, type Logger } from '../log.ts'
import { limitTime } from '../time-limit.ts'
import { connect, type Db } from './client.ts'
import { failureCode } from './errors.ts'
import { patience } from './in-time.ts'
import type { Pooler } from './pooler.ts'
import { query } from './raw.ts'

/**
 * A streaming replica that lists read from, while it is close enough behind the primary
 * (docs/adr/0091-lists-may-read-from-a-replica.md).
 */

/** The reasons why a list was read from the primary, although its database has a replica. */
export const fallbacks = ['away', 'lagging', 'failed'] as const
export type Fallback = (typeof fallbacks)[number]

/** @property lagS how far it was behind at the time of the measurement, in seconds; null when that is not known */
export type ReplicaState = {
  readonly why: 'away' | 'refused' | 'lagging' | 'foreign' | null
  readonly lagS: number | null
}

export type Replica = {
  /**
   * The state that was measured within the last second. An older one is measured again, and when that takes long, the older one
   * is the answer: a slow replica makes no probe slow.
   */
  state(): Promise<ReplicaState>
  /** How many lists fell back, by reason. */
  readonly fallenBack: Readonly<Record<Fallback, number>>
  close(): Promise<void>
}

type Opened = Replica & {
  choose(): Promise<Db | null>
  fallBack(why: Fallback): void
  whileThere<Result>(reading: Promise<Result>): Promise<Result>
}

const replicas = new WeakMap<Db, Opened>()

/** The replica that `openReplica` opened for this database. */
export const replicaOf = (db: Db): Replica | undefined => replicas.get(db)

const away: ReplicaState = { why: 'away', lagS: null }
const refused: ReplicaState = { why: 'refused', lagS: null }

/** A measurement is used for this long. */
const keptMs = 1_000
/** Readiness and a scrape wait this long for a measurement: they wait up to 700 ms for other answers. */
const probedMs = 300
/** A list that takes longer checks whether the replica is still there, and again each time. */
const silentMs = 1_000

type ReplicaLog = Pick<Logger, 'info' | 'warn'>

/**
 * Lets the lists of a database read from its replica. A replica that is away, or behind, prevents no start.
 *
 * @param maxLagMs how far behind the primary it may be when a list begins to read
 * @param max connections at most
 */
export function openReplica(
  primary: Db,
  url: string,
  { maxLagMs, max, pooler, log }: { maxLagMs: number; max: number; pooler: Pooler | null; log: ReplicaLog },
): Replica {
  const { db } = connect(url, { applicationName: 'gatewright-lists', max, pooler })
  // Measurements have a connection of their own: behind long lists, a replica that answers would seem to be away.
  const { db: measured } = connect(url, { applicationName: 'gatewright-lag', max: 1, pooler })
  const fallenBack: Record<Fallback, number> = { away: 0, lagging: 0, failed: 0 }
  let last: ReplicaState | undefined
  let measuredAt = Number.NEGATIVE_INFINITY
  let isOutdated = true
  let measuring: Promise<void> | undefined

  const note = (state: ReplicaState, at: number, cause?: unknown) => {
    const sentence = describeReplica(state)
    const fields = cause === undefined ? {} : { cause: causeOf(cause) }
    if (state.why !== last?.why)
      log[sentence === null ? 'info' : 'warn'](fields, sentence ?? 'lists read from the replica')
    last = state
    measuredAt = at
    isOutdated = false
  }

  /**
   * The last state with its lag grown by the time since: while the primary does not say how far it has written, the lag grows no
   * faster.
   */
  const grown = (): ReplicaState => {
    if (last === undefined || last.lagS === null) return last ?? away
    const lagS = last.lagS + (performance.now() - measuredAt) / 1_000
    return { why: lagS * 1_000 > maxLagMs ? 'lagging' : null, lagS }
  }

  /** Ends in time: a late answer counts as none. The next measurement waits until this one has its answer. */
  const measure = (): Promise<void> => {
    if (measuring !== undefined) return measuring
    const since = performance.now()
    const withinMs = patience()
    let isOfPrimary = true
    const asked = positionOf(primary).then((written) => {
      isOfPrimary = false
      return lagOf(measured, written, maxLagMs)
    })
    const late = () => {
      throw new Error(`no answer within ${withinMs} ms`)
    }
    measuring = limitTime(asked, withinMs, late).then(
      (state) => note(state, since),
      (error: unknown) => note(isOfPrimary ? grown() : isRefusal(error) ? refused : away, performance.now(), error),
    )
    Promise.allSettled([asked, measuring]).then(() => {
      measuring = undefined
    })
    return measuring
  }

  /**
   * Whether the last measurement still holds. The lag grows until the next one, so that a list is never further behind than it
   * may be.
   */
  const isKept = () => {
    const ageMs = performance.now() - measuredAt
    const isNear = last?.why !== null || (last.lagS ?? 0) * 1_000 + ageMs <= maxLagMs
    return !isOutdated && ageMs < keptMs && isNear
  }

  /** @param withinMs how long to wait for a measurement; absent: until it ends */
  async function stateWithin(withinMs?: number): Promise<ReplicaState> {
    if (!isKept()) {
      const ended = measure()
      // Nothing waits for a replica that is not used: a later list will know.
      if (last === undefined || last.why === null)
        await (withinMs === undefined ? ended : limitTime(ended, withinMs, () => {}))
    }
    return last ?? away
  }

  /**
   * Waits for a slow read while the replica answers. A replica that froze would give no answer before the time-out of the
   * connection.
   *
   * @throws what `reading` throws, and `Silent` when the replica is away
   */
  async function whileThere<Result>(reading: Promise<Result>): Promise<Result> {
    const ended = reading.then(
      () => true,
      () => true,
    )
    while (!(await limitTime(ended, silentMs, () => false))) {
      const { why } = await stateWithin()
      if (why === 'away') throw new Silent('the replica does not answer')
    }
    return reading
  }

  const fallBack = (why: Fallback) => {
    fallenBack[why] += 1
    if (why === 'failed') isOutdated = true
  }
  const replica: Opened = {
    state: () => stateWithin(probedMs),
    fallenBack,
    fallBack,
    whileThere,
    choose: async () => {
      const { why } = await stateWithin()
      if (why === null) return db
      fallBack(why === 'lagging' ? why : 'away')
      return null
    },
    close: async () => {
      replicas.delete(primary)
      await Promise.all([db.$disconnect(), measured.$disconnect()])
    },
  }
  replicas.set(primary, replica)
  return replica
}

/**
 * Reads from the replica of a database, if it has one that is close enough, else from the database itself. A read that the
 * replica refuses, or whose rows it does not have yet, is repeated on the database.
 *
 * @param read may be called twice
 */
export async function throughReplica<Result>(db: Db, read: (from: Db) => Promise<Result>): Promise<Result> {
  const replica = replicas.get(db)
  const from = (await replica?.choose()) ?? null
  if (replica === undefined || from === null) return read(db)
  const reading = read(from)
  try {
    return await replica.whileThere(reading)
  } catch (error) {
    if (!isOfReplica(error)) throw error
    const isSilent = error instanceof Silent
    if (isSilent) reading.then(discard, () => {})
    replica.fallBack(isSilent ? 'away' : 'failed')
    return read(db)
  }
}

/** The replica does not answer any more. */
class Silent extends Error {}

/** Ends an answer that is too late, which would go on to read. */
function discard(late: unknown): void {
  if (late instanceof Readable) late.destroy()
}

/** The server answers, but not this login, this database, or this question. */
const isRefusal = (error: unknown): boolean => /^(28|3D|42)/.test(failureCode(error) ?? '')

/** A statement that takes too long. */
const queryCanceled = '57014'

/**
 * Whether the primary may answer otherwise. A limit of the service, and a statement that takes too long, would fail there too.
 */
function isOfReplica(error: unknown): boolean {
  if (!(error instanceof Problem)) return failureCode(error) !== queryCanceled
  return error.code === 'unavailable' ? error.cause !== undefined : error.code !== 'too_many_requests'
}

const system = '(SELECT system_identifier::text FROM pg_control_system()) AS system'
const primaryRow = z.object({ position: z.string(), now: z.number(), system: z.string() })
const replicaRow = z.object({
  isReplica: z.boolean(),
  system: z.string(),
  isCurrent: z.boolean(),
  replayedAt: z.number().nullable(),
})

type Written = z.output<typeof primaryRow>

async function positionOf(primary: Db): Promise<Written> {
  const [written] = await query(primary, primaryRow, {
    text: `SELECT pg_current_wal_insert_lsn()::text AS position, extract(epoch FROM clock_timestamp())::float8 AS now, ${system}`,
    values: [],
  })
  if (written === undefined) throw new Error('no answer of the primary')
  return written
}

/**
 * The replica has all that the primary had written at the time of the question, or else all up to the last commit that it has
 * replayed. Both times are by the clock of the primary. A replica that has lost its connection has neither.
 */
async function lagOf(replica: Db, written: Written, maxLagMs: number): Promise<ReplicaState> {
  const [seen] = await query(replica, replicaRow, {
    text: `SELECT pg_is_in_recovery() AS "isReplica", coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) AS "isCurrent",
      extract(epoch FROM pg_last_xact_replay_timestamp())::float8 AS "replayedAt", ${system}`,
    values: [written.position],
  })
  if (seen === undefined) throw new Error('no answer about the replica')
  if (!seen.isReplica || seen.system !== written.system) return { why: 'foreign', lagS: null }
  const lagS = seen.isCurrent ? 0 : seen.replayedAt === null ? null : Math.max(0, written.now - seen.replayedAt)
  return { why: lagS === null || lagS * 1_000 > maxLagMs ? 'lagging' : null, lagS }
}

/** A sentence for the operator, who may read the answer of readiness; null when lists read from the replica. */
export function describeReplica({ why, lagS }: ReplicaState): string | null {
  if (why === null) return null
  const reason = {
    away: 'does not answer',
    refused: 'refuses the login, the database or a question; the log has the cause',
    foreign: 'is no streaming replica of this database',
    lagging: lagS === null ? 'has replayed nothing yet' : `is ${Math.round(lagS * 10) / 10} s behind`,
  }[why]
  return `Lists read from the primary: the replica of DATABASE_READ_URL ${reason}.`
}
