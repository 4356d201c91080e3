import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { maxRings, patienceS } from '../../../src/blueprint/run/life.ts'
import { type Doorbell, reconcile, startReconciler } from '../../../src/blueprint/run/reconcile.ts'
import { runChannel } from '../../../src/blueprint/run/record.ts'
import { sql } from '../../../src/db/sql.ts'
import { sha256, uuid7 } from '../../../src/ids.ts'
import { listen } from '../../support/listen.ts'
import { until } from '../../support/until.ts'
import { type Stand, stand } from './stand.ts'

let there: Stand
beforeAll(async () => {
  there = await stand()
})
beforeEach(async () => {
  await there.db.prisma.run.deleteMany()
})

/** A run that was rung so often, the last time so many seconds ago. */
async function rung(rings: number, secondsAgo: number): Promise<string> {
  const { id } = await there.recorded()
  await there.db.query(
    sql`UPDATE runs SET rings = ${rings}, rung_at = now() - make_interval(secs => ${secondsAgo}) WHERE id = ${id}`,
  )
  return id
}

type Queue = {
  /** Whose bell cannot be rung. */
  mute?: (id: string) => boolean
  /** Whose jobs stand in line, unless asking fails. */
  inLine?: (id: string) => boolean | Promise<boolean>
}

/** Reconciles once; @returns what the queue was asked and the rings it heard, as `<run>/<number>` */
async function look({
  mute = () => false,
  inLine = () => false,
}: Queue = {}): Promise<Record<'asked' | 'rung', string[]>> {
  const heard = { asked: [] as string[], rung: [] as string[] }
  const doorbell: Doorbell = {
    ring: async ({ id }, ring) => {
      heard.rung.push(`${id}/${ring}`)
      if (mute(id)) throw new Error('the queue is away')
    },
    standsInLine: async ({ id }, ring) => {
      heard.asked.push(`${id}/${ring}`)
      return inLine(id)
    },
  }
  await reconcile(there.db, doorbell, there.worker.log).catch(() => {})
  return heard
}

const rings = async (queue?: Queue): Promise<string[]> => (await look(queue)).rung

const away = (): never => {
  throw new Error('the queue is away')
}

describe('a queued run that nobody has', () => {
  test('is rung again after a second, under a number of its own, once', async () => {
    const id = await rung(1, 1.1)
    expect(await rings()).toEqual([`${id}/2`])
    expect(await there.run(id)).toMatchObject({ state: 'queued', rings: 2 })
    expect(await rings()).toEqual([])
  })

  test.each([1, 2, 3, 4])('rung %i times, is rung again when patience is over', async (count) => {
    const seconds = patienceS(count)
    const [late] = [await rung(count, seconds + 0.1), await rung(count, seconds * 0.6)]
    expect(await rings()).toEqual([`${late}/${count + 1}`])
  })

  test('rung five times, is given up with its reason, and who waits hears of it', async () => {
    const heard = await listen(there.url, runChannel)
    const early = await rung(maxRings, patienceS(maxRings) - 1)
    const id = await rung(maxRings, patienceS(maxRings) + 0.1)
    expect(await rings()).toEqual([])
    const run = await there.run(id)
    expect(run).toMatchObject({
      state: 'failed',
      applied: false,
      reason: 'unavailable',
      logs: ['not applied: rung 5 times, and no worker finished it'],
    })
    expect(run.finishedAt).not.toBeNull()
    await until(() => heard.includes(id), { what: 'the announcement' })
    expect(await there.work(id)).toBe('duplicate')
    expect(await there.run(early)).toMatchObject({ state: 'queued', rings: 5 })
  })

  test('is not held up by many that are to be patient', async () => {
    await there.db.query(sql`
      INSERT INTO runs (id, title, request_id, blueprint, logs, rings, rung_at)
      SELECT gen_random_uuid(), 'apply', 'r', 'sealed', '{}', 4, now() - interval '5 seconds' FROM generate_series(1, 150)`)
    const id = await rung(1, 3)
    expect(await rings()).toEqual([`${id}/2`])
  })

  test('the oldest first', async () => {
    const [young, old] = [await rung(1, 3), await rung(1, 9)]
    expect(await rings()).toEqual([`${old}/2`, `${young}/2`])
  })

  test('one whose bell cannot be rung does not keep the others waiting', async () => {
    const [first, second] = [await rung(1, 9), await rung(1, 3)]
    expect((await rings({ mute: (id) => id === first })).sort()).toEqual([`${first}/2`, `${second}/2`].sort())
  })
})

describe('a queued run whose job stands in line', () => {
  test.each([1, 2, 3, 4, 5])(
    'rung %i times, is not rung again and not given up: its patience begins anew',
    async (count) => {
      const id = await rung(count, 60)
      expect(await look({ inLine: () => true })).toEqual({ asked: [`${id}/${count}`], rung: [] })
      expect(await there.run(id)).toMatchObject({ state: 'queued', rings: count })
      expect(await look()).toEqual({ asked: [], rung: [] })
    },
  )

  test('keeps none from being rung that is lost, however many they are', async () => {
    await there.db.query(sql`
      INSERT INTO runs (id, title, request_id, blueprint, logs, rung_at)
      SELECT gen_random_uuid(), 'apply', 'r', 'sealed', '{}', now() - interval '60 seconds' FROM generate_series(1, 150)`)
    const lost = await rung(1, 30)
    const first = await look({ inLine: (id) => id !== lost })
    expect(first.asked).toHaveLength(100)
    expect(first.rung).toEqual([])
    const second = await look({ inLine: (id) => id !== lost })
    expect(second.asked).toHaveLength(51)
    expect(second.rung).toEqual([`${lost}/2`])
  })

  test.each([
    ['is left to a worker that has it by now', 1],
    ['is left to a worker that has it by now, after the last ring too', maxRings],
  ])('no longer, %s', async (_, count) => {
    const id = await rung(count, 60)
    let release = async () => {}
    const heard = await rings({
      inLine: async () => {
        release = await there.lock(id)
        return false
      },
    })
    await release()
    expect(heard).toEqual([])
    expect(await there.run(id)).toMatchObject({ state: 'queued', rings: count })
  })

  test.each([1, 4])(
    'no longer, is rung once though another reconciler asks about it at the same time (rung %i times)',
    async (count) => {
      const id = await rung(count, 60)
      let others: string[] = []
      const heard = await rings({
        inLine: async () => {
          others = await rings()
          return false
        },
      })
      expect([others, heard]).toEqual([[`${id}/${count + 1}`], []])
      expect(await there.run(id)).toMatchObject({ state: 'queued', rings: count + 1 })
    },
  )

  test.each([1, maxRings])('no longer, stays finished when it is by now (rung %i times)', async (count) => {
    const id = await rung(count, 60)
    const heard = await rings({
      inLine: async () => {
        expect(await there.work(id)).toBe('applied')
        return false
      },
    })
    expect(heard).toEqual([])
    expect(await there.run(id)).toMatchObject({ state: 'done', applied: true, rings: count })
  })
})

describe('while the queue is away', () => {
  test.each([1, 2, 3, 4, 5])('a run that was rung %i times is left as it is', async (count) => {
    const id = await rung(count, 60)
    const before = await there.run(id)
    expect(await rings({ inLine: away })).toEqual([])
    expect(await there.run(id)).toEqual(before)
  })

  test('a ring that nobody heard does not count, however often it is tried', async () => {
    const id = await rung(1, 60)
    for (let times = 0; times < maxRings + 2; times += 1) {
      expect(await rings({ mute: () => true })).toEqual([`${id}/2`])
      expect(await there.run(id)).toMatchObject({ state: 'queued', rings: 1 })
      await there.db.query(sql`UPDATE runs SET rung_at = now() - interval '1 minute'`)
    }
    expect(await rings()).toEqual([`${id}/2`])
  })

  test('for one of them, the others are rung', async () => {
    const [unknown, mute, other] = [await rung(1, 60), await rung(1, 60), await rung(1, 60)]
    const heard = await rings({ inLine: (id) => id === unknown && away(), mute: (id) => id === mute })
    expect(heard.sort()).toEqual([`${mute}/2`, `${other}/2`].sort())
    expect(await there.run(unknown)).toMatchObject({ rings: 1 })
    expect(await there.run(mute)).toMatchObject({ rings: 1 })
    expect(await there.run(other)).toMatchObject({ rings: 2 })
  })
})

describe('it is left alone', () => {
  test('while a worker has it', async () => {
    const id = await rung(1, 60)
    const other = await rung(1, 60)
    const release = await there.lock(id)
    expect(await rings()).toEqual([`${other}/2`])
    await release()
    expect(await rings()).toEqual([`${id}/2`])
  })

  test.each(['done', 'failed', 'cancelled'] as const)('when it is %s', async (state) => {
    const id = await rung(1, 60)
    await there.db.prisma.run.update({ where: { id }, data: { state, applied: false, finishedAt: new Date() } })
    expect(await rings()).toEqual([])
  })

  test('by all but one worker at a time', async () => {
    const id = await rung(1, 60)
    const all = await Promise.all(Array.from({ length: 5 }, () => rings()))
    expect(all.flat()).toEqual([`${id}/2`])
  })
})

test('made-up values are thrown away when their time is over, not before', async () => {
  const [over, not] = [await rung(1, 0), await rung(1, 0)]
  await there.db.query(sql`
    UPDATE runs SET generated = 'v1.sealed', generated_until = now() + CASE WHEN id = ${over} THEN interval '-1 second' ELSE interval '1 hour' END`)
  await rings()
  expect(await there.run(over)).toMatchObject({ generated: null, generatedUntil: null })
  expect(await there.run(not)).toMatchObject({ generated: 'v1.sealed' })
})

test('the secret of a token that nobody has viewed is kept for a day', async () => {
  const make = (identifier: string, hours: number) =>
    there.db.prisma.token.create({
      data: {
        ...{ pk: uuid7(), identifier, userPk: there.adminPk, sealedKey: 'v1.sealed', expiring: false },
        keyHash: new Uint8Array(sha256(identifier)),
        createdAt: new Date(Date.now() - hours * 3_600_000),
      },
    })
  const [old, young] = [await make('old', 24.1), await make('young', 23.9)]
  await rings()
  const sealed = async ({ pk }: { pk: string }) =>
    (await there.db.prisma.token.findUniqueOrThrow({ where: { pk } })).sealedKey
  expect([await sealed(old), await sealed(young)]).toEqual([null, 'v1.sealed'])
})

test('what a long silence left is thrown away too, not all at once', async () => {
  const { adminPk } = there
  await there.db.query(sql`
    INSERT INTO runs (id, title, submitter_pk, request_id, blueprint, options, state, applied, finished_at, generated, generated_until)
    SELECT gen_random_uuid(), 'apply long ago', ${adminPk}::integer, 'r', 'v1.sealed', '{}', 'done', true, now(), 'v1.sealed', now() - interval '1 hour'
    FROM generate_series(1, 2500)`)
  const left = async () => there.db.prisma.run.count({ where: { title: 'apply long ago', generated: { not: null } } })
  const counts: number[] = []
  for (let round = 0; round < 3; round += 1) {
    await rings()
    counts.push(await left())
  }
  expect(counts).toEqual([1_500, 500, 0])
})

test('it goes on when a bell cannot be rung, and stops when it is told to', async () => {
  const [first, second] = [await rung(1, 9), await rung(1, 3)]
  let failures = 0
  const applied: string[] = []
  const ring = async ({ id }: { id: string }) => {
    failures += 1
    if (failures <= 2) throw new Error('the queue is away')
    if ((await there.work(id)) === 'applied') applied.push(id)
  }
  const reconciler = startReconciler(there.db, { ring, standsInLine: async () => false }, there.worker.log)
  await until(() => applied.length === 2, { what: 'both runs to be applied', withinMs: 8_000 })
  await reconciler.stop()
  expect(applied.sort()).toEqual([first, second].sort())
  await rung(1, 60)
  const before = failures
  await there.recorded()
  expect(failures).toBe(before)
})
