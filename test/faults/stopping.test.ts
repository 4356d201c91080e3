import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { nameLock } from '../../src/db/locks.ts'
import { within } from '../support/template.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, type Sent } from './clients.ts'
import { onBothQueues, openStand, untilWorkersWaitForLocks } from './stand.ts'

/** A deployment: processes get SIGTERM under load. */

const exitWithinMs = 10_000

onBothQueues((kind) => {
  test('SIGTERM of a worker under load: it finishes its runs, and another takes the rest', {
    timeout: 120_000,
  }, async () => {
    const stand = await openStand(kind)
    const first = await stand.startWorker()
    let over = false
    const sending = crowd(stand, 8, 'relayed', () => over)
    const second = await stand.startWorker()
    expect(await first.stop({ withinMs: exitWithinMs })).toEqual({ code: 0, signal: null })
    over = true
    const log = await sending
    console.log(`${kind}: SIGTERM of a worker: ${describeTimes(log)}`)
    expect([...new Set(log.map(({ status }) => status))]).toEqual([200])
    expect(await audit(stand.db, log)).toEqual([])
    await second.stop()
  })

  test('SIGTERM of the API: what is in flight is answered, then it ends', { timeout: 120_000 }, async () => {
    const stand = await openStand(kind)
    const worker = await stand.startWorker()
    const slugs = ['last-1', 'last-2', 'last-3', 'last-4', 'last-5']
    const log: Sent[] = []
    // Locked, so that all of them are in flight when the signal comes.
    await within(stand.databaseUrl, async (client) => {
      for (const slug of slugs) await client.query('SELECT pg_advisory_lock($1)', [nameLock('applications', [slug])])
      const sending = slugs.map((slug) => put(stand, slug))
      await untilWorkersWaitForLocks(stand, slugs.length)
      stand.api.signal('SIGTERM')
      await stand.api.line(/"msg":"stopping"/)
      await client.query('SELECT pg_advisory_unlock_all()')
      log.push(...(await Promise.all(sending)))
    })
    expect(log.map(({ status }) => status)).toEqual(slugs.map(() => 200))
    const ended = await Promise.race([stand.api.exited, delay(exitWithinMs, 'still running')])
    expect(ended).toEqual({ code: 0, signal: null })
    expect(await audit(stand.db, log)).toEqual([])
    await worker.stop()
  })
})
