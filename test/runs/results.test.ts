import { expect, test } from 'vitest'
import { reader } from '../../src/db/engine-tx.ts'
import { actorOfUser } from '../../src/rights/actor.ts'
import { readRuns } from '../../src/runs/ended.ts'
import { outcomeSql } from '../../src/runs/outcome.ts'
import { readRun } from '../../src/views/one-run.ts'
import { readExtracts } from '../../src/views/run-summary.ts'
import { named, raw, rows, sql } from '../support/kit.ts'
import { stand } from './stand.ts'

/** The log and the changes of a run, as each reader of the ledger shows them. */

test('every reader shows what a run did that changed nothing', async () => {
  const { db, engine, adminPk, recorded, work } = await stand()
  const actor = await actorOfUser(reader(db), { pk: adminPk })
  if (actor === null) throw new Error('there is no admin')
  const body = await named('radius', 'again')
  const [first, { id }] = [await recorded(body), await recorded(body)]
  await work(first.id)
  await work(id)
  const logs = ['provider radius "again" unchanged', 'application "again" unchanged']
  const changes = [expect.objectContaining({ action: 'unchanged' }), expect.objectContaining({ action: 'unchanged' })]
  expect(await readRun(db, engine, { id, withBlueprint: true }, actor)).toMatchObject({
    ...{ logs, changes, unreadable: [] },
    blueprint: expect.stringContaining('entries'),
  })
  expect((await readExtracts(db, [id]))(id)).toEqual({ logs, lines: 2, counts: { unchanged: 2 }, pipeline: null })
  expect(await readRuns(db, [id])).toMatchObject([{ id, logs }])
  expect(await work(id)).toMatchObject({ state: 'done', applied: true, logs })
  expect(await rows(db, sql`SELECT ${raw(outcomeSql)} AS outcome FROM runs WHERE id = ${id}::uuid`)).toEqual([
    { outcome: 'unchanged' },
  ])
})
