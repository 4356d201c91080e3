import { beforeAll, expect, test } from 'vitest'
import { until, within } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { put, type Sent } from './clients.ts'
import { onBothQueues, openStand, type Stand, untilWorkersWaitForLocks } from './stand.ts'

/** A long lock, no worker: answers are in time and true. */

const applyWaitMs = 2_000

onBothQueues((kind) => {
  let stand: Stand
  const log: Sent[] = []
  beforeAll(async () => {
    stand = await openStand(kind, { applyWaitMs })
  })

  const putAtOnce = async (count: number, slug: string) => {
    const sent = await Promise.all(Array.from({ length: count }, () => put(stand, slug)))
    log.push(...sent)
    return sent
  }

  test('without a worker: 503, and never applied, not even by a worker that starts later', async () => {
    const [sent] = await putAtOnce(1, 'too-late')
    expect(sent).toMatchObject({ status: 503 })
    expect(JSON.parse(sent?.text ?? '')).toMatchObject({ code: 'cancelled' })
    expect(sent?.ms).toBeLessThan(applyWaitMs + 1_000)
    const worker = await stand.startWorker()
    // A run behind the late job is applied, so a worker has taken the late one.
    expect((await putAtOnce(1, 'in-time')).map(({ status }) => status)).toEqual([200])
    expect(await audit(stand.db, log)).toEqual([])
    await worker.stop()
  })

  test('a row lock held for longer than any client waits: true answers in time, and others are served', {
    timeout: 120_000,
  }, async () => {
    const worker = await stand.startWorker()
    await putAtOnce(1, 'held')
    const blocked = await within(stand.databaseUrl, async (client) => {
      await client.query('BEGIN')
      await client.query(`SELECT FROM applications WHERE slug = 'held' FOR UPDATE`)
      const sending = Array.from({ length: 5 }, (_, index) => put(stand, 'held', { content: `changed ${index}` }))
      await untilWorkersWaitForLocks(stand, 5)
      const [other] = await putAtOnce(1, 'not-held')
      expect(other).toMatchObject({ status: 200 })
      const read = await fetch(`${stand.url}/-/health/applies/`, { signal: AbortSignal.timeout(1_000) })
      expect(await read.json()).toMatchObject({ status: 'applying' })
      const sent = await Promise.all(sending)
      await client.query('ROLLBACK')
      return sent
    })
    log.push(...blocked)
    // A worker has locked it, so the outcome is unknown; or it was cancelled between two tries.
    expect(blocked.filter(({ status }) => status !== 202 && status !== 503)).toEqual([])
    // Not longer than the wait, apart from the way to the client.
    expect(Math.max(...blocked.map(({ ms }) => ms))).toBeLessThan(applyWaitMs + 1_000)
    expect(await audit(stand.db, log)).toEqual([])
    await until('service as before', async () => (await put(stand, 'held', { content: 'changed 0' })).status === 200)
    await worker.stop()
  })
})
