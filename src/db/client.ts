import pg from 'pg'
import type { PoolUse } from '../process-metrics.ts'
import { Adapter } from './adapter.ts'
import { retrying } from './backoff.ts'
import { databaseProblem, isConnectionLost, throwProblem } from './errors.ts'
import { type Prisma, PrismaClient } from './generated/client.ts'
import { patience } from './in-time.ts'
import { pooledClient } from './pooled-client.ts'
import type { Pooler } from './pooler.ts'
import { statementName } from './raw.ts'
import { BatchingSocket } from './socket.ts'

/** The database: Prisma's client, over one pool of connections. */
export type Db = PrismaClient

/** One open transaction. It is always a first parameter, never optional. */
export type Tx = Prisma.TransactionClient

/** `db.$disconnect()` closes the pool. */
export type Connected = {
  readonly db: Db
  /** The pool of Prisma's adapter, for what Prisma cannot do (see `pipeline.ts`). */
  readonly pool: pg.Pool
}

/** Each limit is shorter than the one that includes it: lock < statement < idle < Prisma's own. */
export type Timeouts = { readonly lockMs: number; readonly statementMs: number }

const defaults = { lockMs: 3_000, statementMs: 8_000, idleMs: 10_000, prismaMs: 15_000 } as const

/** The limits of a transaction that waits for others which write the same rows. */
export const patient = { timeouts: { lockMs: defaults.lockMs, statementMs: defaults.statementMs } } as const

/**
 * Opens the pool of this process.
 *
 * @param url `postgresql://...`
 * @param applicationName its name in `pg_stat_activity`, such as `gatewright-api`
 * @param max connections at most
 * @param lockMs how long a statement waits for a lock, unless its transaction says otherwise
 * @param pooler the pooler between this process and PostgreSQL, if there is one
 */
export function connect(
  url: string,
  {
    applicationName,
    max,
    lockMs = defaults.lockMs,
    pooler = null,
  }: { applicationName: string; max: number; lockMs?: number; pooler?: Pooler | null },
): Connected {
  const settings = {
    jit: 'off',
    // Each statement is planned once per connection: planning it again costs more than running it.
    plan_cache_mode: 'force_generic_plan',
    lock_timeout: lockMs,
    statement_timeout: defaults.statementMs,
    idle_in_transaction_session_timeout: defaults.idleMs,
  }
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const pool = new pg.Pool({
    connectionString: url,
    application_name: applicationName,
    max,
    // A database that is away must be a 503 within a second.
    connectionTimeoutMillis: patience() - 50,
    // The first request after a pause need not wait for a new connection, and each new one is a packet through a firewall.
    idleTimeoutMillis: 300_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    // This ends a query to a server that froze without closing its sockets.
    query_timeout: defaults.idleMs,
    pipeline: true,
    stream: () => new BatchingSocket(),
    ...(pooler === null ? { options: options.join(' ') } : { Client: pooledClient(settings, pooler.keepsNames) }),
  })
  // The server closed an idle connection: the next query opens another.
  pool.on('error', () => {})
  const adapter = new Adapter(pool, {
    statementNameGenerator: ({ sql }) => statementName(sql),
    disposeExternalPool: true,
  })
  const db = new PrismaClient({
    adapter,
    // Otherwise each call reads its own stack to quote source lines in messages.
    errorFormat: 'minimal',
    transactionOptions: { maxWait: 2_000, timeout: defaults.prismaMs },
  })
  pools.set(db, pool)
  return { db, pool }
}

const pools = new WeakMap<Db, pg.Pool>()

/** The connections of the pool that `connect` opened. */
export function poolUse(db: Db): PoolUse {
  const { totalCount = 0, idleCount = 0, waitingCount = 0, options } = pools.get(db) ?? {}
  const unopened = Math.max(0, (options?.max ?? 0) - totalCount)
  return { inUse: totalCount - idleCount, idle: idleCount, unopened, waiting: waitingCount }
}

/** Whether the database answers at all. @throws when it does not */
export const ping = (db: Db): Promise<unknown> => db.$queryRawUnsafe('SELECT 1')

/**
 * Opens the first connection of a process that starts: on a busy machine that takes longer than an answer may take.
 *
 * @throws {Problem} `unavailable` after five tries
 */
export async function openFirst(db: Db): Promise<void> {
  await retrying(() => ping(db), { max: 5, stepMs: 20, canRetry: isConnectionLost }).catch(throwProblem)
}

/** The connection was lost while committing: the transaction may be committed or not. */
export class CommitUnknown extends Error {
  override readonly name = 'CommitUnknown'
}

type Options = {
  readonly timeouts?: Timeouts
  readonly isolationLevel?: Prisma.TransactionIsolationLevel
  /** `auto`: PostgreSQL may plan a statement by its values, where data is unevenly distributed. */
  readonly plans?: 'auto'
}

/**
 * Runs `work` in one transaction (READ COMMITTED by default) and commits it. An error rolls it back and reaches the
 * caller.
 *
 * @throws {CommitUnknown} when the connection was lost while committing
 * @throws {Problem} `unavailable` when the database is away
 */
export async function transaction<Result>(
  db: Db,
  work: (tx: Tx) => Promise<Result>,
  { timeouts, isolationLevel, plans }: Options = {},
): Promise<Result> {
  let isCommitting = false
  try {
    return await db.$transaction(
      async (tx) => {
        if (timeouts !== undefined) await limit(tx, timeouts)
        if (plans !== undefined) await tx.$executeRawUnsafe(`SET LOCAL plan_cache_mode = ${plans}`)
        const result = await work(tx)
        isCommitting = true
        return result
      },
      isolationLevel === undefined ? {} : { isolationLevel },
    )
  } catch (error) {
    if (isCommitting && isConnectionLost(error))
      throw new CommitUnknown('connection lost while committing', { cause: error })
    throw databaseProblem(error)
  }
}

async function limit(tx: Tx, { lockMs, statementMs }: Timeouts): Promise<void> {
  const text = `SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`
  await tx.$executeRawUnsafe(text, String(lockMs), String(statementMs))
}
