import pg from 'pg'

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
