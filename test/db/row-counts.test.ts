import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { type Db, type Tx, transaction } from '../../src/db/client.ts'
import { rowCountsLock } from '../../src/db/locks.ts'
import { addUp } from '../../src/db/row-counts.ts'
import { startReconciler } from '../../src/runs/reconcile.ts'
import { execute, freshDatabase, raw, rows, sql, until } from '../support/kit.ts'
import { uncounted } from '../support/uncounted.ts'

const { db } = await freshDatabase({ max: 8 })

const tables = ['users', 'groups', 'totp_devices', 'user_consents'] as const

/** The stored and the counted size of each listed table, in one snapshot. */
async function sizes(): Promise<{ kept: unknown; counted: unknown }> {
  const counted = tables.map((table) => `'${table}', (SELECT count(*) FROM ${table})`).join(', ')
  const kept = tables
    .map((table) => `'${table}', coalesce((SELECT sum(rows) FROM row_counts WHERE table_name = '${table}'), 0)`)
    .join(', ')
  const text = `SELECT jsonb_build_object(${kept}) AS kept, jsonb_build_object(${counted}) AS counted`
  const [row] = await rows<{ kept: unknown; counted: unknown }>(db, sql`${raw(text)}`)
  return row ?? { kept: null, counted: undefined }
}

async function expectExact(): Promise<void> {
  const { kept, counted } = await sizes()
  expect(kept).toEqual(counted)
}

const rowsKept = async () => (await rows(db, sql`SELECT rows FROM row_counts`)).length

/** Changes of a listed table: many rows or none at once, deletion of their owners, TRUNCATE, a rollback. */
const changes: Record<string, (tx: Db | Tx, count: number) => Promise<unknown>> = {
  users: (tx, count) =>
    rows(
      tx,
      sql`INSERT INTO users (uuid, username) SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, ${count}::integer)`,
    ),
  'users that are there already': (tx, count) =>
    rows(
      tx,
      sql`
      INSERT INTO users (uuid, username) SELECT gen_random_uuid(), 'the same ' || i FROM generate_series(1, ${count}::integer) i
      ON CONFLICT (username) DO UPDATE SET name = 'again'`,
    ),
  groups: (tx, count) =>
    rows(
      tx,
      sql`INSERT INTO groups (pk, name) SELECT gen_random_uuid(), gen_random_uuid() FROM generate_series(1, ${count}::integer)`,
    ),
  devices: (tx, count) =>
    rows(
      tx,
      sql`
      INSERT INTO totp_devices (uuid, user_pk, name, sealed_key)
      SELECT gen_random_uuid(), pk, 'phone', 'x' FROM users ORDER BY pk LIMIT ${count}::integer`,
    ),
  consents: (tx, count) =>
    rows(
      tx,
      sql`
      INSERT INTO user_consents (user_pk, application_pk, permissions)
      SELECT u.pk, a.pk, gen_random_uuid() FROM users u, applications a ORDER BY u.pk LIMIT ${count}::integer`,
    ),
  'deleted users, with what is theirs': (tx, count) =>
    rows(tx, sql`DELETE FROM users WHERE pk IN (SELECT pk FROM users ORDER BY random() LIMIT ${count}::integer)`),
  'deleted devices': (tx, count) =>
    rows(tx, sql`DELETE FROM totp_devices WHERE pk IN (SELECT pk FROM totp_devices LIMIT ${count}::integer)`),
  'emptied tables': (tx) => rows(tx, sql`TRUNCATE totp_devices, user_consents`),
  'emptied users': (tx) => rows(tx, sql`TRUNCATE users CASCADE`),
  'nothing new': (tx) => rows(tx, sql`UPDATE users SET name = 'x'`),
}

test('sizes are exact after any changes, and any number of additions', async () => {
  await rows(db, sql`INSERT INTO applications (pk, name, slug) VALUES (${randomUUID()}, 'wiki', 'wiki')`)
  const step = fc.record({
    change: fc.constantFrom(...Object.keys(changes)),
    count: fc.integer({ min: 0, max: 20 }),
    isRolledBack: fc.boolean(),
    isAddedUp: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      for (const { change, count, isRolledBack, isAddedUp } of steps) {
        await transaction(db, async (tx) => {
          await changes[change]?.(tx, count)
          if (isRolledBack) throw new Error('not after all')
        }).catch((error: Error) => expect(error.message).toBe('not after all'))
        if (isAddedUp) await Promise.all([addUp(db, 3), addUp(db, 3)])
        await expectExact()
      }
    }),
    { numRuns: 40 },
  )
})

test('a size is exact at each moment while many write and several add up', async () => {
  let writing = true
  const write = async () => {
    for (let round = 0; round < 60; round += 1)
      await transaction(db, async (tx) => {
        await changes.users?.(tx, 1 + (round % 3))
        await changes['deleted users, with what is theirs']?.(tx, round % 2)
      }).catch((error: unknown) => {
        // Two transactions that delete the same users: one of them was rolled back.
        expect(error).toMatchObject({ code: '40P01' })
      })
  }
  const add = async () => {
    while (writing) {
      await addUp(db, 2)
      await expectExact()
    }
  }
  const adders = Promise.all([add(), add()])
  await Promise.all([write(), write(), write()])
  writing = false
  await adders
  await expectExact()
  await addUp(db, 0)
  expect(await rowsKept()).toBeLessThanOrEqual(tables.length)
})

test('TRUNCATE waits for an addition, and removes the sum too', async () => {
  await transaction(db, (tx) => changes.users?.(tx, 5) ?? Promise.resolve())
  const emptied = await transaction(db, async (adder) => {
    await execute(adder, sql`SELECT pg_advisory_xact_lock(${raw(rowCountsLock)})`)
    await rows(
      adder,
      sql`
      WITH gone AS (DELETE FROM row_counts WHERE table_name = 'users' RETURNING rows)
      INSERT INTO row_counts (table_name, rows) SELECT 'users', sum(rows) FROM gone`,
    )
    const emptying = transaction(db, (tx) => rows(tx, sql`TRUNCATE users CASCADE`))
    const waits = sql`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'TRUNCATE%'`
    await until('TRUNCATE to wait', async () => (await rows(db, waits)).length === 1)
    return { emptying }
  })
  await emptied.emptying
  await expectExact()
})

test('few rows are left as they are', async () => {
  await transaction(db, (tx) => rows(tx, sql`TRUNCATE users CASCADE`))
  await addUp(db, 0)
  const before = await rowsKept()
  for (let count = 0; count < 3; count += 1) await transaction(db, (tx) => changes.users?.(tx, 1) ?? Promise.resolve())
  await addUp(db, 3)
  expect(await rowsKept()).toBe(before + 3)
  await addUp(db, 2)
  expect(await rowsKept()).toBe(before + 1)
})

test("a worker's reconciler adds them up", async () => {
  const { db } = await freshDatabase()
  const kept = () => rows(db, sql`SELECT rows FROM row_counts WHERE table_name = 'groups'`)
  for (let count = 0; count <= 200; count += 1) await changes.groups?.(db, 1)
  const queue = { wake: async () => {}, enqueue: async () => {}, isQueued: async () => true }
  const reconciler = startReconciler(db, queue, { log: pino({ level: 'silent' }), tally: uncounted })
  await until('the rows to be added up', async () => (await kept()).length === 1)
  await reconciler.stop()
  const [size] = await rows<{ size: number }>(
    db,
    sql`SELECT sum(rows)::integer AS size FROM row_counts WHERE table_name = 'groups'`,
  )
  expect(size?.size).toBe(await db.group.count())
})
