import { beforeEach, describe, expect, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import type { Prisma } from '../../src/db/generated/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { type Counted, mostCounted, type Period, periods, readFigures } from '../../src/lists/run-figures.ts'
import { runList } from '../../src/lists/runs.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import { dashboardOf, type Installation, installation, run, sql } from '../support/kit.ts'

/** The plot of the first page: outcomes and times of the last hour and the last day. */

let service: Installation
beforeEach(async () => {
  service = await installation()
})

const minutesMs = 60_000
const ago = (ms: number) => new Date(Date.now() - ms)

type Told = Partial<Prisma.RunUncheckedCreateInput>

const outcomes = {
  applied: { applied: true, changes: [{ action: 'update' }] },
  unchanged: { applied: true, changes: [{ action: 'unchanged' }] },
  refused: { applied: false, reason: 'conflict' },
  failed: { state: 'failed', applied: false, reason: 'server_error' },
  cancelled: { state: 'cancelled', reason: 'cancelled', startedAt: null },
  unknown: { state: 'queued', startedAt: null, finishedAt: null },
  planned: { mode: 'plan', applied: false },
} satisfies Record<string, Told>

/** A run that ended past the worker, and was recorded at this time. */
async function recorded(createdAt: Date, data: Told, workMs = 8): Promise<void> {
  const id = uuid7()
  const startedAt = new Date(createdAt.getTime() + 3)
  const finishedAt = new Date(startedAt.getTime() + workMs)
  await service.db.run.create({
    data: { id, state: 'done', title: 'apply', requestId: id, createdAt, startedAt, finishedAt, ...data },
  })
}

async function figures(period: Period, pk?: number) {
  const { db, engine } = service
  const { pk: adminPk } = await db.user.findUniqueOrThrow({ where: { username: 'admin' } })
  const actor = await actorOfUser(reader(db), { pk: pk ?? adminPk })
  if (actor === null) throw new Error('there is no such user')
  return readFigures(db, runList(engine.registry), actor, period)
}

const outcomesOf = ({ applied, unchanged, refused, failed, cancelled, unknown }: Counted) => ({
  applied,
  unchanged,
  refused,
  failed,
  cancelled,
  unknown,
})
const none = { applied: 0, unchanged: 0, refused: 0, failed: 0, cancelled: 0, unknown: 0 }

async function page(query: string): Promise<string> {
  const dashboard = dashboardOf(service)
  const viewer = await service.make.user({ permissions: ['view_queue', 'view_run'] })
  const headers = { cookie: await dashboard.session(viewer.token) }
  return (await dashboard.send({ method: 'GET', url: `/admin/${query}`, headers })).body
}

describe.each(['hour', 'day'] as const)('a plot of the last %s', (period) => {
  const { steps, stepS } = periods[period]
  const barsAgo = (bars: number) => ago(bars * stepS * 1_000)
  const stepOf = (at: Date) => Math.floor(at.getTime() / 1_000 / stepS)

  test('has each submission in the bar of its time, by its outcome, and no plans', async () => {
    for (const data of Object.values(outcomes)) await recorded(barsAgo(3), data)
    const times = [0.5, steps / 2, steps - 2].map(barsAgo)
    for (const at of times) await recorded(at, outcomes.failed)
    await recorded(barsAgo(steps + 1), outcomes.applied)
    const { bars, total, since } = await figures(period)
    const one = { applied: 1, unchanged: 1, refused: 1, failed: 1, cancelled: 1, unknown: 1 }
    const found = Object.fromEntries(bars.map((bar) => [stepOf(bar.at), outcomesOf(bar)]))
    expect(found).toEqual({
      ...Object.fromEntries(times.map((at) => [stepOf(at), { ...none, failed: 1 }])),
      [stepOf(barsAgo(3))]: one,
    })
    expect([outcomesOf(total), since]).toEqual([{ ...one, failed: 4 }, null])
  })

  test('has the times of each bar, of all submissions and of those that a caller sees', async () => {
    const own = await service.make.user({ permissions: ['view_queue'] })
    const [early, late] = [barsAgo(steps - 2), barsAgo(2)]
    for (const workMs of [40, 40, 400]) await recorded(early, { ...outcomes.applied, submitterPk: own.pk }, workMs)
    await recorded(late, outcomes.applied, 9_000)
    await recorded(late, outcomes.cancelled)
    const queue = { queueP50: 3, queueP99: 3 }
    const first = { ...queue, workP50: 40, workP99: 400 }
    const { bars, total } = await figures(period)
    expect(bars).toMatchObject([first, { ...queue, workP50: 9_000, workP99: 9_000 }])
    expect(total).toMatchObject({ ...queue, workP50: 40, workP99: 9_000 })
    const seen = await figures(period, own.pk)
    expect(seen.bars).toMatchObject([first])
    expect(seen.total).toMatchObject({ ...first, ...none, applied: 3 })
  })
})

test('of many submissions the newest are counted, and the page says since when', async () => {
  const portion = mostCounted / 5
  for (let from = 0; from < mostCounted; from += portion)
    await run(
      service.db,
      sql`INSERT INTO runs (id, title, request_id, state, applied, created_at, started_at, finished_at)
        SELECT gen_random_uuid(), 'apply', 'r', 'done', true, at, at + make_interval(secs => i % 97), at + make_interval(secs => i % 997)
        FROM generate_series(1 + ${from}, ${from + portion}) i, LATERAL (SELECT now() - make_interval(secs => i * 0.5) AS at) t`,
    )
  await recorded(ago(20 * 60 * minutesMs), outcomes.failed)
  const { total, since } = await figures('day')
  expect(total).toMatchObject({ ...none, applied: mostCounted })
  expect(Math.abs(ago(mostCounted * 500).getTime() - Number(since))).toBeLessThan(5 * minutesMs)
  expect(await page('?period=day')).toMatch(/The newest 50\u202f000 alone are counted: those since <time/)
})

test('the first page draws the outcomes, and has p50 and p99 of each bar as columns', async () => {
  for (const minutes of [50, 49, 20]) await recorded(ago(minutes * minutesMs), outcomes.applied, 40)
  await recorded(ago(20 * minutesMs), outcomes.failed, 30_000)
  await recorded(ago(5 * minutesMs), outcomes.cancelled)
  const body = await page('')
  expect(/aria-label="Submissions by outcome: ([^"]*)"/.exec(body)?.[1]).toBe('3 applied, 1 failed, 1 cancelled')
  const pathOf = (outcome: string) => new RegExp(`<path class="${outcome}" d="([^"]*)"`).exec(body)?.[1] ?? ''
  expect(pathOf('applied').match(/M/g)).toHaveLength(3)
  // The failed one stands on the applied one of the same bar.
  const [, x, y, tall] = /M([\d.]+) ([\d.]+)h[\d.]+v([\d.]+)/.exec(pathOf('failed')) ?? []
  expect(pathOf('applied')).toContain(`M${x} ${(Number(y) + Number(tall)).toFixed(1)}h`)
  const rows = body.match(/<tr><th scope="row"><time[\s\S]*?<\/tr>/g) ?? []
  const cells = rows.map((row) => [...row.matchAll(/<td class="number">([^<]*)</g)].map(([, cell]) => cell).slice(-4))
  const quick = ['3 ms', '3 ms', '40 ms', '40 ms']
  expect(cells).toEqual([quick, quick, ['3 ms', '3 ms', '40 ms', '30 s'], ['', '', '', '']])
})
