import { beforeAll, expect, test } from 'vitest'
import { type NewRun, record, recordCancelled } from '../../../src/blueprint/run/record.ts'
import { transaction } from '../../../src/db/client.ts'
import { brokenConstraint } from '../../../src/db/failures.ts'
import { sql } from '../../../src/db/sql.ts'
import { uuid7 } from '../../../src/ids.ts'
import { type Stand, stand } from './stand.ts'

let on: Stand
beforeAll(async () => {
  on = await stand()
})

const why = 'not applied: the database went away'
const takeBack = (run: NewRun) => transaction(on.db, (tx) => recordCancelled(tx, on.engine.keyring, run, why))
const newRun = (): NewRun => ({
  id: uuid7(),
  title: 'apply radius x',
  submitterPk: on.adminPk,
  requestId: 'r',
  blueprint: 'version: 1\nentries: []\n',
  conditions: { createOnly: false, expectedKeys: {} },
})

test('a run that is taken back before its record arrives is never queued', async () => {
  const run = newRun()
  expect(await takeBack(run)).toBe(true)
  const late = await record(on.db, on.engine.keyring, run).catch((error: unknown) => brokenConstraint(error))
  expect(late).toEqual({ kind: 'unique', constraint: 'runs_pkey' })
  expect(await on.work(run.id)).toBe('duplicate')
  expect(await on.run(run.id)).toMatchObject({ state: 'cancelled', applied: null, logs: [why] })
})

test('a record that is not committed yet is waited for, and taken back', async () => {
  const run = newRun()
  let taken: Promise<boolean> | undefined
  await transaction(on.db, async (tx) => {
    await record({ writeUnflushed: async (statement) => void (await tx.query(statement)) }, on.engine.keyring, run)
    taken = takeBack(run)
    const waiting = sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`
    await expect.poll(() => on.db.query(waiting)).toHaveLength(1)
  })
  expect(await taken).toBe(true)
  expect(await on.run(run.id)).toMatchObject({ state: 'cancelled' })
})

test('a run that was applied meanwhile is not taken back', async () => {
  const { id } = await on.recorded()
  await on.work(id)
  expect(await takeBack({ ...newRun(), id })).toBe(false)
  expect(await on.run(id)).toMatchObject({ state: 'done', applied: true })
})
