import { describe, expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { reader } from '../../src/db/engine-tx.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import { startReconciler } from '../../src/runs/reconcile.ts'
import { cancelStale, deleteOld, startRetention } from '../../src/runs/retention.ts'
import { readRun } from '../../src/views/one-run.ts'
import { execute, named, raw, rows, sql, statementsOf, until } from '../support/kit.ts'
import { type Stand, stand } from './stand.ts'

const there = await stand()

const keep = { runDays: 90, auditDays: 400 }
const days = (count: number) => new Date(Date.now() - count * 86_400_000)
const age = (id: string, createdAt: Date) => there.db.run.update({ where: { id }, data: { createdAt } })

async function done(body?: Parameters<Stand['recorded']>[0]) {
  const recorded = await there.recorded(body)
  await there.work(recorded.id)
  return recorded
}

async function shown(id: string) {
  const actor = await actorOfUser(reader(there.db), { pk: there.adminPk })
  if (actor === null) throw new Error('there is no admin')
  return readRun(there.db, there.engine, { id, withBlueprint: true }, actor)
}

describe('runs and audit rows are kept for some time', () => {
  test('older runs are deleted, younger and queued ones are not', async () => {
    const [old, young, queued] = [await done(), await done(), await there.recorded()]
    await age(old.id, days(90.1))
    await age(young.id, days(89.9))
    await age(queued.id, days(91))
    await deleteOld(there.db, keep)
    const left = await there.db.run.findMany({ select: { id: true } })
    expect(left.map(({ id }) => id)).toEqual(expect.arrayContaining([young.id, queued.id]))
    expect(left.map(({ id }) => id)).not.toContain(old.id)
  })

  test('older audit rows are deleted, and not those of younger runs', async () => {
    const make = (name: string, at: Date) =>
      there.db.auditRow.create({ data: { actorName: name, action: 'apply', changes: [], at } })
    await there.db.auditRow.deleteMany()
    await make('old', days(400.1))
    await make('young', days(399.9))
    await deleteOld(there.db, keep)
    expect((await there.db.auditRow.findMany()).map(({ actorName }) => actorName)).toEqual(['young'])
  })

  test('audit rows also when a younger one is between them, as of a clock that was set back', async () => {
    await there.db.auditRow.deleteMany()
    await execute(
      there.db,
      sql`INSERT INTO audit_rows (at, actor_name, action, changes)
        SELECT now() - make_interval(days => CASE WHEN n % 100 = 0 THEN 1 ELSE 401 END), 'test', 'apply', '[]'
        FROM generate_series(1, 4000) n`,
    )
    expect((await deleteOld(there.db, keep)).audit).toBe(3_960)
    expect(await there.db.auditRow.count()).toBe(40)
  })

  test('without reading a whole table for a portion', async () => {
    await execute(
      there.db,
      sql`INSERT INTO runs (id, title, kind, request_id, blueprint, state, applied, created_at, finished_at)
        SELECT gen_random_uuid(), 'apply lately', 'radius', 'r', 'v1.sealed', 'done', true, now(), now()
        FROM generate_series(1, 20000)`,
    )
    await execute(
      there.db,
      sql`INSERT INTO audit_rows (at, actor_name, action, changes) SELECT now(), 'test', 'apply', '[]'
        FROM generate_series(1, 20000)`,
    )
    await execute(there.db, sql`ANALYZE runs, audit_rows`)
    const texts = await statementsOf(() => deleteOld(there.db, keep))
    const [ofRuns = ''] = texts.filter((text) => text.includes('DELETE FROM runs'))
    const plan = await transaction(there.db, async (tx) => {
      await execute(tx, raw(`PREPARE old_runs AS ${ofRuns}`))
      const lines = await rows<{ 'QUERY PLAN': string }>(tx, raw('EXPLAIN EXECUTE old_runs(90)'))
      await execute(tx, raw('DEALLOCATE old_runs'))
      return lines.map((line) => line['QUERY PLAN']).join('\n')
    })
    expect(plan).toMatch(/Delete on runs/)
    expect(plan).not.toMatch(/Seq Scan on runs/)
    // The counts of a session may hold those of its transactions before.
    const [before, after] = await transaction(there.db, async (tx) => {
      const scans = () => rows(tx, sql`SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'audit_rows'`)
      const before = await scans()
      await rows(tx, sql`SELECT delete_old_audit_rows(400, 1000)`)
      return [before, await scans()]
    })
    expect(after).toHaveLength(1)
    expect(after).toEqual(before)
    await execute(there.db, sql`DELETE FROM runs WHERE title = 'apply lately'`)
    await there.db.auditRow.deleteMany()
  })

  test('in portions, by the worker', async () => {
    await execute(
      there.db,
      sql`INSERT INTO runs (id, title, kind, request_id, blueprint, state, applied, created_at, finished_at)
        SELECT gen_random_uuid(), 'apply long ago', 'radius', 'r', 'v1.sealed', 'done', true, now() - interval '91 days', now()
        FROM generate_series(1, 25000)`,
    )
    const left = () => there.db.run.count({ where: { title: 'apply long ago' } })
    await deleteOld(there.db, keep)
    expect(await left()).toBe(5_000)
    const retention = startRetention(there.db, there.engine.registry, keep, there.worker.log)
    expect(await until('old runs to be deleted', async () => (await left()) === 0)).toBe(true)
    await retention.stop()
  })
})

describe('runs with the same document share one copy', () => {
  const copies = (ids: readonly string[]) =>
    there.db.run.count({ where: { id: { in: [...ids] }, blueprint: { not: null } } })

  test('the newest of those that changed nothing holds it, and all show it', async () => {
    const body = await named('oauth2', 'shared')
    const ids: string[] = []
    for (let round = 0; round < 4; round += 1) ids.push((await done(body)).id)
    expect(await copies(ids)).toBe(1)
    expect((await there.run(ids.at(-1) ?? '')).blueprint).not.toBeNull()
    const texts = await Promise.all(ids.map(async (id) => (await shown(id))?.blueprint))
    expect(texts[0]).toContain('name: shared')
    expect(new Set(texts).size).toBe(1)
  })

  test('a run that ends after a later one leaves it its copy', async () => {
    const body = await named('oauth2', 'overtaken')
    const earlier = await there.recorded(body)
    const later = await done(body)
    expect(await there.work(earlier.id)).toMatchObject({
      logs: [expect.stringMatching(/unchanged$/), expect.anything()],
    })
    expect(await copies([earlier.id, later.id])).toBe(2)
  })

  test('it outlives the deletion of the first run', async () => {
    const body = await named('oauth2', 'outlives')
    const [first, second] = [await done(body), await done(body)]
    await age(first.id, days(91))
    await deleteOld(there.db, keep)
    expect(await there.db.run.count({ where: { id: first.id } })).toBe(0)
    expect((await shown(second.id))?.blueprint).toContain('name: outlives')
  })

  test('a run that changed something, or has another document, keeps its own', async () => {
    const body = await named('oauth2', 'own')
    const changed = { ...body, app: { ...body.app, name: 'Another' } }
    const ids = [(await done(body)).id, (await done(changed)).id, (await done(body)).id]
    expect(await copies(ids)).toBe(3)
    // One that changes nothing takes the copies of its own document only.
    const { id } = await done(body)
    expect(await copies([...ids, id])).toBe(2)
    expect((await there.run(ids[1] ?? '')).blueprint).not.toBeNull()
  })

  test('a queued run is never without its document', async () => {
    const body = await named('oauth2', 'waits')
    await done(body)
    const waits = await there.recorded(body)
    const later = await done(body)
    expect(later.id).not.toBe(waits.id)
    expect((await there.run(waits.id)).blueprint).not.toBeNull()
    expect(await there.work(waits.id)).toMatchObject({ state: 'done', applied: true })
  })
})

describe('a run that was queued for more than an hour is cancelled', () => {
  const cancelled = { state: 'cancelled', reason: 'cancelled', logs: [expect.stringContaining('more than an hour')] }
  const hours = (count: number) => days(count / 24)

  test('at the start of a worker, all of them', async () => {
    await execute(
      there.db,
      sql`INSERT INTO runs (id, title, kind, request_id, blueprint, state, created_at)
        SELECT gen_random_uuid(), 'apply restored', 'radius', 'r', 'v1.sealed', 'queued', now() - interval '61 minutes'
        FROM generate_series(1, 2500)`,
    )
    const young = await there.recorded()
    await age(young.id, hours(0.98))
    await cancelStale(there.db, there.worker)
    expect(await there.db.run.count({ where: { title: 'apply restored', state: 'cancelled' } })).toBe(2_500)
    expect(await there.run(young.id)).toMatchObject({ state: 'queued' })
  })

  test('by the reconciler, which does not enqueue it', async () => {
    const { id } = await there.recorded()
    await age(id, hours(1.02))
    const enqueued: string[] = []
    const queue = {
      enqueue: async ({ id: run }: { id: string }) => void enqueued.push(run),
      isQueued: async () => false,
      wake: async () => {},
    }
    const reconciler = startReconciler(there.db, queue, there.worker)
    await until('the run to be cancelled', async () => (await there.run(id)).state !== 'queued')
    await reconciler.stop()
    expect(await there.run(id)).toMatchObject(cancelled)
    expect(enqueued).not.toContain(id)
  })

  test('by a worker whose job is older than both', async () => {
    const { id, name } = await there.recorded()
    await age(id, hours(1.02))
    expect(await there.work(id)).toMatchObject({ state: 'cancelled', applied: false })
    expect(await there.run(id)).toMatchObject(cancelled)
    expect(await there.db.provider.count({ where: { name } })).toBe(0)
  })

  test('but not one that a worker has locked', async () => {
    const { id } = await there.recorded()
    await age(id, hours(1.02))
    const release = await there.lock(id)
    await cancelStale(there.db, there.worker)
    expect(await there.run(id)).toMatchObject({ state: 'queued' })
    await release()
  })
})
