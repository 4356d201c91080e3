import { pino } from 'pino'
import { describe, test } from 'vitest'
import type { ApplyWorker, Backend } from '../../src/queue/backend.ts'
import { startConsumer } from '../../src/queue/consumer.ts'
import { runQueue } from '../../src/queue/enqueue.ts'
import { startWatchdog } from '../../src/queue/watchdog.ts'
import { atEnd, freshDatabase, freshRedis, needs, queueOn, until } from '../support/kit.ts'

const run = { id: '01a1fd79-0573-7eeb-91d6-996288491dcb', title: 'apply oauth2 grafana' }

function claims(redis: () => Promise<string | null>): void {
  test('a worker that takes no jobs any more gets new connections to the queue', { timeout: 120_000 }, async ({
    expect,
  }) => {
    const { url, db } = await freshDatabase()
    const { backend, queue } = await queueOn({ redisUrl: await redis(), databaseUrl: url })
    const opened: ApplyWorker[] = []
    const observed: Backend = {
      ...backend,
      openWorker: async (...settings) => {
        const worker = await backend.openWorker(...settings)
        opened.push(worker)
        return worker
      },
    }
    const taken: string[] = []
    const consumer = await startConsumer(observed, db, 2, async (id) => {
      taken.push(id)
      return undefined
    })
    atEnd(() => consumer.close())
    const watchdog = startWatchdog(db, queue, consumer, pino({ level: 'silent' }))
    atEnd(() => watchdog.stop())
    await runQueue(queue).enqueue(run, 1)
    await until('the first job', () => taken.length === 1)
    // BullMQ's loop ends, and the process lives on.
    await opened[0]?.close()
    await runQueue(queue).enqueue(run, 2)
    await until('the second job', () => taken.length === 2, { withinMs: 15_000 })
    expect(opened).toHaveLength(2)
  })
}

// Both wait, and measure no time.
describe.concurrent("on PostgreSQL's queue", () => claims(async () => null))
describe.runIf(needs('redis-server')).concurrent('on Redis', () => claims(freshRedis))
