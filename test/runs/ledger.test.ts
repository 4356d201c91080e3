import { beforeAll, expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { brokenConstraint } from '../../src/db/errors.ts'
import { uuid7 } from '../../src/ids.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { type NewRun, recordCancelled, recordRun } from '../../src/runs/ledger.ts'
import { conditionsOf } from '../../src/runs/options.ts'
import { rows, sql } from '../support/sql.ts'
import { until } from '../support/until.ts'
import { type Stand, stand } from './stand.ts'

let on: Stand
beforeAll(async () => {
  on = await stand()
})

const why = 'not applied: the database went away'
const cancel = (run: NewRun) => transaction(on.db, (tx) => recordCancelled(tx, on.engine.keyring, run, why))
const newRun = (): NewRun => ({
  id: uuid7(),
  title: 'apply radius x',
  kind: 'radius',
  slug: 'x',
  submitterPk: on.adminPk,
  requestId: 'r',
  blueprint: 'version: 1\nentries: []\n',
  conditions: unconditional,
})

test('a run that is cancelled before its record arrives is never queued', async () => {
  const run = newRun()
  expect(await cancel(run)).toBe(true)
  const late = await recordRun(on.db, on.engine.keyring, run, Date.now() + 60_000).catch((error: unknown) =>
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
    await until(async () => (await rows(on.db, waiting)).length === 1, { what: 'the cancel to wait for the record' })
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
  expect(await recordRun(on.db, on.engine.keyring, late, Date.now() - 1_000)).toBe(false)
  expect(await recordRun(on.db, on.engine.keyring, early, Date.now() + 60_000)).toBe(true)
  expect(await on.db.run.count({ where: { id: { in: [late.id, early.id] } } })).toBe(1)
})
