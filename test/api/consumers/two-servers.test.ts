import { expect, test } from 'vitest'
import { adminToken, execute, freePort, freshDatabase, run, secretKey, sql, until } from '../../support/kit.ts'

test('two servers beside each other answer the same revision, and each follows from that of the other', async () => {
  const { url, db } = await freshDatabase()
  const ports = [await freePort(), await freePort()]
  const servers = ports.map((port) => {
    const env = { DATABASE_URL: url, SECRET_KEY: secretKey, BOOTSTRAP_TOKEN: adminToken, PORT: String(port) }
    return run('src/server.ts', { env })
  })
  for (const server of servers) await server.line(/"msg":"serving"/)
  const add = (name: string) =>
    execute(
      db,
      sql`INSERT INTO providers (uuid, kind, name, oauth2_client_id)
      VALUES (gen_random_uuid(), 'oauth2', ${name}, ${name})`,
    )
  const read = async (port: number | undefined, query = '') => {
    const headers = { authorization: `Bearer ${adminToken}` }
    const answer = await fetch(`http://127.0.0.1:${port}/api/v3/consumers/oauth2/${query}`, { headers })
    return (await answer.json()) as { revision: string; reset: boolean; results: { name: string }[] }
  }
  await add('one')
  // A heartbeat that is open names itself in a revision.
  const [first, other] = await until('no other transaction to be open', async () => {
    const both = [await read(ports[0]), await read(ports[1])] as const
    return both[0].revision === both[1].revision && both
  })
  expect(first).toMatchObject({ reset: true, results: [{ name: 'one' }] })
  expect(other).toEqual(first)
  const waiting = read(ports[1], `?wait=30&since=${encodeURIComponent(first.revision)}`)
  await add('two')
  expect(await waiting).toMatchObject({ reset: false, results: [{ name: 'two' }] })
  for (const server of servers) await server.stop()
})
