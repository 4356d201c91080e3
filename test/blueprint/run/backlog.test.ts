import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { startBacklog } from '../../../src/blueprint/run/backlog.ts'
import { startStack } from '../../api/stack.ts'
import { atEnd } from '../../support/at-end.ts'
import { freshDatabase } from '../../support/database.ts'
import { until } from '../../support/until.ts'

const example = JSON.parse(await readFile(new URL('../../../examples/radius.json', import.meta.url), 'utf8'))

test('too many waiting runs are a quick 503, and nothing is recorded', { timeout: 20_000 }, async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null, applyWaitMs: 200 })
  await db.prisma.$executeRaw`
    INSERT INTO runs (id, title, request_id, blueprint, logs)
    SELECT gen_random_uuid(), 'apply', 'r', 'sealed', '{}' FROM generate_series(1, 2000)`

  const full = await until(
    async () => {
      const answer = await stack.put(example)
      return answer.text.includes('2000 submissions are waiting') ? answer : null
    },
    { what: 'the backlog to be noticed', withinMs: 5_000 },
  )
  expect(full).toMatchObject({
    status: 503,
    json: { code: 'not_applied', detail: expect.stringContaining('Nothing was changed') },
  })
  expect(full.headers.get('Retry-After')).toBe('5')
  const recorded = await db.prisma.run.count()
  const again = await stack.put(example)
  expect(again.status).toBe(503)
  expect(again.ms).toBeLessThan(300)
  expect(await db.prisma.run.count()).toBe(recorded)

  await db.prisma.run.deleteMany()
  await until(async () => (await stack.put(example)).text.includes('no worker took it'), {
    what: 'submissions to be let in',
    withinMs: 5_000,
  })
})

test('a burst between two samples is bounded by what this process let in', async () => {
  const { db } = await freshDatabase()
  const backlog = startBacklog(db, { limit: 2 })
  atEnd(() => backlog.close())
  const leave = backlog.enter()
  backlog.enter()
  expect(() => backlog.enter()).toThrow('2 submissions are waiting')
  leave()
  expect(() => backlog.enter()).not.toThrow()
})
