import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'

/** What PostgreSQL wrote for one operation, on average. */
export type Writes = {
  /** Bytes of the log, without copies of whole pages, which depend on the time since the last checkpoint. */
  readonly wal: number
  readonly heapInserts: number
  readonly indexInserts: number
  readonly updates: number
  /** Updates that left all indexes as they are. */
  readonly hot: number
}

/**
 * Counts by the records of the log (`pg_walinspect`), of all databases of the server: nothing else may use it.
 *
 * @param work returns how many operations it did
 */
export async function countWrites(database: string, work: () => Promise<number>): Promise<Writes> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  try {
    await client.query('CREATE EXTENSION IF NOT EXISTS pg_walinspect; CHECKPOINT')
    const from = await position(client)
    const count = await work()
    // What is not flushed at once.
    await delay(1_000)
    const { rows } = await client.query<{ name: string; count: number; bytes: number }>(
      `SELECT "resource_manager/record_type" AS name, count::float8, record_size::float8 AS bytes
        FROM pg_get_wal_stats($1, $2, true) WHERE count > 0`,
      [from, await position(client)],
    )
    const of = (pattern: RegExp) =>
      rows.filter(({ name }) => pattern.test(name)).reduce((sum, row) => sum + row.count, 0) / count
    return {
      wal: rows.reduce((sum, { bytes }) => sum + bytes, 0) / count,
      heapInserts: of(/^Heap2?\/(INSERT|MULTI_INSERT)/),
      indexInserts: of(/^(Btree\/INSERT|Gin\/(INSERT|UPDATE_META_PAGE))/),
      updates: of(/^Heap\/(HOT_)?UPDATE/),
      hot: of(/^Heap\/HOT_UPDATE/),
    }
  } finally {
    await client.end()
  }
}

async function position(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ at: string }>('SELECT pg_current_wal_flush_lsn()::text AS at')
  return rows[0]?.at ?? ''
}

/** Indexes of the product that no statement has used since the database was made, by the counters of PostgreSQL. */
export async function unusedIndexes(database: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: database })
  await client.connect()
  const { rows } = await client.query<{ name: string }>(
    `SELECT indexrelname AS name FROM pg_stat_user_indexes WHERE schemaname = 'public' AND idx_scan = 0 ORDER BY 1`,
  )
  await client.end()
  return rows.map(({ name }) => name)
}
