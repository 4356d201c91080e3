import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { needs } from '../support/needs.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, quantile } from './clients.ts'
import { recordRecovery } from './record.ts'
import { openStand } from './stand.ts'

/** Redis only wakes workers: without it no run is applied, and runs whose jobs it lost are enqueued again. */

const awayMs = 3_000

describe.runIf(needs('redis-server'))('queue on Redis', () => {
  test('Redis killed, away for 3 s and back, under load', { timeout: 120_000 }, async () => {
    const stand = await openStand('redis')
    const worker = await stand.startWorker()
    let over = false
    const sending = crowd(stand, 4, 'away', () => over)
    await delay(1_000)
    await stand.redis?.kill()
    const killedAt = performance.now()
    // The other clients may still wait for earlier requests: these are sent while Redis is away.
    const whileAway = await crowd(stand, 2, 'refused', () => performance.now() > killedAt + awayMs - 1_000)
    await delay(killedAt + awayMs - performance.now())
    const backAt = performance.now()
    await stand.redis?.start()
    await delay(3_000)
    over = true
    const log = [...(await sending), ...whileAway]

    console.log(`while Redis is away: ${describeTimes(whileAway)}`)
    expect(whileAway.length).toBeGreaterThan(4)
    expect([...new Set(whileAway.map(({ status }) => status))]).toEqual([503])
    expect(Math.max(...whileAway.map(({ ms }) => ms))).toBeLessThan(1_000)
    const firstSuccess = log
      .filter(({ sentAt, outcome }) => outcome === 'applied' && sentAt > killedAt)
      .map(({ sentAt, ms }) => sentAt + ms - backAt)
    console.log(`first success ${Math.round(Math.min(...firstSuccess))} ms after Redis was started again`)
    recordRecovery(Math.min(...firstSuccess))
    expect(Math.min(...firstSuccess)).toBeLessThan(2_000)
    expect(log.map(({ status }) => status)).not.toContain(null)
    const afterwards = await put(stand, 'afterwards')
    expect(afterwards).toMatchObject({ status: 200 })
    expect(await audit(stand.db, [...log, afterwards])).toEqual([])
    await worker.stop()
  })

  test('FLUSHALL every second under load', { timeout: 120_000 }, async () => {
    const stand = await openStand('redis')
    const worker = await stand.startWorker()
    const redis = new Redis(stand.redis?.url ?? '')
    let over = false
    const sending = crowd(stand, 8, 'flushed', () => over)
    for (let times = 0; times < 6; times += 1) {
      await delay(1_000)
      await redis.flushall()
    }
    over = true
    const log = await sending
    redis.disconnect()
    console.log(`FLUSHALL every second: ${describeTimes(log)}`)
    expect([...new Set(log.map(({ status }) => status))]).toEqual([200])
    expect(quantile(log, 0.99)).toBeLessThan(5_000)
    expect(await audit(stand.db, log)).toEqual([])
    await worker.stop()
  })
})
