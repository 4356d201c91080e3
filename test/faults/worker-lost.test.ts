import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, expect, test } from 'vitest'
import { lockKey } from '../../src/blueprint/perform.ts'
import { openBackend } from '../../src/queue/backend.ts'
import { applyQueue } from '../../src/queue/define.ts'
import type { Running } from '../support/processes.ts'
import { proxyTo } from '../support/proxy.ts'
import { within } from '../support/template.ts'
import { until } from '../support/until.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, quantile, type Sent } from './clients.ts'
import { onBothQueues, openStand, type Stand, untilWorkersWaitForLocks } from './stand.ts'
import { seeded, supervise } from './supervisor.ts'

/** A worker dies or freezes at any moment: nothing is lost, doubled or half done, and everybody gets an answer. */

/** The clients go on beyond 200 applications until there were so many, on a fast machine that is. */
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
    expect(quantile(sent, 0.99)).toBeLessThan(5_000)
  })

  test('SIGKILL between the commit and the acknowledgement: the second run of the job does nothing', {
    timeout: 30_000,
  }, async () => {
    // The job's return value is what the worker sends to the queue when it acknowledges.
    const target = stand.redis?.url ?? stand.databaseUrl
    const proxy = await proxyTo(target)
    const heldBack = proxy.holdBack('"applied"')
    const first = await stand.startWorker(stand.redis === null ? { DATABASE_URL: proxy.url } : { REDIS_URL: proxy.url })
    const sent = await put(stand, 'acknowledged-never')
    log.push(sent)
    expect(sent).toMatchObject({ status: 200, outcome: 'applied' })
    await heldBack
    await first.kill()

    const second = await stand.startWorker()
    const [job] = await until(() => jobsThatReturned('duplicate', 'acknowledged-never'), {
      what: 'the job to be run a second time',
      withinMs: 15_000,
    })
    expect(job).toBe('apply oauth2 acknowledged-never')
    expect(await audit(stand.db, log)).toEqual([])
    await second.stop()
  })

  async function jobsThatReturned(outcome: string, slug: string): Promise<string[] | false> {
    const backend = await openBackend({ redisUrl: stand.redis?.url ?? null, databaseUrl: stand.databaseUrl })
    await backend.check()
    const queue = await backend.openQueue(applyQueue)
    try {
      const jobs = await queue.getCompleted(0, 50)
      const names = jobs.flatMap(({ name, returnvalue }) =>
        returnvalue === outcome && name.endsWith(slug) ? [name] : [],
      )
      return names.length > 0 && names
    } finally {
      await queue.close()
      await backend.close()
    }
  }

  test('a worker frozen inside its transaction beyond its lock, and woken beside its replacement', {
    timeout: 45_000,
  }, async () => {
    const frozen = await stand.startWorker()
    // What is there already is looked at, so that the transaction goes on only with the worker.
    log.push(await put(stand, 'frozen'))
    const answer = await putAndFreeze(frozen, 'frozen')
    const replacement = await stand.startWorker()
    // It was given the job that the frozen one no longer holds, and waits for the names, which it does hold.
    await untilWorkersWaitForLocks(stand, 1)
    frozen.signal('SIGCONT')
    const sent = await answer()
    log.push(sent)
    expect(sent.outcome).toBe('applied')
    expect(await audit(stand.db, log)).toEqual([])
    await Promise.all([frozen.stop(), replacement.stop()])
  })

  test('a worker frozen while the database writes what is new: that ends without it', { timeout: 45_000 }, async () => {
    const frozen = await stand.startWorker()
    const answer = await putAndFreeze(frozen, 'frozen-new')
    const sent = await answer()
    log.push(sent)
    expect(sent.outcome).toBe('applied')
    frozen.signal('SIGCONT')
    await frozen.stop()
    expect(await audit(stand.db, log)).toEqual([])
  })

  /** Sends a PUT, and stops its worker while that waits for the application's name. @returns the answer to be awaited */
  function putAndFreeze(worker: Running, slug: string): Promise<() => Promise<Sent>> {
    return within(stand.databaseUrl, async (client) => {
      const key = lockKey('applications', [slug])
      await client.query('SELECT pg_advisory_lock($1)', [key])
      const answer = put(stand, slug)
      await untilWorkersWaitForLocks(stand, 1)
      worker.signal('SIGSTOP')
      await client.query('SELECT pg_advisory_unlock($1)', [key])
      return () => answer
    })
  }
})
