import { setTimeout as delay } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, test } from 'vitest'
import { atEnd, freePort, needs, until } from '../support/kit.ts'
import { audit } from './auditor.ts'
import { crowd, describeTimes, put, type Sent } from './clients.ts'
import { blamed, untilReady } from './readiness.ts'
import { recordRecovery } from './record.ts'
import { openStand } from './stand.ts'

/** A Redis that runs and takes no jobs: full, paused, a replica. */

/** Longer than the 11 s after which a worker is missed. */
const faultMs = 13_000
/** What was sent before the fault has ended by then. */
const endedAfterMs = 2_000
const refusedWithinMs = 2_000

type Fault = {
  readonly name: string
  begin(redis: Redis): Promise<unknown>
  end(redis: Redis): Promise<unknown>
  /** What readiness says of the queue. */
  readonly says: string
}

const faults: readonly Fault[] = [
  {
    name: 'full',
    begin: (redis) => redis.config('SET', 'maxmemory', '1'),
    end: (redis) => redis.config('SET', 'maxmemory', '0'),
    says: 'The queue answers, but accepts no jobs: Redis is full (maxmemory).',
  },
  {
    name: 'paused',
    // It ends by itself, after the last answer that is expected during it.
    begin: (redis) => redis.client('PAUSE', endedAfterMs + faultMs + refusedWithinMs, 'ALL'),
    end: (redis) => redis.ping(),
    says: 'The queue does not answer: does its server run, and is REDIS_URL, or else DATABASE_URL, right?',
  },
  {
    name: 'a replica',
    // Its master is a server that is not there, so that it keeps its data.
    begin: async (redis) => redis.replicaof('127.0.0.1', await freePort()),
    end: (redis) => redis.replicaof('NO', 'ONE'),
    says: 'The queue answers, but accepts no jobs: this Redis is a replica, which takes no changes.',
  },
]

describe.runIf(needs('redis-server'))('queue on Redis', () => {
  test.each(faults)(
    `Redis is $name for ${(endedAfterMs + faultMs) / 1_000} s, under load: answers are true, readiness names the queue and never the worker, and it recovers by itself`,
    { timeout: 90_000 },
    async ({ name, begin, end, says }) => {
      const stand = await openStand('redis')
      const worker = await stand.startWorker()
      const redis = new Redis(stand.redis?.url ?? '')
      atEnd(() => redis.disconnect())
      let over = false
      const sending = crowd(stand, 4, 'around', () => over)
      await delay(1_000)
      await begin(redis)
      await delay(endedAfterMs)
      const [details, meanwhile] = await Promise.all([
        blamed(stand, () => over),
        crowd(stand, 2, 'meanwhile', () => over),
        delay(faultMs).then(() => {
          over = true
        }),
      ])
      const around = await sending
      await end(redis)
      const recoveredMs = await untilReady(stand)
      recordRecovery(recoveredMs)
      // The API may have read a moment ago that no worker takes jobs.
      const first: Sent[] = []
      await until(
        'the first submission after the fault',
        async () => {
          first.push(await put(stand, 'first'))
          return first.at(-1)?.status === 200
        },
        { withinMs: 3_000, everyMs: 100 },
      )
      const after = await crowd(stand, 4, 'after', (begun) => begun >= 50)

      console.log(`Redis ${name}: ${describeTimes(meanwhile)}; ready again after ${Math.round(recoveredMs)} ms`)
      expect([...details]).toContain(says)
      expect([...details].filter((detail) => /No worker/.test(detail))).toEqual([])
      expect([...new Set(meanwhile.map(({ status }) => status))]).toEqual([503])
      expect(Math.max(...meanwhile.map(({ ms }) => ms))).toBeLessThan(refusedWithinMs)
      expect(new Set(around.map(({ status }) => status)).difference(new Set([200, 202, 503]))).toEqual(new Set())
      expect([...new Set(after.map(({ status }) => status))]).toEqual([200])
      const log = [...around, ...meanwhile, ...first, ...after, await put(stand, 'last')]
      expect(await audit(stand.db, log)).toEqual([])
      await worker.stop()
    },
  )
})
