import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { openBacklog } from '../../src/runs/backlog.ts'
import { startStack } from '../api/stack.ts'
import { freshDatabase } from '../support/database.ts'
import { until } from '../support/until.ts'

const example = JSON.parse(await readFile(new URL('../../examples/radius.json', import.meta.url), 'utf8'))

test('too many waiting runs are a quick 503, and nothing is recorded', { timeout: 20_000 }, async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null, applyWaitMs: 200 })
  await db.$executeRaw`
    INSERT INTO runs (id, title, kind, request_id, blueprint, logs)
    SELECT gen_random_uuid(), 'apply', 'radius', 'r', 'sealed', '{}' FROM generate_series(1, 2000)`

  const full = await until(
    async () => {
      const answer = await stack.put(example)
      return answer.text.includes('2000 submissions are waiting') ? answer : null
    },
    { what: 'the backlog to be noticed', withinMs: 5_000 },
  )
  expect(full).toMatchObject({
    status: 503,
    json: { code: 'unavailable', detail: expect.stringContaining('Nothing was changed') },
  })
  expect(full.headers.get('Retry-After')).toBe('5')
  const recorded = await db.run.count()
  const again = await stack.put(example)
  expect(again.status).toBe(503)
  expect(again.ms).toBeLessThan(300)
  expect(await db.run.count()).toBe(recorded)

  await db.run.deleteMany()
  await until(async () => (await stack.put(example)).text.includes('no worker took it'), {
    what: 'submissions to be let in',
    withinMs: 5_000,
  })
})

test('a burst between two samples is limited by the count of this process', async () => {
  const { db } = await freshDatabase()
  const backlog = openBacklog(db, { limit: 2 })
  const leave = backlog.enter()
  backlog.enter()
  expect(() => backlog.enter()).toThrow('2 submissions are waiting')
  leave()
  expect(() => backlog.enter()).not.toThrow()
})
