import { once } from 'node:events'
import { expect, test } from 'vitest'
import { ImpatientSocket } from '../../src/db/socket.ts'
import { PreparingClient } from '../../src/queue/preparing-client.ts'
import { freshDatabase, proxyTo } from '../support/kit.ts'

async function connected() {
  const proxy = await proxyTo((await freshDatabase()).url)
  const client = new PreparingClient({ connectionString: proxy.url, stream: () => new ImpatientSocket(1_000) })
  await client.connect()
  return { client, proxy }
}

test('a statement fails on a connection that becomes silent, and the process goes on', async () => {
  const { client, proxy } = await connected()
  proxy.silence()
  await expect(client.query('SELECT 1')).rejects.toThrow('Connection terminated unexpectedly')
})

test('a client ends when its server does not answer the end, even without any listener', async () => {
  const { client, proxy } = await connected()
  proxy.silence()
  client.removeAllListeners()
  const ended = once(client, 'end')
  await client.end()
  await ended
  await expect(client.query('SELECT 1')).rejects.toThrow('Client was closed')
})
