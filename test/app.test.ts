import { expect, test } from 'vitest'
import { buildApp } from '../src/app.ts'
import { readConfig } from '../src/config.ts'
import { connect } from '../src/db/client.ts'
import { openInspector } from '../src/http/readiness.ts'
import { followRuns } from '../src/runs/subscribe.ts'
import { openBacklog } from '../src/submissions/backlog.ts'
import { openWhyNot } from '../src/submissions/why-not.ts'
import { atEnd, execute, installation, sql } from './support/kit.ts'
import { uncounted } from './support/uncounted.ts'

const there = await installation({ workers: 'none' })

/** The API with this APPLY_WAIT_MS, as the server builds it. */
function appThatWaits(applyWaitMs: string) {
  const config = readConfig({ APPLY_WAIT_MS: applyWaitMs })
  const { db, engine, queue, enqueue, url, worker } = there
  const runs = followRuns(db, url, worker.log)
  atEnd(() => runs.close())
  const inspect = openInspector(db, queue, engine.keyring, worker.log)
  const whyNot = openWhyNot(db, inspect)
  return buildApp({
    queue,
    inspect,
    limits: config,
    retention: config,
    rateStore: null,
    submitter: {
      ...{ db, engine, runs, enqueue, log: worker.log, applyWaitMs: config.applyWaitMs, whyNot },
      queuedEntries: config.queuedEntries,
      tally: uncounted,
      backlog: openBacklog(db, { needsWorkers: false, whyNot }),
    },
  })
}

// While an apply waits, its socket is idle, and Node closes a socket that is idle for `server.timeout`: with
// 30 s and a wait of 33 s the client saw its connection closed at 30 s, without an answer.
test.each([
  ['100', 40_000],
  ['30000', 40_000],
  ['30001', 40_001],
  ['120000', 130_000],
])('a connection outlives an apply that waits %s ms: it may be still for %i ms', (wait, stillMs) => {
  expect(appThatWaits(wait).server.timeout).toBe(stillMs)
})

test('the API does not start while a model stores a field in a column that is not there', async () => {
  await execute(there.db, sql`ALTER TABLE roles RENAME COLUMN permissions TO allowed`)
  await expect(appThatWaits('100').ready()).rejects.toThrow(
    'src/models/role.ts declares the field permissions, but the table roles has no column permissions.',
  )
})

test('where the database accepts no changes, workers cannot record that they take jobs: none is said to be stopped', async () => {
  await execute(
    there.db,
    sql`INSERT INTO worker_formats (format, consumed_at) VALUES (1000, now() - interval '1 hour')`,
  )
  const url = new URL(there.url)
  const workerOn = async () => {
    const { db } = connect(url.href, { applicationName: 'test', max: 4 })
    atEnd(() => db.$disconnect())
    return (await openInspector(db, there.queue, there.engine.keyring, there.worker.log).applies()).worker.detail
  }
  expect(await workerOn()).toMatch(/^No worker has taken a job for 3600 s/)
  url.searchParams.set('options', '-c default_transaction_read_only=on')
  expect(await workerOn()).toMatch(/^Whether a worker takes jobs is not known/)
})
