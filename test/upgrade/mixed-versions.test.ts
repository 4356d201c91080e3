import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { connect } from '../../src/db/client.ts'
import { migrate } from '../../src/db/migrate.ts'
import { migrationNames, migrationsFolder } from '../../src/db/migrations.ts'
import { untilMigrated } from '../../src/queue/migrated.ts'
import { runFormat } from '../../src/runs/format.ts'
import { startStack } from '../api/stack.ts'
import { emptyDatabase, freshDatabase } from '../support/database.ts'
import { atEnd, example, freshFolder, installation, named, rows, run, sql, until } from '../support/kit.ts'

/** Neighbouring versions side by side, as in a rolling upgrade. */

/** What a worker of version 0.1.0 writes when it takes a job. */
const oldBeat = sql`INSERT INTO queue_heartbeats (queue, consumed_at) VALUES ('apply', now())
  ON CONFLICT (queue) DO UPDATE SET consumed_at = excluded.consumed_at`

/** Whether the API is ready, and what is said of the workers. */
async function readiness(stack: Awaited<ReturnType<typeof startStack>>) {
  const [{ status }, { json }] = [await stack.get('/-/health/ready/'), await stack.get('/-/health/applies/')]
  const { checks } = json as { checks: { worker: { detail: string } } }
  return { status, worker: checks.worker.detail }
}

test('a worker of version 0.1.0 is noticed, alone and beside a new one', async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  await rows(db, oldBeat)
  const replaceWorkers = expect.stringMatching(/format 1, this API records format \d+\): replace the workers first/)
  expect(await readiness(stack)).toEqual({ status: 503, worker: replaceWorkers })
  const refused = await stack.put(await example('radius'))
  expect(refused).toMatchObject({ status: 503, json: { code: 'cancelled' } })
  expect(refused.text).toContain('only workers take jobs that are of an older version')
  expect(refused.ms).toBeLessThan(1_000)
  expect(await db.run.count()).toBe(0)

  const worker = await stack.startWorker()
  await until('both workers to be noticed', async () => /^Beside/.test((await readiness(stack)).worker))
  expect(await readiness(stack)).toEqual({ status: 503, worker: replaceWorkers })
  // It has stopped: the workers of this version go on.
  await rows(db, sql`UPDATE worker_formats SET consumed_at = consumed_at - interval '11 seconds' WHERE format = 1`)
  await until('readiness', async () => (await readiness(stack)).status === 200)
  expect(await readiness(stack)).toEqual({ status: 200, worker: 'A worker takes jobs.' })
  expect((await stack.put(await example('radius'))).status).toBe(200)
  await worker.stop()
})

test('a run of a newer version is left to its worker, and no attempt is counted', async () => {
  const there = await installation({ applyWaitMs: 50_000 })
  const { db, admin } = there
  const release = there.hold()
  const answer = admin.put('/api/v3/core/transactional/applications/', await named('radius', 'newer'))
  await there.queued(1)
  expect(await db.run.findFirstOrThrow()).toMatchObject({ format: runFormat })
  await db.run.updateMany({ data: { format: runFormat + 1 } })
  release()
  const left = () => there.log.map((line) => JSON.parse(line)).filter(({ msg }) => /newer version/.test(msg))
  // The reconciler would count an attempt for each time that the job comes back.
  await until('the worker to leave it four times', () => left().length >= 4, { withinMs: 30_000 })
  expect(await db.run.findFirstOrThrow()).toMatchObject({ state: 'queued', attempts: 1, applied: null })
  expect(left()[0]).toMatchObject({ level: 40, msg: expect.stringMatching(/of format \d+, and this worker knows \d+/) })
  expect(await db.application.count()).toBe(0)
  // A worker that knows the format.
  await db.run.updateMany({ data: { format: runFormat } })
  expect((await answer).status).toBe(200)
})

test('a run without a format, as version 0.1.0 records it, is applied', async () => {
  const there = await installation()
  const release = there.hold()
  const answer = there.admin.put('/api/v3/core/transactional/applications/', await named('radius', 'older'))
  await there.queued(1)
  await rows(
    there.db,
    sql`WITH old AS (DELETE FROM runs RETURNING *)
      INSERT INTO runs (id, title, submitter_pk, request_id, blueprint, options)
      SELECT id, title, submitter_pk, request_id, blueprint, options - 'owner' - 'allow' FROM old`,
  )
  release()
  expect((await answer).status).toBe(200)
  expect(await there.db.run.findFirstOrThrow()).toMatchObject({ format: 1, applied: true })
})

/** A database as an API of an earlier version has left it. */
async function migratedBefore(isKept: (name: string) => boolean): Promise<string> {
  const url = await emptyDatabase()
  const folder = freshFolder()
  for (const name of (await migrationNames()).filter(isKept))
    cpSync(fileURLToPath(new URL(name, migrationsFolder)), join(folder, name), { recursive: true })
  await migrate(url, pathToFileURL(`${folder}/`))
  return url
}

test('a worker that is started before its API waits for the migrations', async () => {
  const url = await migratedBefore((name) => name <= '20261129100000_kinds_of_deployers')
  const env = { DATABASE_URL: url, SECRET_KEY: 'a secret key for tests, 32 or more' }
  const worker = run('workers/blueprint.ts', { env })
  await worker.line(/waiting for the migrations of this version/, { withinMs: 20_000 })
  await migrate(url)
  await worker.line(/worker ready/, { withinMs: 20_000 })
  expect(await worker.stop()).toEqual({ code: 0, signal: null })
})

test('it ends with one sentence when nothing migrates, and an older API reports it', async () => {
  const { url, db: whole } = await freshDatabase()
  await rows(whole, sql`DELETE FROM _prisma_migrations WHERE migration_name LIKE '%_first'`)
  const { db } = connect(url, { applicationName: 'gatewright-test', max: 1 })
  atEnd(() => db.$disconnect())
  const waiting = untilMigrated(db, pino({ level: 'silent' }), 0)
  await expect(waiting).rejects.toThrow(/^The database lacks migrations of this version: start an API of this version/)
  const late = untilMigrated(db, pino({ level: 'silent' }), 500)
  await expect(late).rejects.toMatchObject({ name: 'StartError' })
  expect(await whole.workerFormat.findMany()).toEqual([
    { format: runFormat, consumedAt: null, waitingAt: expect.any(Date) },
  ])
})
