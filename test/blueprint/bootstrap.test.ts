import { expect, test } from 'vitest'
import { bootstrap } from '../../src/bootstrap.ts'
import { type Db, transaction } from '../../src/db/client.ts'
import { sql } from '../../src/db/sql.ts'
import { actorByToken } from '../../src/models/actor.ts'
import { counts, versions } from '../support/contents.ts'
import { freshDatabase } from '../support/database.ts'
import { loadEngine } from '../support/engine.ts'

const engine = await loadEngine()
const start = (db: Db, token: string | null = null) => bootstrap(db, engine, token)

test('the first start brings what the product ships, an admin and his token', async () => {
  const { db } = await freshDatabase()
  const token = await start(db)
  expect(token).toMatch(/^gw_a_\w{36}$/)
  expect(await actorByToken(db, token ?? '')).toMatchObject({ username: 'admin', isSuperuser: true })
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
  expect(await db.prisma.auditRow.findFirst()).toMatchObject({
    action: 'bootstrap',
    actorName: 'gatewright',
    actorPk: null,
  })
})

test('a token that the operator chose is the token, and is not told', async () => {
  const { db } = await freshDatabase()
  expect(await start(db, 'chosen')).toBeNull()
  expect(await actorByToken(db, 'chosen')).toMatchObject({ username: 'admin' })
})

test('a later start changes nothing, and makes no token', async () => {
  const { db } = await freshDatabase()
  await start(db)
  const before = [await versions(db), await counts(db)]
  expect(await start(db, 'another')).toBeNull()
  expect([await versions(db), await counts(db)]).toEqual(before)
  expect(await actorByToken(db, 'another')).toBeNull()
})

// GHSA-rjvp-29xq-f62w: a blueprint that re-created the admin.
test('what was deleted stays deleted, the admin above all', async () => {
  const { db } = await freshDatabase()
  await start(db)
  await db.prisma.user.deleteMany()
  await db.prisma.flow.deleteMany()
  expect(await start(db, 'chosen')).toBeNull()
  expect(await counts(db)).toMatchObject({ users: 0, flows: 0, tokens: 0 })
})

test('of five processes that start at once, one bootstraps', async () => {
  const { db } = await freshDatabase()
  const tokens = await Promise.all(Array.from({ length: 5 }, () => start(db)))
  expect(tokens.filter((token) => token !== null)).toHaveLength(1)
  expect(await counts(db)).toMatchObject({ users: 1, tokens: 1, installation: 1, audit_rows: 1 })
})

test('one that fails leaves nothing behind, and the next start does it', async () => {
  const { db } = await freshDatabase()
  await transaction(db, (tx) => tx.query(sql`ALTER TABLE tokens ADD CONSTRAINT no_tokens CHECK (false)`))
  await expect(start(db)).rejects.toThrow()
  expect(Object.values(await counts(db)).every((count) => count === 0)).toBe(true)
  await transaction(db, (tx) => tx.query(sql`ALTER TABLE tokens DROP CONSTRAINT no_tokens`))
  expect(await start(db)).not.toBeNull()
})
