import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runFormat } from '../../src/runs/format.ts'
import { adaptiveLimit, openBacklog } from '../../src/submissions/backlog.ts'
import { startStack } from '../api/stack.ts'
import { freshDatabase, rows, sql, until } from '../support/kit.ts'

const example = JSON.parse(await readFile(new URL('../../examples/radius.json', import.meta.url), 'utf8'))

const unneeded = { needsWorkers: false, whyNot: { installation: async () => null } }

test('without a worker for ten seconds, a submission is refused at once, and nothing is recorded', async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  const heartbeat = (seconds: number) =>
    rows(
      db,
      sql`INSERT INTO queue_heartbeats (queue, consumed_at) VALUES ('apply', now() - make_interval(secs => ${seconds}))
        ON CONFLICT (queue) DO UPDATE SET consumed_at = excluded.consumed_at`,
    )
  await heartbeat(12)
  await db.workerFormat.create({ data: { format: runFormat, consumedAt: new Date(Date.now() - 12_000) } })
  const refused = await stack.put(example)
  expect(refused).toMatchObject({
    status: 503,
    json: {
      code: 'cancelled',
      detail: expect.stringMatching(/^Not applied: no worker has taken a job for 1\d s, though .*\. Nothing/),
    },
  })
  expect(refused.headers.get('Retry-After')).toBe('2')
  expect(await db.run.count()).toBe(0)
  // The next sample notices a worker that is back.
  await heartbeat(0)
  const worker = await stack.startWorker()
  await until('submissions to be applied', async () => (await stack.put(example)).status === 200)
  await worker.stop()
})

test('more submissions than the limit are refused, until one has ended', async () => {
  const { db } = await freshDatabase()
  const backlog = openBacklog(db, unneeded)
  const inside = await Promise.all(Array.from({ length: 128 }, () => backlog.enter({ waits: true })))
  await expect(backlog.enter({ waits: true })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('128 submissions are waiting'),
    retryAfterS: 2,
  })
  inside[0]?.leave(true)
  await expect(backlog.enter({ waits: true })).resolves.toBeDefined()
})

test('submissions that have arrived count too, until each is authenticated', async () => {
  const { db } = await freshDatabase()
  const backlog = openBacklog(db, unneeded)
  const arrived = Array.from({ length: 127 }, () => backlog.arrive({ mayJoin: false }))
  const { leave } = await backlog.enter({ waits: true })
  expect(() => backlog.arrive({ mayJoin: false })).toThrow(/128 submissions are waiting/)
  arrived[0]?.()
  arrived[0]?.()
  arrived.push(backlog.arrive({ mayJoin: false }))
  expect(() => backlog.arrive({ mayJoin: false })).toThrow(/128 submissions are waiting/)
  for (const each of arrived) each()
  leave(true)
  expect(Array.from({ length: 128 }, () => backlog.arrive({ mayJoin: false }))).toHaveLength(128)
})

test('requests that are refused, slow or cut off before their submission is admitted do not count', async () => {
  const { url } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  const body = JSON.stringify(example)
  const path = '/api/v3/core/transactional/applications/'
  const refuse = () => stack.get(path, { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body })
  // More than the limit, 128.
  for (const refused of await Promise.all(Array.from({ length: 100 }, refuse))) expect(refused.status).toBe(401)
  for (const refused of await Promise.all(Array.from({ length: 100 }, refuse))) expect(refused.status).toBe(401)
  const worker = await stack.startWorker()
  const controller = new AbortController()
  const { signal } = controller
  const slow = async () => {
    const unfinished = new ReadableStream({ start: (sink) => sink.enqueue(Buffer.from('{')) })
    const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer a-token-for-the-first-admin' }
    const init = { method: 'PUT', headers, body: unfinished, duplex: 'half', signal } as const
    await expect(stack.get(path, init)).rejects.toThrow(/abort/)
  }
  const first = Array.from({ length: 70 }, slow)
  await until('a submission beside slow ones', async () => (await stack.put(example)).status === 200)
  const second = Array.from({ length: 70 }, slow)
  await until('a submission beside more of them', async () => (await stack.put(example)).status === 200)
  controller.abort()
  await Promise.all([...first, ...second])
  expect((await stack.put(example)).status).toBe(200)
  await worker.stop()
})

test('the clock of the database is never ahead of the clock of the database', async () => {
  const { db } = await freshDatabase()
  const { databaseNow } = await openBacklog(db, unneeded).enter({ waits: true })
  const estimated = databaseNow()
  const [row] = await rows<{ now: number }>(
    db,
    sql`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`,
  )
  expect(estimated).toBeLessThanOrEqual(row?.now ?? 0)
  expect(estimated).toBeGreaterThan((row?.now ?? 0) - 2_000)
})

const slow = 5_000
/** Submissions of one process end, unless it says otherwise. */
const times = (count: number, ended: () => void) => Array.from({ length: count }).forEach(ended)

test('the limit grows while submissions are quick and many, and shrinks while they are slow', () => {
  const adaptive = adaptiveLimit()
  adaptive.ended(30, 10, 0)
  expect(adaptive.limit).toBe(128)
  times(72, () => adaptive.ended(30, 120, 0))
  expect(adaptive.limit).toBe(200)
  // Those that waited together count once.
  times(20, () => adaptive.ended(slow, 199, 0))
  expect(adaptive.limit).toBe(160)
})

test('the limit does not shrink for some slow submissions among quick ones, as one slow worker of several makes them', () => {
  const adaptive = adaptiveLimit()
  times(100, () => {
    times(1, () => adaptive.ended(30, 10, 0))
    times(2, () => adaptive.ended(slow, 10, 0))
  })
  expect(adaptive.limit).toBe(128)
})

test('the limit does not shrink in a process that has few of the submissions of all, and does in one that has many', () => {
  const [few, many] = [adaptiveLimit(), adaptiveLimit()]
  times(20, () => few.ended(slow, 19, (19 + 500) / 2))
  times(20, () => many.ended(slow, 500, (19 + 500) / 2))
  expect([few.limit, many.limit]).toEqual([128, 102])
})
