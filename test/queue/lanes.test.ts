import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { startConsumer } from '../../src/queue/consumer.ts'
import { type Asker, atEnd, installation, needs, queueOn, until } from '../support/kit.ts'

/** Jobs wait in lanes: what one submitter has waiting does not delay the first run of another. */

const path = '/api/v3/blueprints/'

async function jobsAreTakenInOrder(queue: 'redis' | 'postgres'): Promise<void> {
  const there = await installation({ queue, workers: 'none' })
  const [ada, bo, cyd] = await Promise.all([1, 2, 3].map(() => there.make.user({ superuser: true })))
  const names = new Map<string, string>()
  const submit = async (as: Asker | undefined, name: string, entries = 1) => {
    const document = {
      version: 1,
      metadata: { name },
      entries: Array.from({ length: entries }, (_, index) => ({
        model: 'service_core.group',
        identifiers: { name: `${name} ${index} ${randomUUID()}` },
      })),
    }
    const headers = { prefer: 'respond-async' }
    const answer = await as?.put(path, document, { headers })
    expect(answer).toMatchObject({ status: 202 })
    names.set(answer?.headers.location?.split('/').at(-2) ?? '', name)
  }
  for (let count = 1; count <= 12; count += 1) await submit(ada, `ada ${count}`)
  await submit(cyd, 'large', 101)
  await submit(cyd, 'cyd after it')
  await submit(bo, 'bo 1')
  await submit(bo, 'bo 2')

  const taken: string[] = []
  const { backend } = await queueOn({ redisUrl: there.redisUrl, databaseUrl: there.url })
  const consumer = await startConsumer(backend, there.db, 1, async (run) => {
    taken.push(names.get(run) ?? '')
    await there.db.run.update({ where: { id: run }, data: { state: 'cancelled', reason: 'cancelled' } })
    return undefined
  })
  atEnd(() => consumer.close())
  await until('all jobs to be taken', () => taken.length >= names.size)
  const ofAda = Array.from({ length: 12 }, (_, index) => `ada ${index + 1}`)
  expect(taken).toEqual([
    // The first of each, then those with few in front of them, then the others. What is large is last, with its followers.
    ...['ada 1', 'bo 1'],
    ...[...ofAda.slice(1, 10), 'bo 2'],
    ...ofAda.slice(10),
    ...['large', 'cyd after it'],
  ])
}

test("on PostgreSQL's queue", () => jobsAreTakenInOrder('postgres'))

describe.runIf(needs('redis-server'))('on Redis', () => {
  test('jobs are taken in the order of their lanes', () => jobsAreTakenInOrder('redis'))
})
