import { pino } from 'pino'
import { beforeAll, describe, expect, test } from 'vitest'
import { startWaiter, type Waiter } from '../../../src/blueprint/run/wait.ts'
import type { Db } from '../../../src/db/client.ts'
import { sql } from '../../../src/db/sql.ts'
import { atEnd } from '../../support/at-end.ts'
import { within } from '../../support/template.ts'
import { until } from '../../support/until.ts'
import { type Stand, stand } from './stand.ts'

let there: Stand
beforeAll(async () => {
  there = await stand()
})

type Watched = Waiter & {
  /** How often it has looked at this run. */
  looks(id: string): number
}

/** @param listens false: nothing is where it would listen */
function waiterThat({ listens }: { listens: boolean }): Watched {
  const url = listens ? there.url : there.url.replace(/:\d+\//, ':1/')
  const looks: unknown[] = []
  const db: Db = {
    ...there.db,
    query: (statement) => {
      looks.push(...statement.values.flat())
      return there.db.query(statement)
    },
  }
  const waiter = startWaiter(db, url, pino({ level: 'silent' }))
  atEnd(() => waiter.close())
  return Object.assign(waiter, { looks: (id: string) => looks.filter((seen) => seen === id).length })
}

const listeners = async () => {
  const { rows } = await within(there.url, (client) =>
    client.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'gatewright-listen' AND query LIKE 'LISTEN%' AND datname = current_database()",
    ),
  )
  return rows.map(({ pid }) => pid)
}

const looksUntilCalm = 6

/**
 * Waits for runs that a worker finishes one by one after the waiter's own looks have become rare: one in a second, so
 * that half a second is what looking alone would take.
 *
 * @returns how long the median run was waited for after it was finished, in milliseconds
 */
async function medianDelay(waiter: Watched, finished: (id: string) => void = () => {}): Promise<number> {
  const runs = await Promise.all(Array.from({ length: 7 }, () => there.recorded()))
  const answers = new Map(
    runs.map(({ id }) => [id, waiter.collect(id, 20_000).then((run) => ({ run, at: performance.now() }))]),
  )
  await until(() => runs.every(({ id }) => waiter.looks(id) >= looksUntilCalm), {
    what: 'its looks to become rare',
    withinMs: 10_000,
  })
  const delays: number[] = []
  for (const { id } of runs) {
    await there.work(id)
    const from = performance.now()
    finished(id)
    const answer = await answers.get(id)
    expect(answer?.run).toMatchObject({ id, state: 'done', applied: true })
    delays.push((answer?.at ?? 0) - from)
  }
  return delays.sort((a, b) => a - b)[3] ?? Number.NaN
}

/** Sessions on this database that wait for a lock. */
async function waitingForLocks(): Promise<number> {
  const { rows } = await within(there.url, (client) =>
    client.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"),
  )
  return rows.length
}

describe('a waiter is woken', { timeout: 30_000 }, () => {
  test.concurrent('by NOTIFY', async () => {
    const waiter = waiterThat({ listens: true })
    await until(async () => (await listeners()).length > 0, { what: 'it to listen' })
    expect(await medianDelay(waiter)).toBeLessThan(300)
    expect(waiter.waiting).toBe(0)
  })

  test.concurrent("by the queue's own event", async () => {
    const waiter = waiterThat({ listens: false })
    expect(await medianDelay(waiter, (id) => waiter.wake(id))).toBeLessThan(300)
  })

  test.concurrent('by its own looks, when nobody tells it', async () => {
    const waiter = waiterThat({ listens: false })
    expect(await medianDelay(waiter)).toBeLessThan(1_500)
  })

  test.concurrent('by NOTIFY again, after its connection was lost', async () => {
    const waiter = waiterThat({ listens: true })
    const before = await until(async () => ((await listeners()).length > 0 ? listeners() : null), {
      what: 'it to listen',
    })
    await within(there.url, (client) =>
      client.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) pid', [before]),
    )
    await until(async () => (await listeners()).some((pid) => !before.includes(pid)), { what: 'it to listen again' })
    expect(await medianDelay(waiter)).toBeLessThan(300)
  })
})

describe('when its time is spent', { timeout: 30_000 }, () => {
  test('a run that nobody took is cancelled, and certainly not applied', async () => {
    const waiter = waiterThat({ listens: true })
    const { id, name } = await there.recorded()
    expect(await waiter.collect(id, 100)).toBe('cancelled')
    expect(await there.run(id)).toMatchObject({
      state: 'cancelled',
      reason: 'not_applied',
      logs: [expect.stringContaining('not applied')],
    })
    expect(await there.work(id)).toBe('duplicate')
    expect(await there.db.prisma.provider.count({ where: { name } })).toBe(0)
  })

  test('at once, when it is told to give up', async () => {
    const waiter = waiterThat({ listens: true })
    const { id } = await there.recorded()
    const answer = waiter.collect(id, 60_000)
    waiter.giveUp(id)
    expect(await answer).toBe('cancelled')
  })

  test('a run that a worker has is collected', async () => {
    const waiter = waiterThat({ listens: false })
    const { id } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    const answer = waiter.collect(id, 100)
    await until(async () => (await waitingForLocks()) === 2, { what: 'both to wait for the run' })
    await release()
    // Whoever gets the row next wins, and both say the same of it.
    const outcome = await working
    const collected = await answer
    expect(outcome).toBe('applied')
    expect(collected).toMatchObject({ id, applied: true })
  })

  test('a run whose worker does not end is held, and goes on', async () => {
    const waiter = waiterThat({ listens: true })
    const { id } = await there.recorded()
    const release = await there.lock(id)
    const from = performance.now()
    expect(await waiter.collect(id, 100)).toBe('held')
    expect(performance.now() - from).toBeLessThan(4_000)
    await release()
    expect((await there.run(id)).state).toBe('queued')
    expect(await there.work(id)).toBe('applied')
  })

  test('a run that finished unseen is collected', async () => {
    const waiter = waiterThat({ listens: false })
    const { id } = await there.recorded()
    await there.work(id)
    expect(await waiter.collect(id, 0)).toMatchObject({ applied: true })
  })
})

test('a run that a crash of PostgreSQL took away is not waited for', async () => {
  const waiter = waiterThat({ listens: true })
  const { id } = await there.recorded()
  const { id: other } = await there.recorded()
  const [answer, kept] = [waiter.collect(id, 60_000), waiter.collect(other, 60_000)]
  await there.db.query(sql`DELETE FROM runs WHERE id = ${id}`)
  expect(await answer).toBe('lost')
  // What is queued is there.
  await until(() => waiter.looks(other) >= looksUntilCalm, { what: 'it to have looked at the other one as well' })
  expect(waiter.waiting).toBe(1)
  await there.work(other)
  expect(await kept).toMatchObject({ id: other, applied: true })
})

test('many wait at once, and none is left', async () => {
  const waiter = waiterThat({ listens: true })
  const runs = await Promise.all(Array.from({ length: 40 }, () => there.recorded()))
  const answers = runs.map(({ id }) => waiter.collect(id, 10_000))
  expect(waiter.waiting).toBe(40)
  await Promise.all(runs.map(({ id }) => there.work(id)))
  expect((await Promise.all(answers)).map((run) => typeof run === 'object' && run.id)).toEqual(runs.map(({ id }) => id))
  expect(waiter.waiting).toBe(0)
})
