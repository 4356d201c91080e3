import { beforeAll, describe, expect, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import type { Actor } from '../../src/permissions.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import { readRuns } from '../../src/runs/ended.ts'
import { runFormat } from '../../src/runs/format.ts'
import { NotYet } from '../../src/runs/life.ts'
import { outcomeSql } from '../../src/runs/outcome.ts'
import { deleteOld } from '../../src/runs/retention.ts'
import { readRun } from '../../src/views/one-run.ts'
import { readRunPart } from '../../src/views/run-parts.ts'
import { readExtracts } from '../../src/views/run-summary.ts'
import { type Body, named } from '../support/installation.ts'
import { raw, rows, sql } from '../support/sql.ts'
import { type Stand, stand } from './stand.ts'

/** Runs that changed nothing share their logs and changes (docs/adr/0077-runs-share-what-they-did.md). */

let there: Stand
let admin: Actor
beforeAll(async () => {
  there = await stand()
  const found = await actorOfUser(reader(there.db), { pk: there.adminPk })
  if (found === null) throw new Error('there is no admin')
  admin = found
})

async function done(body: Body): Promise<string> {
  const { id } = await there.recorded(body)
  await there.work(id)
  return id
}

const logsOf = (name: string) => [`provider radius "${name}" unchanged`, `application "${name}" unchanged`]
const isUnchanged = [expect.objectContaining({ action: 'unchanged' }), expect.objectContaining({ action: 'unchanged' })]
const sharedBy = async (id: string) => (await there.run(id)).sharedResult
const kept = (key: string | null) => there.db.sharedResult.findMany({ where: { key: key ?? '' } })

/** Shows a run with every reader that there is. */
async function expectShown(id: string, logs: readonly string[]): Promise<void> {
  const { db, engine } = there
  const none = async () => null
  expect(await readRun(db, engine, { id, withBlueprint: true }, admin, none)).toMatchObject({
    ...{ logs, changes: isUnchanged, unreadable: [] },
    blueprint: expect.stringContaining('entries'),
  })
  expect(await readRunPart(db, id, admin, { from: 0, most: 10, lines: 1 }, none)).toMatchObject({
    ...{ logs: logs.slice(0, 1), lines: 2, counts: { unchanged: 2 }, changes: isUnchanged, unreadable: [] },
  })
  expect((await readExtracts(db, [id]))(id)).toEqual({ logs, lines: 2, counts: { unchanged: 2 } })
  expect(await readRuns(db, [id])).toMatchObject([{ id, logs }])
  expect(await there.work(id)).toMatchObject({ state: 'done', applied: true, logs })
  expect(await rows(db, sql`SELECT ${raw(outcomeSql)} AS outcome FROM runs WHERE id = ${id}::uuid`)).toEqual([
    { outcome: 'unchanged' },
  ])
}

test('their logs and changes stand once, and every reader shows them', async () => {
  const body = await named('radius', 'shared')
  const first = await done(body)
  const ids = [await done(body), await done(body), await done(body)]
  const keys = await Promise.all(ids.map(sharedBy))
  expect(new Set(keys)).toEqual(new Set([expect.any(String)]))
  expect(await kept(keys[0] ?? null)).toMatchObject([{ logs: logsOf('shared'), changes: isUnchanged }])
  for (const id of ids) {
    expect(await there.run(id)).toMatchObject({ logs: [], changes: [] })
    await expectShown(id, logsOf('shared'))
  }
  // The run that created them has its own.
  expect(await there.run(first)).toMatchObject({ sharedResult: null, logs: [expect.any(String), expect.any(String)] })
})

test('another document has a row of its own, and a run that changed something keeps what it did', async () => {
  const body = await named('radius', 'one')
  await done(body)
  const one = await done(body)
  const other = await named('radius', 'other')
  await done(other)
  expect(await sharedBy(await done(other))).not.toBe(await sharedBy(one))
  const { id } = await there.recorded(body, {
    owner: 'team-results',
    allow: { takeover: true, grants: false, deletes: null },
  })
  await there.work(id)
  expect(await sharedBy(id)).toBeNull()
  await expectShown(one, logsOf('one'))
})

/** As a job does: runs of one submitter give their slots back when they are not given a lock soon, and come back. */
const workedOn = (id: string): ReturnType<Stand['work']> =>
  there.work(id).catch((error: unknown) => {
    if (error instanceof NotYet) return workedOn(id)
    throw error
  })

test('of many at once, one writes them', async () => {
  const body = await named('radius', 'at-once')
  await done(body)
  const recorded = await Promise.all(Array.from({ length: 8 }, () => there.recorded(body)))
  // Each twice: the second job reports what the first one did.
  const ended = await Promise.all(recorded.flatMap(({ id }) => [workedOn(id), workedOn(id)]))
  expect(ended).toEqual(Array(16).fill({ state: 'done', applied: true, reason: null, logs: logsOf('at-once') }))
  const keys = new Set(await Promise.all(recorded.map(({ id }) => sharedBy(id))))
  expect(keys.size).toBe(1)
  expect(await kept([...keys][0] ?? null)).toHaveLength(1)
  for (const { id } of recorded) await expectShown(id, logsOf('at-once'))
})

test('a run that an API of an earlier version recorded keeps its own', async () => {
  const body = await named('radius', 'earlier')
  await done(body)
  const { id } = await there.recorded(body)
  await there.db.run.update({ where: { id }, data: { format: runFormat - 1 } })
  await there.work(id)
  expect(await there.run(id)).toMatchObject({ sharedResult: null, logs: logsOf('earlier'), changes: isUnchanged })
  await expectShown(id, logsOf('earlier'))
})

test('a plan keeps its own', async () => {
  const body = await named('radius', 'planned')
  await done(body)
  const { id } = await there.recorded(body, { mode: 'plan' })
  await there.work(id)
  expect(await there.run(id)).toMatchObject({ sharedResult: null, changes: isUnchanged })
})

describe('retention', () => {
  const days = (count: number) => new Date(Date.now() - count * 86_400_000)
  const age = (id: string, createdAt: Date) => there.db.run.update({ where: { id }, data: { createdAt } })
  const use = (key: string | null, usedAt: Date) =>
    there.db.sharedResult.update({ where: { key: key ?? '' }, data: { usedAt } })
  const deleting = () => deleteOld(there.db, { runDays: 90, auditDays: 400 })

  test('deletes what no run has any more, with the last run', async () => {
    const body = await named('radius', 'old')
    await done(body)
    const [old, younger] = [await done(body), await done(body)]
    const key = await sharedBy(old)
    await age(old, days(95))
    await age(younger, days(89))
    await use(key, days(89))
    await deleting()
    expect(await there.db.run.count({ where: { id: old } })).toBe(0)
    await expectShown(younger, logsOf('old'))
    await age(younger, days(93))
    await use(key, days(93))
    await deleting()
    expect(await there.db.run.count({ where: { id: younger } })).toBe(0)
    expect(await kept(key)).toEqual([])
  })

  test('spares what a run has that is too old, and could not be deleted yet', async () => {
    const body = await named('radius', 'locked')
    await done(body)
    const id = await done(body)
    const key = await sharedBy(id)
    await age(id, days(95))
    await use(key, days(95))
    const release = await there.lock(id)
    await deleting()
    expect(await kept(key)).toHaveLength(1)
    await release()
    await deleting()
    expect(await kept(key)).toEqual([])
  })

  test('spares what was used lately, and a run that uses it again says so', async () => {
    const body = await named('radius', 'again')
    await done(body)
    const key = await sharedBy(await done(body))
    await use(key, days(91.5))
    await deleting()
    expect(await kept(key)).toHaveLength(1)
    const id = await done(body)
    expect(await sharedBy(id)).toBe(key)
    const [row] = await kept(key)
    expect(row?.usedAt.getTime()).toBeGreaterThan(days(0.5).getTime())
    await expectShown(id, logsOf('again'))
    // One that was used today is not written again.
    await done(body)
    expect(await kept(key)).toEqual([row])
  })
})
