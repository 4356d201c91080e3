import { describe, expect, test } from 'vitest'
import { needs, type QueueKind, until } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { put, quantile, type Sent } from './clients.ts'
import { recordRecovery } from './record.ts'
import { openStand } from './stand.ts'

/**
 * A firewall forgets connections: nothing passes on them any more, and neither end gets to know. New ones work. The
 * service is as before within 15 s.
 */

const recoveredWithinMs = 15_000
/** A statement that was sent on one of the last silent connections may wait for its time-out after the recovery. */
const closedWithinMs = 12_000
/** Twice what a PUT takes on slow cores when notifications arrive; without them it waits for a poll, or for a worker's next poll. */
const promptMs = 400

const silenced = (queue: QueueKind, proxied: 'postgres' | 'redis') => async () => {
  const stand = await openStand(queue, { proxied })
  const worker = await stand.startWorker()
  const log: Sent[] = []
  const send = async () => {
    const sent = await put(stand, `silent-${log.length}`)
    log.push(sent)
    return sent
  }
  expect(await send()).toMatchObject({ status: 200 })
  const open = stand.proxy?.silence() ?? (() => 0)
  const from = performance.now()
  expect(open()).toBeGreaterThan(3)
  const leftMs = () => recoveredWithinMs - (performance.now() - from)
  await until('a PUT to be applied', async () => (await send()).status === 200, { withinMs: leftMs() })
  recordRecovery(performance.now() - from)
  console.log(`${queue}, silent ${proxied}: applied again after ${Math.round(performance.now() - from)} ms`)
  const isReady = async () => (await fetch(`${stand.url}/-/health/applies/`)).status === 200
  await until('the API to be ready', isReady, { withinMs: leftMs() })
  await until('all silent connections to be closed', () => open() === 0, { withinMs: closedWithinMs })
  const after: Sent[] = []
  while (after.length < 11) after.push(await send())
  expect(after.map(({ status }) => status)).toEqual(after.map(() => 200))
  expect(quantile(after, 0.5)).toBeLessThan(promptMs)
  expect(log.map(({ status }) => status)).not.toContain(500)
  expect(await audit(stand.db, log)).toEqual([])
  await worker.stop()
}

describe.runIf(needs('redis-server'))('queue on Redis', () => {
  test('the connections to Redis', { timeout: 120_000 }, silenced('redis', 'redis'))
  test('the connections to PostgreSQL', { timeout: 120_000 }, silenced('redis', 'postgres'))
})

test('queue on PostgreSQL: all connections', { timeout: 120_000 }, silenced('postgres', 'postgres'))
