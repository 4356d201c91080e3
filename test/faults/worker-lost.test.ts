import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { nameLock } from '../../src/db/locks.ts'
import { type ApplyQueue, openBackend } from '../../src/queue/backend.ts'
import { proxyTo, type Running, until, within } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, quantile, type Sent } from './clients.ts'
import { onBothQueues, openStand, type Stand, untilWorkersWaitForLocks } from './stand.ts'
import { seeded, supervise } from './supervisor.ts'

/** A worker dies or freezes at any moment: no run is lost, doubled or half done, and every client gets an answer. */

/** The clients go on beyond 200 applications on a fast machine until there were this many. */
const fewestKills = 6

onBothQueues((kind) => {
  let stand: Stand
  const log: Sent[] = []
  beforeAll(async () => {
    stand = await openStand(kind)
  })

  test('SIGKILL at random moments while 8 clients apply 200 applications', { timeout: 90_000 }, async () => {
    const seed = Date.now() % 2 ** 31
    const random = seeded(seed)
    const supervisor = await supervise(() => stand.startWorker())
    let answered = false
    const killing = (async () => {
      while (!answered) {
        await supervisor.ready()
        await delay(50 + random() * 1_450)
        supervisor.kill()
      }
    })()
    const sent = await crowd(stand, 8, 'killed', (begun) => begun >= 200 && supervisor.kills >= fewestKills)
    answered = true
    await killing
    log.push(...sent)
    console.log(`${kind}: ${supervisor.kills} kills (seed ${seed}), ${describeTimes(sent)}`)
    expect(await audit(stand.db, log)).toEqual([])
    await supervisor.stop()
    expect(sent.map(({ status }) => status)).not.toContain(null)
    // A slow machine kills each worker with more runs inside: some of them lose three.
    expect(quantile(sent, 0.95)).toBeLessThan(5_000)
  })

  test('SIGKILL between the commit and the acknowledgement: the job runs again, does nothing, and reports the same', {
    timeout: 90_000,
  }, async () => {
    const target = stand.redis?.url ?? stand.databaseUrl
    const proxy = await proxyTo(target)
    const first = await stand.startWorker(stand.redis === null ? { DATABASE_URL: proxy.url } : { REDIS_URL: proxy.url })
    // Jobs whose workers the test before has killed run again.
    await until('the jobs of the test before', async () => (await unfinishedJobs()) === 0, { withinMs: 60_000 })
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
    onQueue(async (queue) => (await queue.getCompleted(0, 50)).find(({ name }) => name === title) ?? false)

  /** Unfinished jobs, without the probes. */
  const unfinishedJobs = () =>
    onQueue(async (queue) => {
      const jobs = await queue.getJobs(['active', 'waiting', 'prioritized', 'delayed'])
      return jobs.filter((job) => job.name.startsWith('apply ')).length
    })

  async function onQueue<Found>(ask: (queue: ApplyQueue) => Promise<Found>): Promise<Found> {
    const backend = await openBackend({ redisUrl: stand.redis?.url ?? null, databaseUrl: stand.databaseUrl })
    await backend.check()
    const queue = await backend.openQueue()
    try {
      return await ask(queue)
    } finally {
      await queue.close()
      await backend.close()
    }
  }

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
