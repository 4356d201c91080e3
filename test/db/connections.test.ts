import { expect, test } from 'vitest'
import { connectionsOfApi, connectionsOfWorker, tooFewConnections } from '../../src/db/connections.ts'
import { registerProcess } from '../../src/db/presence.ts'
import { runFormat } from '../../src/runs/format.ts'
import { atEnd, execute, freshDatabase, rows, sql, until } from '../support/kit.ts'

test('what a process takes is what docs/scaling.md says', () => {
  expect([connectionsOfApi('redis'), connectionsOfApi('postgres')]).toEqual([17, 25])
  expect([connectionsOfWorker(16, 'redis'), connectionsOfWorker(16, 'postgres')]).toEqual([19, 46])
})

test('a start warns when it and the processes that were heard may take more connections than there are', async () => {
  const { db } = await freshDatabase()
  const [limit] = await rows<{ max: string }>(db, sql`SELECT current_setting('max_connections') AS max`)
  const usable = Number(limit?.max) - 3
  expect(await tooFewConnections(db, 'redis', { concurrency: 64 })).toBeNull()
  const slots = usable - 30
  const load = { slots: () => slots, busy: () => 0, hasTaken: () => false }
  for (const table of ['servers', 'workers'] as const) atEnd(registerProcess(db, table, runFormat, load).stop)
  const heard = async () => (await db.workerProcess.count()) === 1 && (await db.serverProcess.count()) === 1
  await until('the processes to be heard', heard)
  const taken = 17 + slots + 3
  expect(taken).toBeLessThan(usable)
  const sentence = `2 API and 1 worker processes may take ${taken + 17} connections to PostgreSQL, and it gives ${usable} (max_connections, without those kept for superusers): raise max_connections, or lower WORKER_CONCURRENCY (docs/scaling.md). Processes that are being replaced are counted, too.`
  expect(await tooFewConnections(db, 'redis', { concurrency: null })).toBe(sentence)
  // A process that has ended long ago takes none.
  await execute(db, sql`UPDATE workers SET seen_at = now() - interval '11 s'`)
  expect(await tooFewConnections(db, 'redis', { concurrency: null })).toBeNull()
})
