import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { type Announcement, notifications, openAnnouncer } from './announce.ts'
import { databaseProblem, failureCode, isConnectionLost, lonelyProblem } from './failures.ts'
import { PrismaClient } from './generated/client.ts'
import { type Lanes, type Later, openLanes, sendTogether } from './lane.ts'
import { type Statement, sql } from './sql.ts'

/** Anything that runs a statement: the database itself, or one transaction in it. */
export interface Queryable {
  /** @returns the rows, in order; @throws {Problem} `unavailable` when the database is away; other errors as pg's */
  query<Row>(statement: Statement): Promise<Row[]>
}

/** One open transaction. Always a first parameter, never optional. */
export interface Tx extends Queryable {
  readonly transaction: true
  /**
   * Sends a statement whose rows nobody needs, without waiting for it: should it fail, the commit does.
   *
   * @param explain what its failure means, for whoever reads it
   */
  send(statement: Statement, explain?: (error: unknown) => unknown): void
  /**
   * Tells whoever listens, right behind the commit, and not as a part of the transaction
   * (docs/adr/0019-announcements-follow-the-commit.md). It may get lost, or be sent although the commit failed.
   */
  announce(one: Announcement): void
}

/**
 * The database: Prisma for models and ordinary queries, and the pool its adapter shares for the hot statements
 * (docs/adr/0003-hot-statements-on-the-shared-pool.md).
 */
export interface Db extends Queryable {
  readonly prisma: PrismaClient
  readonly pool: pg.Pool
  /** For reads of many shapes, each planned for its own values: `reading` runs them. */
  readonly readers: pg.Pool
  /**
   * As `query`, for what is written and may be lost in a crash of the server: its commit does not wait for the disk
   * (docs/adr/0004-recording-does-not-wait-for-the-disk.md). Should a lock hold it up, it holds up no reader.
   */
  writeUnflushed(statement: Statement): Promise<void>
  /** Tells whoever listens, in the background. It may get lost. */
  announce(one: Announcement): void
  close(): Promise<void>
}

/** Milliseconds. Each is shorter than whoever waits for it: lock < statement < idle. */
export type Timeouts = { lockMs: number; statementMs: number; idleMs: number }

const defaultTimeouts: Timeouts = { lockMs: 3_000, statementMs: 8_000, idleMs: 10_000 }

/** BIGINT and NUMERIC as numbers: counts and keys here are far below 2^53. */
pg.types.setTypeParser(pg.types.builtins.INT8, Number)

/**
 * @param url `postgresql://...`
 * @param applicationName what the server's activity view shows, such as `gatewright-api`
 * @param max connections at most for transactions and for Prisma; statements by themselves share a few more
 */
export function connect(url: string, { applicationName, max }: { applicationName: string; max: number }): Db {
  const settings = {
    connectionString: url,
    application_name: applicationName,
    // Away must be noticed within a second: a caller gets 503, not a hang.
    connectionTimeoutMillis: 900,
    keepAlive: true,
    // A server that froze without closing its sockets.
    query_timeout: defaultTimeouts.idleMs,
    // Statements that do not wait for each other share a round trip (docs/adr/0008-statements-share-round-trips.md).
    pipeline: true,
    options: `${planOnce} ${limits(defaultTimeouts, '-c ', ' ')}`,
  }
  const pool = new pg.Pool({ ...settings, max })
  const readers = new pg.Pool({ ...settings, max, options: `-c jit=off ${limits(defaultTimeouts, '-c ', ' ')}` })
  // An idle connection that the server drops is not news: the next query opens another.
  for (const each of [pool, readers]) each.on('error', () => {})
  // Whoever shares a connection is short: a server that does not answer within a second counts as away.
  // Others wait behind it, so it waits for no lock to speak of.
  const shared = {
    ...settings,
    options: `${planOnce} ${limits({ ...defaultTimeouts, lockMs: 100 }, '-c ', ' ')}`,
    query_timeout: 950,
  }
  const unflushed = { ...shared, options: `${shared.options} -c synchronous_commit=off` }
  const [reads, writes] = [openLanes(() => new pg.Client(shared), 2), openLanes(() => new pg.Client(unflushed), 1)]
  const announcer = openAnnouncer((statement) => alone(writes, statement))
  return {
    prisma: new PrismaClient({ adapter: new PrismaPg(pool) }),
    pool,
    readers,
    query: (statement) => alone(reads, statement),
    writeUnflushed: async (statement) => void (await alone(writes, statement)),
    announce: announcer.announce,
    close: async () => {
      // Whoever still works announces it before his connection is free.
      await Promise.all([reads.close(), pool.end(), readers.end()])
      await announcer.close()
      await writes.close()
    },
  }
}

/** The values are numbers of ours. */
const limits = ({ lockMs, statementMs, idleMs }: Timeouts, before: string, between: string): string =>
  [`lock_timeout=${lockMs}`, `statement_timeout=${statementMs}`, `idle_in_transaction_session_timeout=${idleMs}`]
    .map((setting) => `${before}${setting}`)
    .join(between)

/** The hot statements are the same each time; planning one anew costs more than running it. */
const planOnce = '-c plan_cache_mode=force_generic_plan -c jit=off'

async function alone<Row>(lanes: Lanes, statement: Statement): Promise<Row[]> {
  try {
    return await lanes.use((client) => send<Row>(client, statement, setImmediate))
  } catch (error) {
    throw lonelyProblem(error)
  }
}

async function send<Row>(
  client: pg.Client | pg.PoolClient,
  { name, text, values }: Statement,
  later?: Later,
): Promise<Row[]> {
  sendTogether(client, later)
  const { promise, resolve, reject } = Promise.withResolvers<Row[]>()
  // Given its parts as one object, pg would copy that by its property descriptors: slower than some statements are.
  const query: pg.Query & { name?: string | undefined } = new pg.Query(text, [...values], (error, result) =>
    error ? reject(error) : resolve(result.rows),
  )
  query.name = name
  client.query(query)
  try {
    return await promise
  } catch (error) {
    // Where the driver read the answer tells nobody anything.
    if (error instanceof Error) Error.captureStackTrace(error)
    throw error
  }
}

async function run<Row>(client: pg.PoolClient, statement: Statement): Promise<Row[]> {
  try {
    return await send(client, statement)
  } catch (error) {
    throw databaseProblem(error)
  }
}

/**
 * Runs `work` in one READ COMMITTED transaction and commits it; any error rolls back and goes on to the caller.
 *
 * @throws CommitUnknown when the connection was lost while committing: only the database knows the outcome
 */
export function transaction<Result>(
  { pool, announce }: Pick<Db, 'pool' | 'announce'>,
  work: (tx: Tx) => Promise<Result>,
  timeouts: Timeouts = defaultTimeouts,
): Promise<Result> {
  // The pool's connections have the default ones.
  const begin = timeouts === defaultTimeouts ? 'BEGIN' : `BEGIN; ${limits(timeouts, 'SET LOCAL ', '; ')}`
  return enclose(pool, begin, work, announce)
}

/** Runs reads that see one moment of the database, however many statements they are. */
export function reading<Result>({ readers }: Pick<Db, 'readers'>, work: (q: Queryable) => Promise<Result>) {
  return enclose(readers, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', work).catch((error: unknown): Result => {
    throw error instanceof CommitUnknown ? databaseProblem(error) : lonelyProblem(error)
  })
}

async function enclose<Result>(
  pool: pg.Pool,
  begin: string,
  work: (tx: Tx) => Promise<Result>,
  announce: (one: Announcement) => void = () => {},
): Promise<Result> {
  const client = await pool.connect().catch((error: unknown) => {
    throw databaseProblem(error)
  })
  let broken: Error | undefined
  const lost = (error: Error) => {
    broken = error
  }
  client.on('error', lost)
  const { tx, settled, announcements } = open(client, begin)
  try {
    const result = await work(tx)
    const committed = commit(client, settled())
    // Without others it leaves together with the COMMIT, which is soonest; with others, together with theirs.
    const isAlone = pool.totalCount - pool.idleCount === 1
    if (isAlone) for (const statement of notifications(announcements)) send(client, statement).catch(() => {})
    await committed
    if (!isAlone) announcements.forEach(announce)
    return result
  } catch (failure) {
    const error = await rootOf(failure, settled)
    if (error instanceof CommitUnknown || isConnectionLost(error)) broken ??= error as Error
    if (broken === undefined) {
      await client.query('ROLLBACK').catch((reason: Error) => {
        broken = reason
      })
    }
    throw error instanceof CommitUnknown ? error : databaseProblem(error)
  } finally {
    client.off('error', lost)
    client.release(broken ?? false)
  }
}

/** A statement that fails because one sent before it did says only that: the first failure is the reason. */
async function rootOf(error: unknown, settled: () => Promise<unknown>): Promise<unknown> {
  if (failureCode(error) !== '25P02') return error
  return settled().then(
    () => error,
    (first: unknown) => first,
  )
}

/** BEGIN goes out together with the first statement: if it fails, so does everything behind it. */
function open(
  client: pg.PoolClient,
  begin: string,
): { tx: Tx; settled: () => Promise<unknown>; announcements: readonly Announcement[] } {
  const sent: Promise<unknown>[] = []
  const announcements: Announcement[] = []
  const keep = (answer: Promise<unknown>) => {
    // Whoever commits awaits it; until then a failure is nobody's unhandled rejection.
    answer.catch(() => {})
    sent.push(answer)
  }
  sendTogether(client)
  keep(client.query(begin))
  const tx: Tx = {
    transaction: true,
    query: (statement) => run(client, statement),
    send: (statement, explain = (error) => error) => {
      const answer = run(client, statement)
      keep(answer.catch((error: unknown) => Promise.reject(explain(error))))
    },
    announce: (one) => void announcements.push(one),
  }
  return { tx, settled: () => Promise.all(sent), announcements }
}

/** The connection was lost while committing: only the database knows whether the transaction is in it. */
export class CommitUnknown extends Error {
  override readonly name = 'CommitUnknown'
}

/** @param sent what was sent without waiting: a failure of it makes PostgreSQL answer ROLLBACK to the COMMIT */
async function commit(client: pg.PoolClient, sent: Promise<unknown>): Promise<void> {
  try {
    const [result] = await Promise.all([client.query('COMMIT'), sent])
    // PostgreSQL answers ROLLBACK to a COMMIT of a failed transaction, without an error.
    if (result.command !== 'COMMIT') throw new Error(`the transaction ended in ${result.command}`)
  } catch (error) {
    if (isConnectionLost(error)) throw new CommitUnknown('connection lost while committing', { cause: error })
    throw error
  }
}

/** The database's clock, the only one that expiry is judged by. */
export async function now(db: Queryable): Promise<Date> {
  const [row] = await db.query<{ now: Date }>(sql`SELECT now()`)
  if (row === undefined) throw new Error('SELECT now() returned no row')
  return row.now
}
