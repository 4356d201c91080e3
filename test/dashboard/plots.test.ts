import { beforeEach, expect, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import type { Prisma } from '../../src/db/generated/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { mostCounted, readFigures } from '../../src/lists/run-figures.ts'
import { runList } from '../../src/lists/runs.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import { dashboardOf, execute, type Installation, installation, sql } from '../support/kit.ts'

/** The plot of the first page: outcomes of the last hour. */

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

async function figures(pk?: number) {
  const { db, engine } = service
  const { pk: adminPk } = await db.user.findUniqueOrThrow({ where: { username: 'admin' } })
  const actor = await actorOfUser(reader(db), { pk: pk ?? adminPk })
  if (actor === null) throw new Error('there is no such user')
  return readFigures(db, runList(engine.registry), actor)
}

const none = { applied: 0, unchanged: 0, refused: 0, failed: 0, cancelled: 0, unknown: 0 }

async function page(): Promise<string> {
  const dashboard = dashboardOf(service)
  const viewer = await service.make.user({ permissions: ['view_queue', 'view_run'] })
  const headers = { cookie: await dashboard.session(viewer.token) }
  return (await dashboard.send({ method: 'GET', url: '/admin/', headers })).body
}

test('each submission is in the bar of its minute, by its outcome, and no plans', async () => {
  for (const data of Object.values(outcomes)) await recorded(ago(3 * minutesMs), data)
  for (const minutes of [1, 30, 58]) await recorded(ago(minutes * minutesMs), outcomes.failed)
  await recorded(ago(61 * minutesMs), outcomes.applied)
  const { bars, total, since } = await figures()
  const one = { applied: 1, unchanged: 1, refused: 1, failed: 1, cancelled: 1, unknown: 1 }
  expect(bars).toMatchObject([{ ...none, failed: 1 }, { ...none, failed: 1 }, one, { ...none, failed: 1 }])
  const apart = bars.map(({ bar }) => bar - (bars[0]?.bar ?? 0))
  expect(apart).toEqual([0, 28, 55, 57])
  expect([total, since]).toEqual([{ ...one, failed: 4 }, null])
})

test('a caller who sees some runs gets a plot of these', async () => {
  const own = await service.make.user({ permissions: ['view_queue'] })
  for (const minutes of [50, 2]) await recorded(ago(minutes * minutesMs), { ...outcomes.applied, submitterPk: own.pk })
  await recorded(ago(2 * minutesMs), outcomes.applied)
  expect((await figures(own.pk)).total).toEqual({ ...none, applied: 2 })
  expect((await figures()).total).toEqual({ ...none, applied: 3 })
})

test('of many submissions the newest are counted, and the page says since when', async () => {
  const portion = mostCounted / 5
  for (let from = 0; from < mostCounted; from += portion)
    await execute(
      service.db,
      sql`INSERT INTO runs (id, title, request_id, state, applied, created_at, started_at, finished_at)
        SELECT gen_random_uuid(), 'apply', 'r', 'done', true, at, at + make_interval(secs => i % 97), at + make_interval(secs => i % 997)
        FROM generate_series(1 + ${from}, ${from + portion}) i, LATERAL (SELECT now() - make_interval(secs => i * 0.05) AS at) t`,
    )
  await recorded(ago(50 * minutesMs), outcomes.failed)
  const { total, since } = await figures()
  expect(total).toMatchObject({ ...none, applied: mostCounted })
  expect(Math.abs(ago(mostCounted * 50).getTime() - Number(since))).toBeLessThan(5 * minutesMs)
  expect(await page()).toMatch(/The newest 50\u202f000 alone are counted: those since <time/)
})

test('the first page draws the outcomes', async () => {
  for (const minutes of [50, 49, 20]) await recorded(ago(minutes * minutesMs), outcomes.applied, 40)
  await recorded(ago(20 * minutesMs), outcomes.failed, 30_000)
  await recorded(ago(5 * minutesMs), outcomes.cancelled)
  const body = await page()
  expect(/aria-label="Submissions by outcome: ([^"]*)"/.exec(body)?.[1]).toBe('3 applied, 1 failed, 1 cancelled')
  const pathOf = (outcome: string) => new RegExp(`<path class="${outcome}" d="([^"]*)"`).exec(body)?.[1] ?? ''
  expect(pathOf('applied').match(/M/g)).toHaveLength(3)
  // The failed one stands on the applied one of the same bar.
  const [, x, y, tall] = /M([\d.]+) ([\d.]+)h[\d.]+v([\d.]+)/.exec(pathOf('failed')) ?? []
  expect(pathOf('applied')).toContain(`M${x} ${(Number(y) + Number(tall)).toFixed(1)}h`)
})
