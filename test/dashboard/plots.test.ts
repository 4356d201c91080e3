import { beforeEach, expect, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import type { Prisma } from '../../src/db/generated/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { periods, readFigures } from '../../src/lists/run-figures.ts'
import { runList } from '../../src/lists/runs.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import { deleteOldSums, foldRuns } from '../../src/runs/fold.ts'
import { deleteOld } from '../../src/runs/retention.ts'
import { dashboardOf } from '../support/dashboard.ts'
import { type Installation, installation } from '../support/installation.ts'
import { run, sql } from '../support/sql.ts'

/** Plots of longer periods: what maintenance folds, and what is read of it. */

let service: Installation
beforeEach(async () => {
  service = await installation()
  // As of an installation that was made long ago.
  await run(service.db, sql`UPDATE run_folds SET until = now() - interval '390 days'`)
})

const minutesMs = 60_000
const daysMs = 86_400_000
const ago = (ms: number) => new Date(Date.now() - ms)

type Told = Partial<Prisma.RunUncheckedCreateInput>

const outcomes = {
  applied: { applied: true, changes: [{ action: 'update' }] },
  unchanged: { applied: true, changes: [{ action: 'unchanged' }] },
  refused: { applied: false, reason: 'conflict' },
  failed: { state: 'failed', applied: false, reason: 'server_error' },
  cancelled: { state: 'cancelled', reason: 'cancelled' },
  planned: { mode: 'plan', applied: false },
} satisfies Record<string, Told>

/** A run that ended past the worker, and was recorded at this time. */
async function recorded(createdAt: Date, data: Told, workMs = 8): Promise<string> {
  const id = uuid7()
  const startedAt = new Date(createdAt.getTime() + 3)
  const finishedAt = new Date(startedAt.getTime() + workMs)
  await service.db.run.create({
    data: { id, state: 'done', title: 'apply', requestId: id, createdAt, startedAt, finishedAt, ...data },
  })
  return id
}

const fold = () => foldRuns(service.db, 1_000)

async function figures(period: keyof typeof periods, pk?: number) {
  const { db, engine } = service
  const { pk: adminPk } = await db.user.findUniqueOrThrow({ where: { username: 'admin' } })
  const actor = await actorOfUser(reader(db), { pk: pk ?? adminPk })
  if (actor === null) throw new Error('there is no such user')
  return readFigures(db, runList(engine.registry), actor, period)
}

async function totals(period: keyof typeof periods, pk?: number) {
  const { bars } = await figures(period, pk)
  return Object.fromEntries(
    [...Map.groupBy(bars, ({ outcome }) => outcome)].map(([outcome, all]) => [
      outcome,
      all.reduce((sum, { runs }) => sum + runs, 0),
    ]),
  )
}

test('a plot of a year shows runs that were deleted long ago, and those of the last minutes', async () => {
  for (const days of [350, 100, 40])
    for (const data of Object.values(outcomes)) await recorded(ago(days * daysMs), data)
  await recorded(ago(2 * daysMs), outcomes.failed)
  expect(await fold()).toMatchObject({ folded: 16, isDone: true })
  await deleteOld(service.db, { runDays: 30, auditDays: 400 })
  await deleteOldSums(service.db)
  expect(await service.db.run.count()).toBe(1)
  await recorded(ago(minutesMs), outcomes.failed)

  const dashboard = dashboardOf(service)
  const viewer = await service.make.user({ permissions: ['view_queue', 'view_run'] })
  const cookie = await dashboard.session(viewer.token)
  const { body } = await dashboard.send({ method: 'GET', url: '/admin/?period=year', headers: { cookie } })
  expect(/aria-label="Submissions by outcome: ([^"]*)"/.exec(body)?.[1]).toBe(
    '3 applied, 3 unchanged, 3 refused, 5 failed, 3 cancelled',
  )
  expect(await totals('month')).toEqual({ failed: 2 })
})

test.each(['day', 'week', 'month', 'year'] as const)(
  'a plot of a %s has each run in the bar of its time',
  async (period) => {
    const { steps, stepS } = periods[period]
    const times = [0.5, 3, steps / 2, steps - 2].map((bars) => ago(bars * stepS * 1_000))
    for (const at of times) await recorded(at, outcomes.applied)
    await recorded(ago((steps + 1) * stepS * 1_000), outcomes.applied)
    const before = await figures(period)
    await fold()
    const after = await figures(period)
    const barOf = (at: Date) => Math.floor(at.getTime() / 1_000 / stepS)
    expect(after.bars.map(({ at }) => barOf(at))).toEqual(times.map(barOf).sort((one, other) => one - other))
    expect(after.bars).toEqual(before.bars)
  },
)

test('each run is counted once, however often and by however many workers it is folded', async () => {
  for (let each = 0; each < 30; each += 1)
    await recorded(ago(10 * minutesMs + each * 20 * minutesMs), outcomes.unchanged)
  const folds = await Promise.all(Array.from({ length: 6 }, fold))
  expect(folds.reduce((sum, { folded }) => sum + folded, 0)).toBe(30)
  await fold()
  expect(await totals('day')).toEqual({ unchanged: 30 })
  expect(await totals('year')).toEqual({ unchanged: 30 })
})

test('a run that has not ended is counted as it is, and folded once it has', async () => {
  const waiting = await recorded(ago(30 * minutesMs), { state: 'queued', startedAt: null, finishedAt: null })
  await recorded(ago(40 * minutesMs), outcomes.applied)
  await recorded(ago(20 * minutesMs), outcomes.applied)
  expect(await fold()).toEqual({ folded: 1, isDone: true })
  expect(await totals('day')).toEqual({ applied: 2, unknown: 1 })
  await service.db.run.update({ where: { id: waiting }, data: { state: 'cancelled', finishedAt: new Date() } })
  expect(await fold()).toEqual({ folded: 2, isDone: true })
  expect(await totals('day')).toEqual({ applied: 2, cancelled: 1 })
})

test('a ledger of many runs is folded in portions', async () => {
  await run(
    service.db,
    sql`INSERT INTO runs (id, title, request_id, state, applied, created_at, finished_at)
      SELECT gen_random_uuid(), 'apply', 'r', 'done', true, now() - make_interval(secs => 600 + i), now() FROM generate_series(1, 50000) i`,
  )
  expect(await foldRuns(service.db, 1)).toMatchObject({ isDone: false })
  expect(await fold()).toMatchObject({ isDone: true })
  expect(await totals('day')).toEqual({ applied: 50_000 })
})

test('times of a longer period are right to an eighth', async () => {
  const base = 15 * minutesMs
  for (let each = 0; each < 100; each += 1) await recorded(ago(base), outcomes.applied, each === 50 ? 20_000 : 40)
  for (let each = 0; each < 2; each += 1) await recorded(ago(base), outcomes.applied, 20_000)
  await fold()
  const { times } = await figures('week')
  expect(times.workMs?.p50).toSatisfy((ms: number) => Math.abs(ms - 40) <= 5)
  expect(times.workMs?.p99).toSatisfy((ms: number) => Math.abs(ms - 20_000) <= 2_500)
})

test.each(['hour', 'day', 'week', 'month', 'year'] as const)(
  'a plot of the last %s has the times of each step, of all runs and of those that a caller sees',
  async (period) => {
    const { steps, stepS } = periods[period]
    const own = await service.make.user({ permissions: ['view_queue'] })
    const [early, late] = [ago((steps - 2) * stepS * 1_000), ago(2 * stepS * 1_000)]
    for (const workMs of [40, 40, 400]) await recorded(early, { ...outcomes.applied, submitterPk: own.pk }, workMs)
    await recorded(late, outcomes.applied, 9_000)
    await recorded(late, { ...outcomes.cancelled, startedAt: null })
    const shown = async (pk?: number) =>
      (await figures(period, pk)).steps.map(({ at, queueMs, workMs }) => ({
        step: Math.floor(at.getTime() / 1_000 / stepS),
        ms: [queueMs?.p50, queueMs?.p99, workMs?.p50, workMs?.p99],
      }))
    const about = (...all: number[]) =>
      all.map((ms) => expect.toSatisfy((found: number) => Math.abs(found - ms) <= (period === 'hour' ? 0 : ms / 8)))
    const stepOf = (at: Date) => Math.floor(at.getTime() / 1_000 / stepS)
    const first = { step: stepOf(early), ms: about(3, 3, 40, 400) }
    const before = await shown()
    expect(before).toEqual([first, { step: stepOf(late), ms: about(3, 3, 9_000, 9_000) }])
    expect(await shown(own.pk)).toEqual([first])
    await fold()
    expect(await shown()).toEqual(before)
  },
)

test('the first page draws p50 and p99 of each step, and has them as columns', async () => {
  for (const minutes of [50, 49, 20]) await recorded(ago(minutes * minutesMs), outcomes.applied, 40)
  await recorded(ago(20 * minutesMs), outcomes.applied, 30_000)
  await recorded(ago(5 * minutesMs), { ...outcomes.cancelled, startedAt: null })
  const dashboard = dashboardOf(service)
  const viewer = await service.make.user({ permissions: ['view_queue', 'view_run'] })
  const headers = { cookie: await dashboard.session(viewer.token) }
  const { body } = await dashboard.send({ method: 'GET', url: '/admin/', headers })
  const described = /<title id="work-title">([^<]*)<\/title>\s*<desc id="work-says">([^<]*)</.exec(body)
  expect(described?.slice(1)).toEqual([
    'Time at work, p50 and p99',
    expect.stringMatching(
      /^p50: 40 ms, step by step from 40 ms to 40 ms\. p99: 30 s, step by step from 40 ms to 30 s\./,
    ),
  ])
  const [, line = ''] = /aria-labelledby="work-title"[\s\S]*?<path class="p99" d="([^"]*)"/.exec(body) ?? []
  // Two that follow each other are one line; the next one stands for itself, and higher.
  expect(line.match(/[MVH]/g)).toEqual(['M', 'H', 'V', 'H', 'M', 'H'])
  const [, first = '', last = ''] = /^M[\d.]+ ([\d.]+)H.*M[\d.]+ ([\d.]+)H/.exec(line) ?? []
  expect(Number(last)).toBeLessThan(Number(first))
  const rows = body.match(/<tr><th scope="row"><time[\s\S]*?<\/tr>/g) ?? []
  const cells = rows.map((row) => [...row.matchAll(/<td class="number">([^<]*)</g)].map(([, cell]) => cell).slice(-4))
  const quick = ['3 ms', '3 ms', '40 ms', '40 ms']
  expect(cells).toEqual([quick, quick, ['3 ms', '3 ms', '40 ms', '30 s'], ['', '', '', '']])
})

test('callers who see some runs get plots of these alone', async () => {
  const own = await service.make.user({ permissions: ['view_queue'] })
  await recorded(ago(10 * daysMs), { ...outcomes.failed, submitterPk: own.pk })
  await recorded(ago(10 * daysMs), outcomes.failed)
  await fold()
  expect(await totals('month', own.pk)).toEqual({ failed: 1 })
  expect(await totals('month')).toEqual({ failed: 2 })
})
