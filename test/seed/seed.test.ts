import { expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { reader } from '../../src/db/engine-tx.ts'
import { locks } from '../../src/db/locks.ts'
import { actorOfToken } from '../../src/rights/actor.ts'
import { seed } from '../../tools/seed/seed.ts'
import { seededSecrets } from '../../tools/seed/token.ts'
import { counts, versions } from '../support/contents.ts'
import {
  applyPath,
  type Body,
  example,
  execute,
  installation,
  kinds,
  rows,
  secretKey,
  sql,
  until,
} from '../support/kit.ts'

const size = { users: 500, groups: 80, applications: 20 }
const silent = { begin: () => {}, progress: () => {}, end: () => {}, note: () => {} }

const house = await installation()
const written = await seed({ seed: 1, size, url: house.url, secretKey }, silent)

const again = (number: number) => seed({ seed: number, size, url: house.url, secretKey }, silent)

test('the rows that it reports are there, and the lists count them', async () => {
  expect(Object.fromEntries(written ?? [])).toMatchObject({ users: 500, groups: 80, applications: 20 })
  const there = await counts(house.db)
  // Every installation starts with a user and two groups.
  expect(there).toMatchObject({
    users: 501,
    groups: 82,
    applications: 20,
    memberships: (written?.get('memberships') ?? 0) + 1,
  })
  const known = await rows<{ name: string; rows: number }>(
    house.db,
    sql`
    SELECT table_name AS name, sum(rows) AS rows FROM row_counts GROUP BY 1`,
  )
  expect(known.length).toBeGreaterThan(0)
  for (const { name, rows } of known) expect([name, rows]).toEqual([name, there[name]])
})

test('the planner knows the new rows at once', async () => {
  const [users] = await rows<{ rows: number }>(
    house.db,
    sql`
    SELECT reltuples::integer AS rows FROM pg_class WHERE oid = 'users'::regclass`,
  )
  expect(users?.rows).toBe(501)
})

test('the deepest group has 49 groups above it', async () => {
  const [deepest] = await rows<{ above: number }>(
    house.db,
    sql`
    SELECT max(above) AS above FROM (SELECT count(*) AS above FROM group_ancestors GROUP BY group_pk) each`,
  )
  expect(deepest?.above).toBe(50)
})

test('the API accepts a seeded token, whose secret follows from its identifier and SECRET_KEY', async () => {
  const secretOf = seededSecrets(house.engine.keyring)
  const path = '/api/v3/blueprints/runs/00000000-0000-4000-8000-000000000000/'
  expect((await house.as(secretOf('s1-reader')).get(path)).status).toBe(404)
  expect((await house.as(secretOf('s1-nobody')).get(path)).status).toBe(401)
  const seeded = (await actorOfToken(reader(house.db), { secret: secretOf('s1-reader') }))?.actor
  expect(seeded).toMatchObject({ username: 's1-reader', isSuperuser: false })
  expect([...(seeded?.permissions ?? [])]).toEqual(
    expect.arrayContaining(['view_user', 'view_group', 'view_userconsent']),
  )
  // These are from roles of several groups of the chain.
  const member = (await actorOfToken(reader(house.db), { secret: secretOf('s1-member') }))?.actor
  expect([...(member?.permissions ?? [])]).toEqual(
    expect.arrayContaining(['view_userconsent', 'change_user', 'add_group']),
  )
})

test('no superuser has a token', async () => {
  const [found] = await rows<{ superusers: number; tokens: number }>(
    house.db,
    sql`
    SELECT count(DISTINCT m.user_pk) AS superusers, count(t.pk) AS tokens
    FROM groups g JOIN group_ancestors a ON a.ancestor_pk = g.pk JOIN memberships m ON m.group_pk = a.group_pk
      LEFT JOIN tokens t ON t.user_pk = m.user_pk
    WHERE g.is_superuser AND starts_with(g.name, 's1 ')`,
  )
  expect(found).toEqual({ superusers: 8, tokens: 0 })
})

test.each(kinds)('the engine finds nothing to change in a seeded application with its %s provider', async (kind) => {
  const [row] = await rows<{ slug: string; name: string; provider: string; client_id: string | null }>(
    house.db,
    sql`
    SELECT a.slug, a.name, p.name AS provider, p.oauth2_client_id AS client_id
    FROM applications a JOIN providers p ON p.pk = a.provider_pk WHERE p.kind = ${kind} ORDER BY a.slug LIMIT 1`,
  )
  const { provider_model, app, provider }: Body = await example(kind)
  // The seed generates its own values for these fields.
  const { client_id, client_secret, shared_secret, ...sent } = provider
  const own = kind === 'oauth2' || kind === 'radius' ? sent : provider
  const answer = await house.admin.put(applyPath, {
    app: { ...app, slug: row?.slug, name: row?.name },
    provider_model,
    provider: { ...own, name: row?.provider },
  })
  expect(answer.json).toEqual({
    applied: true,
    logs: [`provider ${kind} "${row?.provider}" unchanged`, `application "${row?.slug}" unchanged`],
  })
})

test('the same seed again changes nothing', async () => {
  const before = [await versions(house.db), await counts(house.db)]
  expect(await again(1)).toBeNull()
  expect([await versions(house.db), await counts(house.db)]).toEqual(before)
})

test('a seed whose name is taken writes nothing', async () => {
  await rows(house.db, sql`INSERT INTO groups (pk, name) VALUES (gen_random_uuid(), 's3 VPN')`)
  const before = [await versions(house.db), await counts(house.db)]
  await expect(again(3)).rejects.toThrow(/Something of this seed is there already.*groups_name_key/)
  expect([await versions(house.db), await counts(house.db)]).toEqual(before)
})

test('another seed adds, and is audited', async () => {
  await again(2)
  expect(await counts(house.db)).toMatchObject({ users: 1_001, applications: 40 })
  const rows = await house.db.auditRow.findMany({ where: { action: 'seed' } })
  expect(rows).toHaveLength(2)
  expect(rows[1]).toMatchObject({ actorName: 'gatewright', actorPk: null })
})

test('two seeds with the same number at once write it once', async () => {
  const outcomes = await Promise.all([again(4), again(4)])
  expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(1)
  expect(await house.db.user.count({ where: { username: { startsWith: 's4-' } } })).toBe(500)
})

test('one seed is written at a time', async () => {
  const waiting = sql`SELECT pid FROM pg_stat_activity
    WHERE application_name = 'gatewright-seed' AND wait_event = 'advisory' AND datname = current_database()`
  const seeding = await transaction(house.db, async (tx) => {
    await execute(tx, sql`SELECT pg_advisory_xact_lock(${locks.seed})`)
    const promise = again(8)
    await until('the seed to wait', async () => (await rows(house.db, waiting)).length === 1)
    return { promise }
  })
  expect((await seeding.promise)?.get('users')).toBe(500)
})
