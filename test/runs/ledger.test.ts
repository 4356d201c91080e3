import { describe, expect, test } from 'vitest'
import { connect, transaction } from '../../src/db/client.ts'
import { brokenConstraint } from '../../src/db/errors.ts'
import { uuid7 } from '../../src/ids.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { type NewRun, recordCancelled, recordRun } from '../../src/runs/ledger.ts'
import { conditionsOf } from '../../src/runs/options.ts'
import { databaseAway } from '../../src/runs/why.ts'
import { people } from '../rights/people.ts'
import { atEnd, execute, rows, sql, until } from '../support/kit.ts'
import { stand } from './stand.ts'

const on = await stand()

const why = 'not applied: the database went away'
const cancel = (run: NewRun) => transaction(on.db, (tx) => recordCancelled(tx, on.engine.keyring, run, databaseAway))
const newRun = (): NewRun => ({
  id: uuid7(),
  title: 'apply radius x',
  kind: 'radius',
  slug: 'x',
  submitter: { pk: on.adminPk },
  requestId: 'r',
  blueprint: 'version: 1\nentries: []\n',
  conditions: unconditional,
})

const inTime = (isFlushed = false) => ({ notAfterMs: Date.now() + 60_000, isFlushed })

test('a run that is cancelled before its record arrives is never queued', async () => {
  const run = newRun()
  expect(await cancel(run)).toBe(true)
  const late = await recordRun(on.db, on.engine.keyring, run, inTime()).catch((error: unknown) =>
    brokenConstraint(error),
  )
  expect(late).toEqual({ kind: 'unique', constraint: 'runs_pkey' })
  expect(await on.work(run.id)).toMatchObject({ state: 'cancelled', applied: false, logs: [why] })
  expect(await on.run(run.id)).toMatchObject({ state: 'cancelled', applied: null, logs: [why] })
})

test('a cancel waits for a record that is not committed yet', async () => {
  const run = newRun()
  let cancelled: Promise<boolean> | undefined
  await transaction(on.db, async (tx) => {
    const { id, title, kind, requestId } = run
    await tx.run.create({ data: { id, title, kind, requestId, blueprint: 'v1.sealed' } })
    cancelled = cancel(run)
    const waiting = sql`SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
    await until('the cancel to wait for the record', async () => (await rows(on.db, waiting)).length === 1)
  })
  expect(await cancelled).toBe(true)
  expect(await on.run(run.id)).toMatchObject({ state: 'cancelled', reason: 'cancelled' })
})

test('a run that was applied meanwhile is not cancelled', async () => {
  const { id } = await on.recorded()
  await on.work(id)
  expect(await cancel({ ...newRun(), id })).toBe(false)
  expect(await on.run(id)).toMatchObject({ state: 'done', applied: true })
})

test('a run that an earlier version recorded has no owner and acknowledges nothing', () => {
  const kept = { createOnly: true, expectedKeys: { provider: 7 } }
  expect(conditionsOf({ options: kept })).toEqual({ ...unconditional, ...kept })
})

test('a record that arrives after its time writes nothing', async () => {
  const [late, early] = [newRun(), newRun()]
  expect(
    await recordRun(on.db, on.engine.keyring, late, { notAfterMs: Date.now() - 1_000, isFlushed: false }),
  ).toBeNull()
  expect(await recordRun(on.db, on.engine.keyring, early, inTime())).toBe(0)
  expect(await on.db.run.count({ where: { id: { in: [late.id, early.id] } } })).toBe(1)
})

describe('the lane of a run', () => {
  const made: string[] = []
  /** @returns its lane */
  const record = async (pk: number, isSet = false) => {
    const run = { ...newRun(), submitter: { pk }, entries: isSet ? 101 : undefined }
    made.push(run.id)
    return recordRun(on.db, on.engine.keyring, run, inTime())
  }
  const end = (ids: readonly string[]) => on.db.run.deleteMany({ where: { id: { in: [...ids] } } })
  const users = async () => Promise.all([1, 2, 3].map(async () => (await people(on).user()).pk))

  test('is higher the more its submitter has waiting, and no other counts', async () => {
    const [ada = 0, bo = 0] = await users()
    const lanes = [await record(ada)]
    for (let count = 2; count <= 12; count += 1) lanes.push(await record(ada))
    expect(lanes).toEqual([0, ...Array(9).fill(1), 2, 2])
    expect(await record(bo)).toBe(0)
    expect(await record(bo)).toBe(1)
  })

  test('is never lower than that of an own run that waits, so that runs keep their order', async () => {
    const [ada = 0] = await users()
    made.length = 0
    for (let count = 1; count <= 11; count += 1) await record(ada)
    await end(made.slice(0, 10))
    // One is left, in lane 2.
    expect(await record(ada)).toBe(2)
    await end(made)
    expect(await record(ada)).toBe(0)
  })

  test('of a large one is behind those of few entries', async () => {
    const [ada = 0, bo = 0] = await users()
    expect(await record(ada, true)).toBe(4)
    expect([await record(ada), await record(bo), await record(bo)]).toEqual([4, 0, 1])
  })
})

test('a run of which the answer only says that it is recorded is on the disk before', async () => {
  // Commits of the other tests do not wait for the disk.
  await execute(
    on.db,
    sql`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = on', current_database()); END $$`,
  )
  const { db } = connect(on.url, { applicationName: 'gatewright-test', max: 1 })
  atEnd(() => db.$disconnect())
  /** Whether the disk has anything of what this writes. Other tests write to the same server meanwhile. */
  const flushes = async (write: () => Promise<unknown>) => {
    const [before] = await rows<{ lsn: string }>(db, sql`SELECT pg_current_wal_insert_lsn()::text AS lsn`)
    await write()
    const [after] = await rows<{ is: boolean }>(
      db,
      sql`SELECT pg_current_wal_flush_lsn() > ${before?.lsn}::pg_lsn AS is`,
    )
    return after?.is
  }
  expect(await flushes(() => recordRun(db, on.engine.keyring, newRun(), inTime(true)))).toBe(true)
  // Another test may flush meanwhile: of several tries, one shows the difference.
  await expect.poll(() => flushes(() => recordRun(db, on.engine.keyring, newRun(), inTime()))).toBe(false)
})
