import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { bootstrap } from '../../src/apply/bootstrap.ts'
import { type Db, patient, transaction } from '../../src/db/client.ts'
import { reader } from '../../src/db/engine-tx.ts'
import { locks } from '../../src/db/locks.ts'
import { keyring } from '../../src/db/seal.ts'
import { actorOfToken } from '../../src/rights/actor.ts'
import { StartError } from '../../src/start-error.ts'
import { counts, freshDatabase, loadEngine, rows, sql, versions, within } from '../support/kit.ts'

const engine = await loadEngine()
const start = (db: Db, token = 'the first token') => bootstrap(db, engine, () => token)

test('the first start creates the shipped rows, an admin and a token', async () => {
  const { db } = await freshDatabase()
  expect(await start(db)).toBe(true)
  expect((await actorOfToken(reader(db), { secret: 'the first token' }))?.actor).toMatchObject({
    username: 'admin',
    isSuperuser: true,
  })
  expect(await counts(db)).toMatchObject({
    flows: 9,
    users: 1,
    roles: 1,
    groups: 2,
    tokens: 1,
    certificate_key_pairs: 1,
    audit_rows: 1,
    runs: 0,
  })
  expect(await db.auditRow.findFirst()).toMatchObject({
    action: 'bootstrap',
    actorName: 'gatewright',
    actorPk: null,
  })
})

test('a later start changes nothing, and creates no token', async () => {
  const { db } = await freshDatabase()
  await start(db)
  const before = [await versions(db), await counts(db)]
  expect(await start(db, 'another')).toBe(false)
  expect([await versions(db), await counts(db)]).toEqual(before)
  expect(await actorOfToken(reader(db), { secret: 'another' })).toBeNull()
})

// GHSA-rjvp-29xq-f62w: a blueprint that re-created the admin.
test('rows that were deleted are not created again, the admin included', async () => {
  const { db } = await freshDatabase()
  await start(db)
  await db.user.deleteMany()
  await db.flow.deleteMany()
  expect(await start(db, 'chosen')).toBe(false)
  expect(await counts(db)).toMatchObject({ users: 0, flows: 0, tokens: 0 })
})

test('of five processes that start at the same time, one bootstraps', async () => {
  const { db } = await freshDatabase()
  const first = await Promise.all(Array.from({ length: 5 }, () => start(db)))
  expect(first.filter((isFirst) => isFirst)).toHaveLength(1)
  expect(await counts(db)).toMatchObject({ users: 1, tokens: 1, installation: 1, audit_rows: 1 })
})

test('a start waits for another that takes longer than a statement may wait for a lock', async () => {
  const { db, url } = await freshDatabase()
  const starts = await within(url, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [locks.bootstrap])
    const both = [start(db), start(db)]
    // No start may end before the lock is free.
    expect(await Promise.race([delay(patient.timeouts.lockMs + 700, 'waiting'), ...both])).toBe('waiting')
    return both
  })
  expect((await Promise.all(starts)).sort()).toEqual([false, true])
  expect(await counts(db)).toMatchObject({ users: 1, tokens: 1, installation: 1, audit_rows: 1 })
})

test('of two starts at the same time under different keys, one is refused', async () => {
  const { db } = await freshDatabase()
  const other = { ...engine, keyring: keyring('another secret key for tests, 32 or more', null) }
  const ended = await Promise.allSettled([start(db), bootstrap(db, other, () => 'another token')])
  const refused = ended.filter((each) => each.status === 'rejected')
  expect(refused).toHaveLength(1)
  expect(refused[0]?.reason).toBeInstanceOf(StartError)
  expect(await counts(db)).toMatchObject({ users: 1, tokens: 1, installation: 1, audit_rows: 1 })
})

test('a failed bootstrap is rolled back, and the next start repeats it', async () => {
  const { db } = await freshDatabase()
  await transaction(db, (tx) => rows(tx, sql`ALTER TABLE tokens ADD CONSTRAINT no_tokens CHECK (false)`))
  await expect(start(db)).rejects.toThrow()
  expect(Object.values(await counts(db)).every((count) => count === 0)).toBe(true)
  await transaction(db, (tx) => rows(tx, sql`ALTER TABLE tokens DROP CONSTRAINT no_tokens`))
  expect(await start(db)).toBe(true)
})
