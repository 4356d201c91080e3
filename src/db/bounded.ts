import type pg from 'pg'
import type { Db, Queryable } from './client.ts'
import { databaseProblem } from './failures.ts'
import type { Statement } from './sql.ts'

/**
 * The database for callers who would rather not know than wait, such as probes. A statement without an answer in time
 * fails and its connection is thrown away, so that a server that hangs does not use up the pool.
 *
 * @param withinMs for the statement; getting a connection has the pool's own limit
 */
export const bounded = ({ pool }: Db, withinMs: number): Queryable => ({
  query: async <Row>({ name, text, values }: Statement): Promise<Row[]> => {
    const impatient: pg.QueryConfig & { query_timeout: number } = {
      ...(name !== undefined && { name }),
      text,
      values: [...values],
      query_timeout: withinMs,
    }
    try {
      return (await pool.query(impatient)).rows as Row[]
    } catch (error) {
      throw databaseProblem(error)
    }
  },
})
