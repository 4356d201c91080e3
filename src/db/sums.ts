import { z } from 'zod'
import type { Counts } from '../series.ts'
import type { Db } from './client.ts'
import { inTime } from './in-time.ts'
import { execute, query } from './raw.ts'

/**
 * Counts of all processes of an installation together. Each process adds its own every two seconds, outside of any transaction
 * that does work: counting costs an apply nothing, and a process that is killed loses two seconds of its counts
 * (docs/adr/0064-counts-of-runs-are-sums-in-a-table.md).
 */
export type Sums = {
  add(series: string, by?: number): void
  /** The counts of this process since it started. */
  readonly own: Counts
  /** Writes the counts that are not written yet at once, if the database takes them in time. */
  write(): Promise<void>
  stop(): Promise<void>
}

const everyMs = 2_000

export function openSums(db: Db): Sums {
  const own = new Map<string, number>()
  const written = new Map<string, number>()

  /**
   * Writes without a limit of time: a count whose write may still succeed must not be written again. The connection has its own
   * limits.
   */
  async function writeAll(): Promise<void> {
    const counted = [...own].filter(([series, value]) => value !== written.get(series))
    if (counted.length === 0) return
    await execute(db, {
      // The order is fixed, so that two processes never wait for each other.
      text: `INSERT INTO metric_sums (series, value)
        SELECT * FROM unnest($1::text[], $2::float8[]) AS counted (series, value) ORDER BY series
        ON CONFLICT (series) DO UPDATE SET value = metric_sums.value + excluded.value`,
      values: [counted.map(([series]) => series), counted.map(([series, value]) => value - (written.get(series) ?? 0))],
    })
    // After a failure, a count is written twice rather than never: an alert must not miss one.
    for (const [series, value] of counted) written.set(series, value)
  }

  // One statement after the other, so that a stop waits for the last.
  let writing = Promise.resolve()
  const write = () => {
    writing = writing.then(writeAll).catch(() => {})
    return writing
  }
  const timer = setInterval(write, everyMs).unref()
  return {
    own,
    add: (series, by = 1) => void own.set(series, (own.get(series) ?? 0) + by),
    write: () => inTime(write()).catch(() => {}),
    stop: async () => {
      clearInterval(timer)
      await inTime(write()).catch(() => {})
    },
  }
}

const sumRow = z.object({ series: z.string(), value: z.number() })

/** The sums of all processes. */
export async function readSums(db: Db): Promise<Counts> {
  const rows = await query(db, sumRow, { text: 'SELECT series, value FROM metric_sums', values: [] })
  return new Map(rows.map(({ series, value }) => [series, value]))
}
