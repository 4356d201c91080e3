import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { until } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, quantile } from './clients.ts'
import { type Follower, follow } from './follower.ts'
import { recordRecovery } from './record.ts'
import { onBothQueues, openStand, type Stand } from './stand.ts'

/** PostgreSQL crashes and comes back: answered submissions are stored, and the service goes on without a restart. */

const awayMs = 2_000

onBothQueues((kind) => {
  test('PostgreSQL crashes, is away for 2 s and comes back, under load', { timeout: 120_000 }, async () => {
    const stand = await openStand(kind)
    const worker = await stand.startWorker()
    const follower = await follow(stand)
    let over = false
    const sending = crowd(stand, 8, 'crashed', () => over)
    await delay(1_000)
    await stand.postgres.stop('immediate')
    const stoppedAt = performance.now()
    // The other clients may still wait for earlier requests: these are sent while the database is away.
    const startedAt = stoppedAt + awayMs
    const whileAway = await crowd(stand, 2, 'away', () => performance.now() > startedAt - 1_000)
    await delay(startedAt - performance.now())
    await stand.postgres.start()
    const backAt = performance.now()
    await delay(4_000)
    over = true
    const log = [...(await sending), ...whileAway]

    console.log(`${kind}: while PostgreSQL is away: ${describeTimes(whileAway)}`)
    expect(whileAway.length).toBeGreaterThan(4)
    expect([...new Set(whileAway.map(({ status }) => status))]).toEqual([503])
    expect(Math.max(...whileAway.map(({ ms }) => ms))).toBeLessThan(1_000)
    const firstSuccess = log
      .filter(({ sentAt, outcome }) => outcome === 'applied' && sentAt > stoppedAt)
      .map(({ sentAt, ms }) => sentAt + ms - backAt)
    console.log(`${kind}: first success ${Math.round(Math.min(...firstSuccess))} ms after PostgreSQL answered again`)
    recordRecovery(Math.min(...firstSuccess))
    expect(Math.min(...firstSuccess)).toBeLessThan(2_000)
    expect(log.map(({ status }) => status)).not.toContain(null)
    // The quick refusals during the outage are left out.
    const inService = log.filter(({ sentAt, ms }) => sentAt < stoppedAt || sentAt + ms > backAt)
    console.log(`${kind}: before, across and after: ${describeTimes(inService)}`)
    // A client whose run survived the crash waits for it as without a crash: 10 s, and the last read.
    expect(quantile(inService, 1)).toBeLessThan(14_000)
    expect(await audit(stand.db, log)).toEqual([])
    await expectAllSeen(stand, follower)
    await worker.stop()
  })

  /** A client that follows the runs has seen each end, as it stands in the ledger. */
  async function expectAllSeen({ db }: Stand, follower: Follower): Promise<void> {
    const states = ['done', 'failed', 'cancelled']
    const runs = await db.run.findMany({ select: { id: true, state: true, applied: true } })
    const ended = runs.filter(({ state }) => states.includes(state))
    await until('the end of each run', () => ended.every(({ id }) => follower.ended().has(id)))
    expect(ended.map(({ id, state, applied }) => ({ id, state, applied }))).toEqual(
      ended.map(({ id }) => ({ id, ...follower.ended().get(id) })),
    )
    await follower.stop()
  }
})
