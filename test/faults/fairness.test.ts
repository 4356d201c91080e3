import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { freePort, needs, run } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes } from './clients.ts'
import { sendMany } from './many-clients.ts'
import { untilReady } from './readiness.ts'
import { openStand } from './stand.ts'

/** Two APIs: one has many more clients than it admits, the other a few. */

const forMs = 30_000
const [many, few] = [800, 24]
const full = /submissions are waiting already/

describe.runIf(needs('redis-server'))('queue on Redis', () => {
  test('an API whose clients are too many refuses some of them, and another one none of its few', {
    timeout: 180_000,
  }, async () => {
    // Few at once, so that submissions are slow on a quick machine, and long to wait, so that none is cancelled on a slow one.
    const stand = await openStand('redis', { applyWaitMs: 20_000, settings: { WORKER_CONCURRENCY: '2' } })
    const port = await freePort()
    const other = run('src/server.ts', { env: { ...stand.env, PORT: String(port) } })
    await other.line(/"msg":"serving"/)
    const quiet = { url: `http://127.0.0.1:${port}`, token: stand.token }
    const worker = await stand.startWorker()
    await untilReady(quiet)
    // Code that runs for the first time is slow.
    const before = [
      ...(await crowd(stand, 4, 'one', (begun) => begun >= 40)),
      ...(await crowd(quiet, 4, 'two', (begun) => begun >= 40)),
    ]
    const crowded = sendMany(stand, { clients: many, forMs, comesAgainMs: 500, prefix: 'many' })
    await delay(1_000)
    const endsAt = performance.now() + forMs - 2_000
    const log = await crowd(quiet, few, 'few', () => performance.now() > endsAt)
    const others = await crowded
    console.log(`${many} clients: ${describeTimes(others)}; ${few} clients of another API: ${describeTimes(log)}`)
    // A machine that does much else may be slow to answer for other reasons.
    expect(log.filter(({ text }) => full.test(text))).toEqual([])
    expect(log.filter(({ status }) => status === 200).length).toBeGreaterThan(few)
    expect(others.filter(({ text }) => full.test(text)).length).toBeGreaterThan(50)
    expect(await audit(stand.db, [...before, ...others, ...log])).toEqual([])
    await worker.stop()
    await other.stop()
  })
})
