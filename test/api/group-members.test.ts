import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { type Asker, answered, installation, statementsOf, within } from '../support/kit.ts'

/** GET /core/groups/{uuid}/members/ */

const group = '6f7e0000-0000-4000-8000-000000009004'
const path = `/api/v3/core/groups/${group}/members/`
const count = 2_500

const there = await installation({ workers: 'none' })
/** May view groups, and no users. */
const viewer = await there.make.user({ permissions: ['view_group'] })
await within(there.url, async (client) => {
  await client.query(`
      INSERT INTO users (uuid, username, attributes)
      SELECT gen_random_uuid(), 'member' || i, jsonb_build_object('number', i) FROM generate_series(1, ${count * 2}) i`)
  await client.query(`INSERT INTO groups (pk, name) VALUES ('${group}', 'wide')`)
  await client.query(
    `INSERT INTO memberships SELECT '${group}', pk FROM users WHERE (attributes->>'number')::int % 2 = 0`,
  )
  await client.query('ANALYZE memberships')
})

const page = z.strictObject({
  next: z.string().nullable(),
  results: z.array(z.strictObject({ user: z.int(), user_obj: z.looseObject({ pk: z.int() }).nullable() })),
})

async function read(url: string, by: Asker = there.admin) {
  const { json } = await answered(200, by.get(url))
  return page.parse(json)
}

test('its pages are all members once, as the group shows them', async () => {
  const { users, users_obj } = z
    .object({ users: z.array(z.int()), users_obj: z.array(z.unknown()) })
    .parse((await there.admin.get(`/api/v3/core/groups/${group}/`)).json)
  expect(users).toHaveLength(count)
  for (const size of [1_000, 700]) {
    const found: z.output<typeof page>['results'] = []
    for (let url: string | null = `${path}?page_size=${size}`; url !== null; ) {
      const { next, results } = await read(url)
      expect(results.length).toBeLessThanOrEqual(size)
      found.push(...results)
      url = next
    }
    expect(found.map(({ user }) => user)).toEqual(users)
    expect(found.map(({ user_obj }) => user_obj)).toEqual(users_obj)
  }
})

test('a page has 100 members, and the last one has no next', async () => {
  const { next, results } = await read(path)
  expect(results).toHaveLength(100)
  expect(next).toBe(`${path}?after=${results.at(-1)?.user}&page_size=100`)
  const exact = await there.make.group({ users: results.slice(0, 2).map(({ user }) => user) })
  const url = `/api/v3/core/groups/${exact.pk.toUpperCase()}/members/?page_size=2`
  expect(await read(url)).toMatchObject({ next: null, results: results.slice(0, 2) })
  const empty = await there.make.group()
  expect(await read(`/api/v3/core/groups/${empty.pk}/members/`)).toEqual({ next: null, results: [] })
})

test('members who come and go move no others to another page', async () => {
  const [ada, bob, cid] = [await there.make.user(), await there.make.user(), await there.make.user()]
  const { pk } = await there.make.group({ users: [ada.pk, cid.pk] })
  const first = await read(`/api/v3/core/groups/${pk}/members/?page_size=1`)
  expect(first.results).toMatchObject([{ user: ada.pk }])
  await there.db.membership.deleteMany({ where: { groupPk: pk, userPk: ada.pk } })
  await there.db.membership.create({ data: { groupPk: pk, userPk: bob.pk } })
  const second = await read(String(first.next))
  expect(second.results).toMatchObject([{ user: bob.pk }])
  expect((await read(String(second.next))).results).toMatchObject([{ user: cid.pk }])
})

test.each<[string, () => Asker, string]>([
  ['for a caller who may not view them', () => viewer, ''],
  ['for a caller who does not want them', () => there.admin, '&include_users=false'],
])('without the users: %s, it has their keys', async (_, by, query) => {
  const { results, next } = await read(`${path}?page_size=5${query}`, by())
  expect(results).toHaveLength(5)
  for (const { user_obj } of results) expect(user_obj).toBeNull()
  expect(next).toBe(`${path}?after=${results.at(-1)?.user}&page_size=5${query}`)
  expect((await read(String(next), by())).results[0]?.user_obj).toBeNull()
})

test.each<[string, string, object]>([
  ['no such group', `/api/v3/core/groups/${randomUUID()}/members/`, { status: 404 }],
  ['a page of too many', `${path}?page_size=1001`, { status: 400, json: { page_size: ['Must be from 1 to 1000.'] } }],
  ['a wrong place', `${path}?after=first`, { status: 400, json: { after: ['Must be a whole number.'] } }],
  ['an order', `${path}?ordering=name`, { status: 400, json: { ordering: ['Unknown parameter.'] } }],
])('%s is refused', async (_, url, expected) => {
  expect(await there.admin.get(url)).toMatchObject(expected)
})

type Node = { 'Node Type': string; 'Actual Rows': number; 'Index Name'?: string; Plans?: Node[] }
const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

test('any page reads the members that it shows, and no others', async () => {
  const { results } = await read(`${path}?page_size=1000&include_users=false`)
  const from = results.at(-1)?.user ?? 0
  const sentFor = (url: string) => statementsOf(() => read(url))
  const [first, later] = [await sentFor(path), await sentFor(`${path}?after=${from}`)]
  expect(later).toEqual(first)
  const keys = first.find((text) => text.includes('ORDER BY m.user_pk'))
  const [plan] = await within(there.url, async (client) => {
    const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${keys}`, [group, from, 101])
    return rows[0]['QUERY PLAN'] as { Plan: Node }[]
  })
  const scans = nodesOf(plan?.Plan ?? { 'Node Type': '', 'Actual Rows': 0 }).filter((node) => 'Index Name' in node)
  expect(scans).toContainEqual(expect.objectContaining({ 'Index Name': 'memberships_pkey', 'Actual Rows': 101 }))
})
