import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Prisma } from '../../../src/db/generated/client.ts'
import { groupView } from '../../../src/views/group.ts'
import { userView } from '../../../src/views/user.ts'
import { userConsent } from '../../../src/views/user-consent.ts'
import { answered, installation, longestTurnCost, raw, rows, sql, within } from '../../support/kit.ts'
import { column, type Listed, type Parameters, read } from './listing.ts'

/** Lists of very many rows. */

const users: Listed = { path: '/api/v3/core/users/', by: () => on.admin, view: userView.schema }
const groups: Listed = { path: '/api/v3/core/groups/', by: () => on.admin, view: groupView.schema }

/** More rows than the list sorts by itself. */
const many = 26_000
/** They have the first names of all: at the other end of an order there is none of them. */
const early = 12_000
const everybody = '6f7e0000-0000-4000-8000-000000009001'

/** More rows than one request on a shared connection may read. */

/** Works without the time limits of the product. */
const load = (statement: Prisma.Sql) => within(on.url, (client) => client.query(statement))

const on = await installation({ workers: 'none' })
await load(sql`
    INSERT INTO users (uuid, username, name, is_active, last_login, path)
    SELECT gen_random_uuid(), 'user' || lpad(i::text, 5, '0'), 'name ' || i % 7, i % 10 <> 0, now() - make_interval(mins => i / 100),
      CASE WHEN i <= ${early} THEN 'early' ELSE 'users' END
    FROM generate_series(1, ${many}::integer) i`)
await load(sql`INSERT INTO groups (pk, name) VALUES (${everybody}, 'everybody')`)
await rows(
  on.db,
  sql`INSERT INTO memberships SELECT ${everybody}, pk FROM users WHERE username LIKE 'user%' LIMIT 20000`,
)

describe('a search that matches very many', () => {
  const orders = ['username', '-username', 'name,-username', '-last_login', 'is_active,-last_login']
  const expected = async (condition: string, ordering: string) => {
    const order = { username: 'username', '-username': 'username DESC', 'name,-username': 'name, username DESC' }[
      ordering
    ]
    const sorted =
      order ?? { '-last_login': 'last_login DESC, pk DESC' }[ordering] ?? 'is_active, last_login DESC, pk DESC'
    const found = await rows<{ pk: number }>(on.db, raw(`SELECT pk FROM users WHERE ${condition} ORDER BY ${sorted}`))
    return found.map(({ pk }) => pk)
  }

  test.each(orders)('has the same pages, ordered by %s', async (ordering) => {
    for (const [narrowing, condition] of [
      [{ search: 'user' }, "username LIKE 'user%'"],
      [{ is_active: true }, 'is_active'],
      [{ path: 'early' }, "path = 'early'"],
      [{ search: 'USER', is_active: true }, "username LIKE 'user%' AND is_active"],
      // The uuid of each has it.
      [{ search: '-' }, 'true'],
      [{}, 'true'],
    ] as const) {
      const whole = await expected(condition, ordering)
      const pages = Math.ceil(whole.length / 100)
      for (const page of [1, 2, Math.floor(pages / 2), Math.floor(pages / 2) + 1, pages - 1, pages]) {
        const asked = { ...narrowing, ordering, page, page_size: 100 }
        const { pagination, results } = await read(users, asked)
        expect(pagination).toMatchObject({ count: whole.length, total_pages: pages })
        expect(results.map(({ pk }) => pk)).toEqual(whole.slice((page - 1) * 100, page * 100))
      }
    }
  })
})

describe('the users of a group of very many', () => {
  const [large, other] = ['6f7e0000-0000-4000-8000-000000009005', '6f7e0000-0000-4000-8000-000000009006']
  beforeAll(async () => {
    await load(sql`INSERT INTO groups (pk, name) VALUES (${large}, 'large'), (${other}, 'other')`)
    await load(
      sql`INSERT INTO memberships SELECT ${large}, pk FROM users WHERE username BETWEEN 'user00100' AND 'user25999'`,
    )
    await load(
      sql`INSERT INTO memberships SELECT ${other}, pk FROM users WHERE username BETWEEN 'user25900' AND 'user26000'`,
    )
  })
  const isLarge = "username BETWEEN 'user00100' AND 'user25999'"

  test.each<[string, Parameters, string]>([
    ['by name', { groups_by_name: 'large' }, isLarge],
    ['by key', { groups_by_pk: large }, isLarge],
    [
      'of two groups, each once',
      { groups_by_name: ['large', 'other'] },
      "username BETWEEN 'user00100' AND 'user26000'",
    ],
    ['with another filter', { groups_by_name: 'large', type: 'internal' }, isLarge],
  ])('are the same pages, %s', async (_, narrowing, condition) => {
    for (const ordering of ['username', '-last_login']) {
      const order = ordering === 'username' ? 'username' : 'last_login DESC, pk DESC'
      const found = await rows<{ pk: number }>(on.db, raw(`SELECT pk FROM users WHERE ${condition} ORDER BY ${order}`))
      const pages = Math.ceil(found.length / 100)
      for (const page of [1, 20, Math.floor(pages / 2), Math.floor(pages / 2) + 1, pages - 1, pages]) {
        const { pagination, results } = await read(users, { ...narrowing, ordering, page, include_groups: false })
        expect(pagination).toMatchObject({ count: found.length, total_pages: pages })
        expect(results.map(({ pk }) => pk)).toEqual(found.slice((page - 1) * 100, page * 100).map(({ pk }) => pk))
      }
    }
  })

  test('are counted beside what the other filters and rights let through', async () => {
    const countOf = async (narrowing: Parameters) => (await read(users, narrowing)).pagination.count
    expect(await countOf({ groups_by_name: 'large', search: 'user001' })).toBe(100)
    expect(await countOf({ groups_by_name: 'large', groups_by_pk: other })).toBe(100)
    expect(await countOf({ groups_by_name: 'other' })).toBe(101)
    expect(await countOf({ groups_by_name: 'other', is_active: true })).toBe(90)
  })
})

test('consents of very many users: the same pages, of a search that most match, some, and few', async () => {
  const consents: Listed = { path: '/api/v3/core/user_consent/', by: () => on.admin, view: userConsent }
  await load(sql`INSERT INTO applications (pk, slug, name) VALUES (${everybody}, 'agreed', 'Agreed')`)
  await load(
    sql`INSERT INTO user_consents (user_pk, application_pk, expiring) SELECT pk, ${everybody}, false FROM users`,
  )
  const orders = { user: 'c.user_pk', '-user': 'c.user_pk DESC', application: 'c.pk' }
  for (const [search, condition] of [
    ['USER', "LIKE 'user%'"],
    ['r1', "LIKE '%r1%'"],
    ['user0000', "LIKE 'user0000%'"],
  ] as const)
    for (const [ordering, sorted] of Object.entries(orders)) {
      const found = await rows<{ pk: number }>(
        on.db,
        raw(
          `SELECT c.pk FROM user_consents c JOIN users u ON u.pk = c.user_pk WHERE u.username ${condition} ORDER BY ${sorted}`,
        ),
      )
      const pages = Math.ceil(found.length / 100)
      for (const page of new Set([1, Math.ceil(pages / 3), pages])) {
        const { pagination, results } = await read(consents, { search, ordering, page })
        expect(pagination).toMatchObject({ count: found.length, total_pages: pages })
        expect(results.map(({ pk }) => pk)).toEqual(found.slice((page - 1) * 100, page * 100).map(({ pk }) => pk))
      }
    }
})

test('applications that are found by their whole rows', async () => {
  await load(
    sql`INSERT INTO applications (pk, slug, name) SELECT gen_random_uuid(), 'many-' || n, 'Many ' || n
      FROM generate_series(1, 25500) n`,
  )
  await load(sql`ANALYZE applications`)
  const { status, json } = await on.admin.get('/api/v3/core/applications/?ordering=slug')
  expect([status, json]).toMatchObject([200, { pagination: { count: expect.any(Number) } }])
})

describe('a group of 20 000', () => {
  test('is answered without delaying others, with users and without', async () => {
    const ask = async (url: string) => {
      const { text } = await on.admin.send({ method: 'GET', url })
      expect(text.length).toBeGreaterThan(100_000)
    }
    for (const include_users of [true, false]) {
      const url = `${groups.path}?include_users=${include_users}`
      expect(await longestTurnCost(() => ask(url))).toBeLessThan(3)
    }
  })

  test('has every member once, in order', async () => {
    const [group] = (await read(groups, { name: 'everybody' })).results
    const shown = groupView.schema.parse(group).users_obj?.map(({ pk }) => pk) ?? []
    expect(shown).toEqual(group?.users)
    expect(new Set(shown).size).toBe(20_000)
    expect(shown.toSorted((a, b) => a - b)).toEqual(shown)
  })

  test('is found by any of them', async () => {
    expect(await column(groups, 'name', { members_by_username: 'user00001' })).toEqual(['everybody'])
    expect((await read(users, { groups_by_name: 'everybody' })).pagination.count).toBe(20_000)
  })
})

test('groups with tens of thousands of members together are answered, each member in its group', async () => {
  await load(sql`
    INSERT INTO groups (pk, name) SELECT gen_random_uuid(), 'big ' || i FROM generate_series(1, 10) i`)
  await load(sql`
    INSERT INTO memberships SELECT g.pk, u.pk FROM groups g, users u WHERE g.name LIKE 'big %' AND u.username BETWEEN 'user00001' AND 'user09000'`)
  const keys = (
    await rows<{ pk: number }>(
      on.db,
      sql`SELECT pk FROM users WHERE username BETWEEN 'user00001' AND 'user09000' ORDER BY pk`,
    )
  ).map(({ pk }) => pk)
  const { text } = await answered(200, on.admin.get(groups.path))
  const { results } = z.object({ results: z.array(shownGroup) }).parse(JSON.parse(text))
  const big = results.filter(({ name }) => name.startsWith('big '))
  expect(big).toHaveLength(10)
  for (const { users, users_obj } of big) {
    expect(users).toEqual(keys)
    expect(users_obj.map(({ pk }) => pk)).toEqual(keys)
  }
  expect(await column(groups, 'name', { search: 'big', include_users: false })).toHaveLength(10)
})

test('a change of a group of 20 000 answers all of them', async () => {
  const { status, json } = await on.admin.send({
    method: 'PATCH',
    url: `${groups.path}${everybody}/`,
    payload: { attributes: { a: 1 } },
  })
  expect(status).toBe(200)
  const { users, users_obj } = shownGroup.parse(json)
  expect(users).toHaveLength(20_000)
  expect(users_obj.map(({ pk }) => pk)).toEqual(users)
})

const shownGroup = z.object({
  name: z.string(),
  users: z.array(z.int()),
  users_obj: z.array(z.object({ pk: z.int() })),
})
