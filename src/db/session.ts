import pg from 'pg'
import { throwProblem } from './errors.ts'

/**
 * Runs `work` on a connection of its own, for statements that Prisma cannot express.
 *
 * @throws as pg does, also when it cannot connect
 */
export async function inSession<Result>(
  config: pg.ClientConfig,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(config)
  // When an idle connection breaks, the next query fails with the error.
  client.on('error', () => {})
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/** The same in one transaction, which the end of the session rolls back after an error. @throws {Problem} `unavailable` */
export const inSessionTransaction = <Result>(
  url: string,
  applicationName: string,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> =>
  inSession({ connectionString: url, application_name: applicationName }, async (client) => {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  }).catch(throwProblem)
