import pg from 'pg'
import { expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { olderOf, parseRevision, readNow, textOf } from '../../src/waits/revision.ts'
import { atEnd, installation } from '../support/kit.ts'

/** A revision is another one after each change, whatever the order of commits. */

const there = await installation({ workers: 'none' })

const now = (since: string | null = null, ids: readonly string[] = []) => readNow(there, since, ids)

const record = (id: string) => ({ id, title: 'made', requestId: 'x', state: 'queued' as const })

/** A connection of its own, for a transaction that stays open. */
async function other(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: there.url })
  await client.connect()
  atEnd(() => client.end())
  return client
}

const insert = 'INSERT INTO runs (id, title, request_id) VALUES ($1, $2, $3)'

test('a transaction that began before others and commits after them is a change', async () => {
  const client = await other()
  await client.query('BEGIN')
  await client.query(insert, [uuid7(), 'late', 'x'])
  await there.db.run.create({ data: record(uuid7()) })
  const { snapshot, ...before } = await now()
  expect([before.isChanged, (await now(snapshot)).isChanged]).toEqual([false, false])
  await client.query('COMMIT')
  expect((await now(snapshot)).isChanged).toBe(true)
})

test('a run that is recorded or ends, and an attempt that fails, are changes; a read is none', async () => {
  const id = uuid7()
  const changes = [
    () => there.db.run.create({ data: record(id) }),
    () => there.db.run.update({ where: { id }, data: { state: 'cancelled', finishedAt: new Date() } }),
    () => there.db.runAttempt.create({ data: { runId: id, attempt: 1, cause: 'broken' } }),
  ]
  for (const change of changes) {
    const { snapshot } = await now()
    await there.db.user.count()
    expect((await now(snapshot)).isChanged).toBe(false)
    await change()
    expect((await now(snapshot)).isChanged).toBe(true)
  }
})

test('a pause, its reason and a worker are other digests', async () => {
  const digests = [(await now()).digest]
  await there.queue.pause()
  digests.push((await now()).digest)
  await there.db.queuePause.create({ data: { queue: 'apply', pausedBy: 'ada', reason: 'new disks' } })
  digests.push((await now()).digest)
  await there.queue.resume()
  await there.db.workerProcess.create({
    data: { id: uuid7(), host: 'one', processId: 1, version: '0.3.0', format: 1, slots: 4 },
  })
  digests.push((await now()).digest)
  await there.db.workerProcess.updateMany({ data: { seenAt: new Date(0) } })
  digests.push((await now()).digest)
  expect(new Set(digests).size).toBe(5)
  expect((await now()).digest).toBe(digests.at(-1))
})

test('how a run stands: its state, its attempts, and whether it is locked', async () => {
  const id = uuid7()
  const stands = async () => (await now(null, [id])).runs.get(id)
  expect(await stands()).toBeUndefined()
  await there.db.run.create({ data: record(id) })
  const queued = await stands()
  const client = await other()
  await client.query('BEGIN')
  await client.query('SELECT FROM runs WHERE id = $1 FOR UPDATE', [id])
  const locked = await stands()
  await client.query('ROLLBACK')
  await there.db.run.update({ where: { id }, data: { attempts: 2 } })
  expect(new Set([queued, locked, await stands()]).size).toBe(3)
})

test('a revision is a text that is read again; of very many open transactions, all count as open', async () => {
  const { snapshot, digest } = await now()
  expect(parseRevision(textOf({ snapshot, digest }))).toEqual({ snapshot, digest })
  const open = Array.from({ length: 300 }, (_, index) => 10 + index)
  expect(textOf({ snapshot: `10:400:${open}`, digest })).toBe(`10:10:~${digest}`)
  expect((await now('10:10:')).isChanged).toBe(true)
})

test.each([
  '',
  'x',
  '1:2:',
  '2:1:~abcdefghijk',
  '0:1:~abcdefghijk',
  '1:9:5,4~abcdefghijk',
  '1:9:12~abcdefghijk',
  '1:2:~short',
  '9'.repeat(19),
])('%j is no revision', (text) => {
  expect(parseRevision(text)).toBeUndefined()
})

test('a revision of a database that was ahead of this one is another one', async () => {
  const { snapshot } = await now()
  const ahead = Number(snapshot.split(':')[1]) + 1_000_000
  expect((await now(`${ahead}:${ahead}:`)).isChanged).toBe(true)
})

test.each([
  [null, '7:9:8', '7:9:8'],
  ['7:9:8', '7:9:8', '7:9:8'],
  // The other is newer: what it has not seen, the first has not seen either.
  ['7:9:8', '9:9:', '7:9:8'],
  ['9:9:', '7:9:8', '7:7:'],
  ['7:9:8', '8:12:8,10', '7:7:'],
])('of the snapshots %s and %s, %s is for both', (one, other, both) => {
  expect(olderOf(one, other)).toBe(both)
})
