import { beforeAll, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { actorByToken } from '../../src/models/actor.ts'
import { type Seeded, seed } from '../../src/seed/seed.ts'
import { seededSecrets } from '../../src/seed/token.ts'
import { applyPath } from '../support/asker.ts'
import { counts, versions } from '../support/contents.ts'
import { secretKey } from '../support/engine.ts'
import { type Body, example, type Installation, installation, kinds } from '../support/installation.ts'

const size = { users: 500, groups: 80, applications: 20 }
const silent = { begin: () => {}, progress: () => {}, end: () => {} }

let house: Installation
let written: Seeded

beforeAll(async () => {
  house = await installation()
  written = await seed({ seed: 1, size, url: house.url, secretKey }, silent)
})

const again = (number: number) => seed({ seed: number, size, url: house.url, secretKey }, silent)

test('what it says that it wrote is there, and the lists know it', async () => {
  expect(Object.fromEntries(written ?? [])).toMatchObject({ users: 500, groups: 80, applications: 20 })
  const there = await counts(house.db)
  // Beside a user and two groups that every installation starts with.
  expect(there).toMatchObject({
    users: 501,
    groups: 82,
    applications: 20,
    memberships: (written?.get('memberships') ?? 0) + 1,
  })
  const known = await house.db.query<{ name: string; rows: number }>(sql`
    SELECT table_name AS name, sum(rows) AS rows FROM row_counts GROUP BY 1`)
  expect(known.length).toBeGreaterThan(0)
  for (const { name, rows } of known) expect([name, rows]).toEqual([name, there[name]])
})

test('the planner knows the new rows at once', async () => {
  const [users] = await house.db.query<{ rows: number }>(sql`
    SELECT reltuples::integer AS rows FROM pg_class WHERE oid = 'users'::regclass`)
  expect(users?.rows).toBe(501)
})

test('a group stands below 49 others', async () => {
  const [deepest] = await house.db.query<{ above: number }>(sql`
    SELECT max(above) AS above FROM (SELECT count(*) AS above FROM group_ancestors GROUP BY group_pk) each`)
  expect(deepest?.above).toBe(50)
})

test('the API takes a seeded token, whose secret follows from its identifier and SECRET_KEY', async () => {
  const secretOf = seededSecrets(house.engine.keyring)
  const path = '/api/v3/blueprints/runs/00000000-0000-4000-8000-000000000000/'
  expect((await house.as(secretOf('s1-reader')).get(path)).status).toBe(404)
  expect((await house.as(secretOf('s1-nobody')).get(path)).status).toBe(401)
  const reader = await actorByToken(house.db, secretOf('s1-reader'))
  expect(reader).toMatchObject({ username: 's1-reader', isSuperuser: false })
  expect([...(reader?.permissions ?? [])]).toEqual(
    expect.arrayContaining(['view_user', 'view_group', 'view_userconsent']),
  )
  // From the top of the chain and from further down.
  const member = await actorByToken(house.db, secretOf('s1-member'))
  expect([...(member?.permissions ?? [])]).toEqual(
    expect.arrayContaining(['view_userconsent', 'change_user', 'add_group']),
  )
})

test('no token opens the door to a superuser', async () => {
  const [found] = await house.db.query<{ superusers: number; tokens: number }>(sql`
    SELECT count(DISTINCT m.user_pk) AS superusers, count(t.pk) AS tokens
    FROM groups g JOIN group_ancestors a ON a.ancestor_pk = g.pk JOIN memberships m ON m.group_pk = a.group_pk
      LEFT JOIN tokens t ON t.user_pk = m.user_pk
    WHERE g.is_superuser AND starts_with(g.name, 's1 ')`)
  expect(found).toEqual({ superusers: 8, tokens: 0 })
})

test.each(kinds)(
  'to the engine a seeded application with its %s provider is as if it had been applied',
  async (kind) => {
    const [row] = await house.db.query<{ slug: string; name: string; provider: string; client_id: string | null }>(sql`
    SELECT a.slug, a.name, p.name AS provider, p.oauth2_client_id AS client_id
    FROM applications a JOIN providers p ON p.pk = a.provider_pk WHERE p.kind = ${kind} ORDER BY a.slug LIMIT 1`)
    const { provider_model, app, provider }: Body = await example(kind)
    // Values that the service makes up are the seed's own.
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
  },
)

test('the same seed again changes nothing', async () => {
  const before = [await versions(house.db), await counts(house.db)]
  expect(await again(1)).toBeNull()
  expect([await versions(house.db), await counts(house.db)]).toEqual(before)
})

test('a seed that meets a taken name leaves nothing behind', async () => {
  await house.db.query(sql`INSERT INTO groups (pk, name) VALUES (gen_random_uuid(), 's3 VPN')`)
  const before = [await versions(house.db), await counts(house.db)]
  await expect(again(3)).rejects.toThrow(/Something of this seed is there already.*groups_name_key/)
  expect([await versions(house.db), await counts(house.db)]).toEqual(before)
})

test('another seed adds, and is audited', async () => {
  await again(2)
  expect(await counts(house.db)).toMatchObject({ users: 1_001, applications: 40 })
  const rows = await house.db.prisma.auditRow.findMany({ where: { action: 'seed' } })
  expect(rows).toHaveLength(2)
  expect(rows[1]).toMatchObject({ actorName: 'gatewright', actorPk: null })
})

test('two that seed the same at once make it once', async () => {
  const outcomes = await Promise.all([again(4), again(4)])
  expect(outcomes.filter((outcome) => outcome === null)).toHaveLength(1)
  expect(await house.db.prisma.user.count({ where: { username: { startsWith: 's4-' } } })).toBe(500)
})
