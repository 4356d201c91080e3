import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { applyPath } from '../support/asker.ts'
import { atEnd } from '../support/at-end.ts'
import { type Installation, installation, named } from '../support/installation.ts'
import { needs } from '../support/needs.ts'
import { freshRedis } from '../support/redis.ts'
import { type Recorder, recordStatements } from '../support/statements.ts'
import { until } from '../support/until.ts'

/** What one apply asks of the servers, by counts. docs/architecture.md has the whole chain. */

async function applyOnce({ admin }: Installation, name: string): Promise<void> {
  const answer = await admin.put(applyPath, await named('oauth2', name))
  expect(answer).toMatchObject({ status: 200, json: { applied: true } })
}

/** Waits until nothing is under way that an earlier apply has caused. */
async function quiet(counts: readonly (readonly unknown[])[]): Promise<void> {
  let known = -1
  await until(
    () => {
      const count = counts.reduce((sum, { length }) => sum + length, 0)
      const isSame = count === known
      known = count
      return isSame
    },
    { what: 'what an earlier apply caused to end', everyMs: 200 },
  )
}

/** Statements that only the reconciler and the maintenance send, at intervals. */
const isRegular = (text: string) =>
  /WHERE state = 'queued'|worker_formats|metric_sums|generated_until < now|sealed_key IS NOT NULL|idempotency_keys WHERE|row_counts/.test(
    text,
  )

const isSnapshot = (text: string) => /^\s*SELECT/.test(text) && text.includes('"applications"')

/** The statements of one apply, on connections of API and worker. The queue has its own. */
async function statementsOfOne(there: Installation, recorder: Recorder, others: readonly unknown[] = []) {
  await applyOnce(there, 'first')
  await quiet([recorder.sent, others])
  const before = recorder.sent.length
  await applyOnce(there, 'counted')
  await quiet([recorder.sent, others])
  return recorder.sent.slice(before).filter((text) => !isRegular(text))
}

function expectFew(sent: readonly string[]): void {
  expect(sent.length, sent.join('\n')).toBeLessThanOrEqual(11)
  expect(sent.filter(isSnapshot)).toHaveLength(2)
  // The end of the run is not read: its notification carries it.
  expect(sent.filter((text) => text.includes('pg_notify('))).toHaveLength(1)
  expect(sent.filter((text) => /FROM runs WHERE id = ANY/.test(text))).toEqual([])
}

test("on PostgreSQL's queue, few statements", async () => {
  const recorder = await recordStatements()
  expectFew(await statementsOfOne(await installation({ queue: 'postgres' }), recorder))
})

describe.runIf(needs('redis-server'))('on Redis', () => {
  test('few statements, and few commands', async () => {
    const [recorder, ratesUrl] = [await recordStatements(), await freshRedis()]
    const rates = new Redis(ratesUrl)
    atEnd(() => rates.disconnect())
    const there = await installation({ queue: 'redis', rateStore: rates })
    const databases = new Set([ratesUrl, there.redisUrl].map((url) => url?.split('/').at(-1)))
    const monitor = await rates.duplicate().monitor()
    atEnd(() => monitor.disconnect())
    const commands: string[] = []
    monitor.on('monitor', (_at: string, [command = '']: string[], source: string, database: string) => {
      // What a script does is part of it.
      if (source !== 'lua' && databases.has(database)) commands.push(command)
    })
    await applyOnce(there, 'warm-up')
    await quiet([recorder.sent, commands])
    const before = commands.length
    expectFew(await statementsOfOne(there, recorder, commands))
    // Of two applies: the rate, the job, its end, and what a worker asks that waits for jobs.
    const sent = commands.slice(before)
    expect(sent.length).toBeGreaterThanOrEqual(2 * 5)
    expect(sent.length, sent.join(' ')).toBeLessThanOrEqual(2 * 8)
  })
})
