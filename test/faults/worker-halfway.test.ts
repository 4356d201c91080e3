import { beforeAll, expect, test } from 'vitest'
import { nameLock } from '../../src/db/locks.ts'
import { proxyTo, type Running, until, within } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { put, type Sent } from './clients.ts'
import { onBothQueues, onQueue, openStand, type Stand, untilWorkersWaitForLocks } from './stand.ts'

/** A worker dies or freezes halfway: no run is lost, doubled or half done, and its client gets an answer. */

onBothQueues((kind) => {
  let stand: Stand
  const log: Sent[] = []
  beforeAll(async () => {
    stand = await openStand(kind)
  })

  test('SIGKILL between the commit and the acknowledgement: the job runs again, does nothing, and reports the same', {
    timeout: 90_000,
  }, async () => {
    const target = stand.redis?.url ?? stand.databaseUrl
    const proxy = await proxyTo(target)
    const first = await stand.startWorker(stand.redis === null ? { DATABASE_URL: proxy.url } : { REDIS_URL: proxy.url })
    // The job's return value is what the worker sends to the queue when it acknowledges.
    const heldBack = proxy.holdBack('"applied":true,"reason":null')
    const sent = await put(stand, 'acknowledged-never')
    log.push(sent)
    expect(sent).toMatchObject({ status: 200, outcome: 'applied' })
    await heldBack
    await first.kill()

    const second = await stand.startWorker()
    const job = await until('the job to be run a second time', () => completedJob('apply oauth2 acknowledged-never'), {
      withinMs: 15_000,
    })
    expect(job.attemptsStarted).toBe(2)
    expect(job.returnvalue).toMatchObject({ state: 'done', applied: true })
    expect(await audit(stand.db, log)).toEqual([])
    await second.stop()
  })

  const completedJob = (title: string) =>
    onQueue(stand, async (queue) => (await queue.getCompleted(0, 50)).find(({ name }) => name === title) ?? false)

  test('a worker frozen inside its transaction beyond its lock, and woken beside its replacement', {
    timeout: 120_000,
  }, async () => {
    // Its clients wait long enough for any machine: the replacement comes after seconds.
    const patient = await openStand(kind, { applyWaitMs: 20_000 })
    const frozen = await patient.startWorker()
    const answer = await putAndFreeze(frozen, 'frozen', patient)
    const replacement = await patient.startWorker()
    // It got the job of the frozen worker, and waits for the names that the frozen worker still locks.
    await untilWorkersWaitForLocks(patient, 1)
    frozen.signal('SIGCONT')
    const sent = await answer()
    expect(sent.outcome).toBe('applied')
    expect(await audit(patient.db, [sent])).toEqual([])
    await Promise.all([frozen.stop(), replacement.stop()])
  })

  test('a worker frozen inside its transaction, and no other: its client gets an answer in time, and the answer is true', {
    timeout: 120_000,
  }, async () => {
    const frozen = await stand.startWorker()
    const answer = await putAndFreeze(frozen, 'frozen-alone')
    const sent = await answer()
    log.push(sent)
    expect([202, 503]).toContain(sent.status)
    expect(sent.ms).toBeLessThan(14_000)
    frozen.signal('SIGCONT')
    expect(await audit(stand.db, log)).toEqual([])
    await frozen.stop()
  })

  /** Sends a PUT, and stops its worker while that waits for the application's name. @returns the answer to be awaited */
  function putAndFreeze(worker: Running, slug: string, at: Stand = stand): Promise<() => Promise<Sent>> {
    return within(at.databaseUrl, async (client) => {
      const key = nameLock('applications', [slug])
      await client.query('SELECT pg_advisory_lock($1)', [key])
      const answer = put(at, slug)
      await untilWorkersWaitForLocks(at, 1)
      worker.signal('SIGSTOP')
      await client.query('SELECT pg_advisory_unlock($1)', [key])
      return () => answer
    })
  }
})
