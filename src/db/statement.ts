import pg from 'pg'
import { inSession } from './session.ts'

/** Rows of a statement that a person wrote, with their values as PostgreSQL writes them. */
export type Answer = {
  /** The command, such as `SELECT`. */
  readonly command: string
  readonly rowCount: number | null
  readonly columns: readonly string[]
  /** The first rows. */
  readonly rows: readonly (readonly (string | null)[])[]
  /** The number of all rows. */
  readonly found: number
}

/**
 * Runs one statement: the extended protocol refuses more.
 *
 * @param maxRows rows that are kept; the others are counted
 */
export const runStatement = (config: pg.ClientConfig, text: string, maxRows: number): Promise<Answer> =>
  inSession(config, async (client) => {
    const asked: pg.QueryArrayConfig = {
      text,
      // A statement with a name takes the extended protocol.
      name: 'statement',
      rowMode: 'array',
      // The values stay as PostgreSQL writes them.
      types: { getTypeParser: () => (value: unknown) => value },
    }
    const query = new pg.Query<(string | null)[]>(asked)
    const rows: (string | null)[][] = []
    let found = 0
    // A listener keeps the rows from being gathered in memory.
    query.on('row', (row) => {
      if (++found <= maxRows) rows.push(row)
    })
    const { command, rowCount, fields } = await new Promise<pg.QueryResultBase>((resolve, reject) => {
      query.on('end', resolve).on('error', reject)
      client.query(query)
    })
    return { command, rowCount, columns: fields.map(({ name }) => name), rows, found }
  })
