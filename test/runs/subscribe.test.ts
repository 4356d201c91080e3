import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { Db } from '../../src/db/client.ts'
import { cancelRun } from '../../src/runs/ledger.ts'
import { cancelOrRead, followRuns, type Runs, type WaitResult } from '../../src/runs/subscribe.ts'
import { late } from '../../src/runs/why.ts'
import { atEnd, until, within } from '../support/kit.ts'
import { stand } from './stand.ts'

const there = await stand()

type Watched = Runs & {
  /** How often it has read this run. */
  reads(id: string): number
  /** Lets no read end any more, until the returned function is called. */
  holdReads(): () => void
  readonly log: readonly string[]
}

/** @param listens false: its listening connection is refused */
function following({ listens }: { listens: boolean }): Watched {
  const url = listens ? there.url : there.url.replace(/:\d+\//, ':1/')
  const read: unknown[] = []
  let held: Promise<void> | undefined
  const counting = there.db.$extends({
    query: {
      $queryRawUnsafe: async ({ args, query }) => {
        const [, ids] = args
        if (Array.isArray(ids)) read.push(...ids)
        await held
        return query(args)
      },
    },
  })
  const log: string[] = []
  const runs = followRuns(counting as unknown as Db, url, pino({}, { write: (line) => void log.push(line) }))
  atEnd(() => runs.close())
  return Object.assign(runs, {
    log,
    reads: (id: string) => read.filter((each) => each === id).length,
    holdReads: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
  })
}

/** Waits for the end of a run, and cancels it after this time, as a submission does. */
async function ended(runs: Runs, id: string, budgetMs = 20_000, stop = new AbortController()): Promise<WaitResult> {
  const run = await runs.untilEnd(id, { budgetMs, isQueued: true, stop: stop.signal })
  return run ?? cancelOrRead(there.db, id, (tx) => cancelRun(tx, id, late))
}

const listeners = async () => {
  const { rows } = await within(there.url, (client) =>
    client.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'gatewright-listen' AND query LIKE 'LISTEN%' AND datname = current_database()",
    ),
  )
  return rows.map(({ pid }) => pid)
}

const readsUntilRare = 6

/**
 * Waits for runs that a worker finishes one by one after polls have become rare.
 *
 * @returns how often each was read from then on
 */
async function readsUntilEnd(runs: Watched): Promise<number[]> {
  const recorded = await Promise.all(Array.from({ length: 3 }, () => there.recorded()))
  const answers = recorded.map(({ id }) => ended(runs, id, 60_000))
  await until('polls to become rare', () => recorded.every(({ id }) => runs.reads(id) >= readsUntilRare))
  const reads: number[] = []
  for (const [index, { id }] of recorded.entries()) {
    await there.work(id)
    const before = runs.reads(id)
    expect(await answers[index]).toMatchObject({ id, state: 'done', applied: true })
    reads.push(runs.reads(id) - before)
  }
  return reads
}

/** Waits for runs of which no read ends once they have begun: without a notification it waits for ever. */
async function endWithoutReads(runs: Watched): Promise<void> {
  const recorded = await Promise.all([there.recorded(), there.recorded(), there.recorded()])
  const answers = recorded.map(({ id }) => runs.untilEnd(id, { budgetMs: 60_000 }))
  await until('the first reads', () => recorded.every(({ id }) => runs.reads(id) >= 1))
  const release = runs.holdReads()
  for (const { id } of recorded) await there.work(id)
  expect(await Promise.all(answers)).toMatchObject(recorded.map(({ id }) => ({ id, state: 'done', applied: true })))
  release()
}

/** Sessions on this database that wait for a lock. */
async function waitingForLocks(): Promise<number> {
  const { rows } = await within(there.url, (client) =>
    client.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"),
  )
  return rows.length
}

describe('the end of a run is reported', () => {
  test('because of NOTIFY', async () => {
    const runs = following({ listens: true })
    await until('it to listen', async () => (await listeners()).length > 0)
    await endWithoutReads(runs)
  })

  test.concurrent('because of a poll, when that is lost', async () => {
    const runs = following({ listens: false })
    for (const reads of await readsUntilEnd(runs)) expect(reads).toBeLessThanOrEqual(3)
    expect(runs.log).toEqual([expect.stringContaining('runs are polled until it is back')])
  })

  // Not beside another that listens: it ends every listening connection.
  test('because of NOTIFY again, after its connection was lost', async () => {
    const runs = following({ listens: true })
    const before = await until('it to listen', async () => ((await listeners()).length > 0 ? listeners() : null))
    await within(there.url, (client) =>
      client.query('SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) pid', [before]),
    )
    await until('it to listen again', async () => (await listeners()).some((pid) => !before.includes(pid)))
    await endWithoutReads(runs)
    expect(runs.log).toEqual(['is lost', 'again'].map((text) => expect.stringContaining(text)))
  })
})

describe('all that wait for a run', () => {
  test('get its end', async () => {
    const runs = following({ listens: true })
    const { id } = await there.recorded()
    const wait = () => runs.untilEnd(id, { budgetMs: 60_000 })
    const early = [wait(), wait()]
    await until('the first read', () => runs.reads(id) >= 1)
    const late = wait()
    await there.work(id)
    const end = { id, state: 'done' }
    expect(await Promise.all([...early, late])).toMatchObject([end, end, end])
  })

  test('get that of a finished run at once, and `vanished` for a missing one', async () => {
    const runs = following({ listens: false })
    const { id } = await there.recorded()
    await there.work(id)
    const wait = { budgetMs: 60_000 }
    expect(await runs.untilEnd(id, wait)).toMatchObject({ id, state: 'done' })
    expect(await runs.untilEnd('01a1fd79-0573-7eeb-91d6-996288491dcb', wait)).toBe('vanished')
  })

  test('and for whom time is not up', async () => {
    const runs = following({ listens: true })
    const { id } = await there.recorded()
    const [short, long] = [runs.untilEnd(id, { budgetMs: 50 }), runs.untilEnd(id, { budgetMs: 60_000 })]
    expect(await short).toBeUndefined()
    await there.work(id)
    expect(await long).toMatchObject({ id, state: 'done' })
  })
})

describe('after the wait', () => {
  test('a run that no worker took is cancelled, and certainly not applied', async () => {
    const runs = following({ listens: true })
    const { id, name } = await there.recorded()
    expect(await ended(runs, id, 100)).toBe('cancelled')
    expect(await there.run(id)).toMatchObject({
      state: 'cancelled',
      reason: 'cancelled',
      logs: [expect.stringContaining('not applied')],
    })
    expect(await there.work(id)).toMatchObject({ state: 'cancelled', applied: false })
    expect(await there.db.provider.count({ where: { name } })).toBe(0)
  })

  test('because the run could not be enqueued, it is cancelled at once', async () => {
    const runs = following({ listens: true })
    const { id } = await there.recorded()
    const stop = new AbortController()
    const answer = ended(runs, id, 60_000, stop)
    stop.abort()
    expect(await answer).toBe('cancelled')
  })

  test('a run that a worker has is not cancelled, and its result is answered', async () => {
    const runs = following({ listens: false })
    const { id } = await there.recorded()
    const release = await there.lock(id)
    const working = there.work(id)
    const answer = ended(runs, id, 100)
    await until('both to wait for the run', async () => (await waitingForLocks()) === 2)
    await release()
    expect(await working).toMatchObject({ applied: true })
    expect(await answer).toMatchObject({ id, applied: true })
  })

  test('a run whose worker does not end is locked, and goes on', async () => {
    const runs = following({ listens: true })
    const { id } = await there.recorded()
    const release = await there.lock(id)
    expect(await ended(runs, id, 100)).toBe('locked')
    await release()
    expect((await there.run(id)).state).toBe('queued')
    expect(await there.work(id)).toMatchObject({ applied: true })
  })

  test('a run that finished meanwhile is answered', async () => {
    const runs = following({ listens: false })
    const { id } = await there.recorded()
    await there.work(id)
    expect(await ended(runs, id, 0)).toMatchObject({ applied: true })
  })
})

test('a run that a crash of PostgreSQL lost is not waited for', async () => {
  const runs = following({ listens: true })
  const { id } = await there.recorded()
  const { id: other } = await there.recorded()
  const [answer, kept] = [ended(runs, id, 60_000), ended(runs, other, 60_000)]
  await there.db.run.delete({ where: { id } })
  expect(await answer).toBe('vanished')
  await until('it to have read the other one too', () => runs.reads(other) >= readsUntilRare)
  await there.work(other)
  expect(await kept).toMatchObject({ id: other, applied: true })
})

test('many wait at once, and finished runs are not read again', async () => {
  const runs = following({ listens: true })
  const recorded = await Promise.all(Array.from({ length: 40 }, () => there.recorded()))
  const answers = recorded.map(({ id }) => ended(runs, id, 10_000))
  await Promise.all(recorded.map(({ id }) => there.work(id)))
  expect((await Promise.all(answers)).map((run) => typeof run === 'object' && run.id)).toEqual(
    recorded.map(({ id }) => id),
  )
  const reads = () => recorded.map(({ id }) => runs.reads(id))
  const { id: another } = await there.recorded()
  const stop = new AbortController()
  const waiting = runs.untilEnd(another, { budgetMs: 60_000, stop: stop.signal })
  const readAgain = (times: number) =>
    until(`another run to be read ${times} times`, () => runs.reads(another) >= times)
  // Reads that were under way when the last run ended are over by then.
  await readAgain(2)
  const before = reads()
  await readAgain(5)
  expect(reads()).toEqual(before)
  stop.abort()
  expect(await waiting).toBeUndefined()
})

test('after the wait, a run that a crash of PostgreSQL lost has vanished', async () => {
  const { id } = await there.recorded()
  await there.db.run.delete({ where: { id } })
  expect(await ended(following({ listens: false }), id, 0)).toBe('vanished')
})
