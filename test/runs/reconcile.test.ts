import { beforeEach, describe, expect, test } from 'vitest'
import { notifiedRun, runChannel } from '../../src/runs/ended.ts'
import { maxAttempts, patienceS } from '../../src/runs/life.ts'
import { type RunQueue, reconcile, startReconciler } from '../../src/runs/reconcile.ts'
import { reconcilerLedger } from '../../src/runs/reconciler-ledger.ts'
import type { Worker } from '../../src/runs/work.ts'
import { execute, rows, sql, until } from '../support/kit.ts'
import { listen } from '../support/listen.ts'
import { uncounted } from '../support/uncounted.ts'
import { stand } from './stand.ts'

const there = await stand()
beforeEach(async () => {
  await there.db.run.deleteMany()
})

/** A run with this number of attempts, the last of them this many seconds ago. */
async function queued(attempts: number, secondsAgo: number): Promise<string> {
  const { id } = await there.recorded()
  await execute(
    there.db,
    sql`UPDATE runs SET attempts = ${attempts}, enqueued_at = now() - make_interval(secs => ${secondsAgo}::float8) WHERE id = ${id}::uuid`,
  )
  return id
}

/** Other queued runs, beside those of a test. */
const others = (count: number, attempts: number, secondsAgo: number) =>
  execute(
    there.db,
    sql`
    INSERT INTO runs (id, title, kind, request_id, blueprint, logs, attempts, enqueued_at)
    SELECT gen_random_uuid(), 'apply', 'radius', 'r', 'sealed', '{}', ${attempts}::integer, now() - make_interval(secs => ${secondsAgo}::float8)
    FROM generate_series(1, ${count}::integer)`,
  )

type Answers = {
  /** Whose job cannot be added. */
  refuses?: (id: string) => boolean
  /** Whose job is still queued, unless asking fails. */
  isQueued?: (id: string) => boolean | Promise<boolean>
}

/** Reconciles once; @returns which jobs the queue was asked about, and which were to be added, as `<run>/<attempt>` */
async function round(
  { refuses = () => false, isQueued = () => false }: Answers = {},
  worker: Pick<Worker, 'log' | 'tally'> = there.worker,
): Promise<Record<'asked' | 'added', string[]>> {
  const heard = { asked: [] as string[], added: [] as string[] }
  const queue: RunQueue = {
    wake: async () => {},
    enqueue: async ({ id }, attempt) => {
      heard.added.push(`${id}/${attempt}`)
      if (refuses(id)) throw new Error('the queue is away')
    },
    isQueued: async ({ id }, attempt) => {
      heard.asked.push(`${id}/${attempt}`)
      return isQueued(id)
    },
  }
  await reconcile(reconcilerLedger(there.db), queue, worker).catch(() => {})
  return heard
}

const added = async (answers?: Answers): Promise<string[]> => (await round(answers)).added

const away = (): never => {
  throw new Error('the queue is away')
}

describe('a queued run that no worker has', () => {
  test('is enqueued again after a second, under a number of its own, once', async () => {
    const id = await queued(1, 1.1)
    expect(await added()).toEqual([`${id}/2`])
    expect(await there.run(id)).toMatchObject({ state: 'queued', attempts: 2 })
    expect(await added()).toEqual([])
    const lost = { runId: id, attempt: 1, cause: 'its worker ended, or the queue lost its job' }
    expect(await there.db.runAttempt.findMany({ where: { runId: id } })).toMatchObject([lost])
  })

  test.each([1, 2, 3, 4])('after %i attempts, is enqueued again when patience is over', async (count) => {
    const seconds = patienceS(count)
    const [late] = [await queued(count, seconds + 0.1), await queued(count, seconds * 0.6)]
    expect(await added()).toEqual([`${late}/${count + 1}`])
  })

  test.each([6, 99])('with %i attempts, more than there can be, fails too', async (count) => {
    const id = await queued(count, 3_600)
    expect(await added()).toEqual([])
    expect(await there.run(id)).toMatchObject({ state: 'failed', reason: 'unavailable', attempts: count })
  })

  test('after five attempts, fails with its reason, and those that wait are notified', async () => {
    const heard = await listen(there.url, runChannel)
    const early = await queued(maxAttempts, patienceS(maxAttempts) - 1)
    const id = await queued(maxAttempts, patienceS(maxAttempts) + 0.1)
    await there.worker.ledger.attemptFailed(id, 'a lock that was not given', { workedMs: 1 })
    expect(await added()).toEqual([])
    const run = await there.run(id)
    expect(run).toMatchObject({
      state: 'failed',
      applied: false,
      reason: 'unavailable',
      logs: ['not applied: enqueued 5 times, and no worker finished it'],
      cause: 'a lock that was not given',
    })
    expect(run.finishedAt).not.toBeNull()
    await until('the notification', () =>
      heard.map(notifiedRun).some((end) => typeof end === 'object' && end.id === id),
    )
    expect(await there.work(id)).toMatchObject({ state: 'failed', applied: false })
    expect(await there.run(early)).toMatchObject({ state: 'queued', attempts: 5 })
  })

  test('has a row for each of its five attempts when it has failed, and each is counted once', async () => {
    const counted: string[] = []
    const tally = { ...uncounted, attemptFailed: (cause: string) => void counted.push(cause) }
    const id = await queued(1, 60)
    for (let times = 1; times <= maxAttempts; times += 1) {
      if (times === 2) await there.worker.ledger.attemptFailed(id, 'a lock that was not given', { workedMs: 1 })
      await round({}, { ...there.worker, tally })
      await execute(there.db, sql`UPDATE runs SET enqueued_at = now() - interval '1 minute' WHERE id = ${id}::uuid`)
    }
    expect(await there.run(id)).toMatchObject({ state: 'failed', reason: 'unavailable' })
    const attempts = await there.db.runAttempt.findMany({ where: { runId: id }, orderBy: { attempt: 'asc' } })
    const lost = 'its worker ended, or the queue lost its job'
    const causes = [lost, 'a lock that was not given', lost, lost, lost]
    expect(attempts).toMatchObject(causes.map((cause, index) => ({ attempt: index + 1, cause })))
    // The worker counts the one that it has recorded.
    expect(counted).toEqual(Array(4).fill('lost'))
  })

  test('is not delayed by many that must wait longer', async () => {
    await others(150, 4, 5)
    const id = await queued(1, 3)
    expect(await added()).toEqual([`${id}/2`])
  })

  test('the oldest first', async () => {
    const [young, old] = [await queued(1, 3), await queued(1, 9)]
    expect(await added()).toEqual([`${old}/2`, `${young}/2`])
  })

  test('one whose job cannot be added does not delay the others', async () => {
    const [first, second] = [await queued(1, 9), await queued(1, 3)]
    expect((await added({ refuses: (id) => id === first })).sort()).toEqual([`${first}/2`, `${second}/2`].sort())
  })
})

describe('a queued run whose job still waits', () => {
  test.each([1, 2, 3, 4, 5])(
    'after %i attempts, is not enqueued again and does not fail: its patience begins again',
    async (count) => {
      const id = await queued(count, 60)
      expect(await round({ isQueued: () => true })).toEqual({ asked: [`${id}/${count}`], added: [] })
      expect(await there.run(id)).toMatchObject({ state: 'queued', attempts: count })
      expect(await round()).toEqual({ asked: [], added: [] })
    },
  )

  test('does not keep runs without a job from being enqueued, however many wait', async () => {
    await others(150, 1, 60)
    const lost = await queued(1, 30)
    const first = await round({ isQueued: (id) => id !== lost })
    expect(first.asked).toHaveLength(100)
    expect(first.added).toEqual([])
    const second = await round({ isQueued: (id) => id !== lost })
    expect(second.asked).toHaveLength(51)
    expect(second.added).toEqual([`${lost}/2`])
  })

  test.each([
    ['is left to a worker that has it by now', 1],
    ['is left to a worker that has it by now, after the last attempt too', maxAttempts],
  ])('no longer, %s', async (_, count) => {
    const id = await queued(count, 60)
    let release = async () => {}
    const heard = await added({
      isQueued: async () => {
        release = await there.lock(id)
        return false
      },
    })
    await release()
    expect(heard).toEqual([])
    expect(await there.run(id)).toMatchObject({ state: 'queued', attempts: count })
  })

  test.each([1, 4])(
    'no longer, is enqueued once though another reconciler asks about it at the same time (%i attempts)',
    async (count) => {
      const id = await queued(count, 60)
      let other: string[] = []
      const heard = await added({
        isQueued: async () => {
          other = await added()
          return false
        },
      })
      expect([other, heard]).toEqual([[`${id}/${count + 1}`], []])
      expect(await there.run(id)).toMatchObject({ state: 'queued', attempts: count + 1 })
    },
  )

  test.each([1, maxAttempts])('no longer, stays finished when it is by now (%i attempts)', async (count) => {
    const id = await queued(count, 60)
    const heard = await added({
      isQueued: async () => {
        expect(await there.work(id)).toMatchObject({ applied: true })
        return false
      },
    })
    expect(heard).toEqual([])
    expect(await there.run(id)).toMatchObject({ state: 'done', applied: true, attempts: count })
  })
})

describe('while the queue is away', () => {
  test.each([1, 2, 3, 4, 5])('a run of %i attempts is left as it is', async (count) => {
    const id = await queued(count, 60)
    const before = await there.run(id)
    expect(await added({ isQueued: away })).toEqual([])
    expect(await there.run(id)).toEqual(before)
  })

  test('a job that could not be added does not count, after any number of tries', async () => {
    const id = await queued(1, 60)
    for (let times = 0; times < maxAttempts + 2; times += 1) {
      expect(await added({ refuses: () => true })).toEqual([`${id}/2`])
      expect(await there.run(id)).toMatchObject({ state: 'queued', attempts: 1 })
      await rows(there.db, sql`UPDATE runs SET enqueued_at = now() - interval '1 minute'`)
    }
    expect(await added()).toEqual([`${id}/2`])
  })

  test('for one of them, the others are enqueued', async () => {
    const [unknown, refused, other] = [await queued(1, 60), await queued(1, 60), await queued(1, 60)]
    const heard = await added({ isQueued: (id) => id === unknown && away(), refuses: (id) => id === refused })
    expect(heard.sort()).toEqual([`${refused}/2`, `${other}/2`].sort())
    expect(await there.run(unknown)).toMatchObject({ attempts: 1 })
    expect(await there.run(refused)).toMatchObject({ attempts: 1 })
    expect(await there.run(other)).toMatchObject({ attempts: 2 })
  })
})

describe('a run stays as it is', () => {
  test('while a worker has it', async () => {
    const id = await queued(1, 60)
    const other = await queued(1, 60)
    const release = await there.lock(id)
    expect(await added()).toEqual([`${other}/2`])
    await release()
    expect(await added()).toEqual([`${id}/2`])
  })

  test.each(['done', 'failed', 'cancelled'] as const)('when it is %s', async (state) => {
    const id = await queued(1, 60)
    await there.db.run.update({ where: { id }, data: { state, applied: false, finishedAt: new Date() } })
    expect(await round()).toEqual({ asked: [], added: [] })
  })

  test('by all but one worker at a time', async () => {
    const id = await queued(1, 60)
    const all = await Promise.all(Array.from({ length: 5 }, () => added()))
    expect(all.flat()).toEqual([`${id}/2`])
  })
})

describe('the reconciler of a worker', () => {
  test('goes on when a job cannot be added', async () => {
    const [first, second] = [await queued(1, 9), await queued(1, 3)]
    let failures = 0
    const applied: string[] = []
    const enqueue = async ({ id }: { id: string }) => {
      failures += 1
      if (failures <= 2) throw new Error('the queue is away')
      if ((await there.work(id))?.applied === true) applied.push(id)
    }
    const reconciler = startReconciler(
      there.db,
      { enqueue, isQueued: async () => false, wake: async () => {} },
      there.worker,
    )
    await until('both runs to be applied', () => applied.length === 2, { withinMs: 8_000 })
    await reconciler.stop()
    expect(applied.sort()).toEqual([first, second].sort())
  })

  test('does nothing after it has stopped: a round that had begun is complete', async () => {
    const begun = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<boolean>()
    const jobs: string[] = []
    const enqueue = async ({ id }: { id: string }) => void jobs.push(id)
    const isQueued = () => {
      begun.resolve()
      return answer.promise
    }
    const id = await queued(1, 60)
    const reconciler = startReconciler(there.db, { enqueue, isQueued, wake: async () => {} }, there.worker)
    await begun.promise
    let isStopped = false
    const stopped = reconciler.stop().then(() => {
      isStopped = true
    })
    // It still waits for the current round.
    await queued(1, 60)
    expect(isStopped).toBe(false)
    answer.resolve(false)
    await stopped
    expect(jobs).toEqual([id])
    expect(await there.run(id)).toMatchObject({ attempts: 2 })
  })
})
