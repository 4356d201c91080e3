import { createHash, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { groupView } from '../../../src/views/group.ts'
import { installation, rows, sql, statementsOf } from '../../support/kit.ts'
import { column, type Listed, queryOf, read, refusal, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/core/groups/ */

const groups: Listed = { path: '/api/v3/core/groups/', by: () => on.admin, view: groupView.schema }

const key = (number: number) => `6f7e0000-0000-4000-8000-00000000900${number}`
const [root, team, loose] = [key(1), key(2), key(3)]
const pks: Record<string, number> = {}

const join = (username: string, group: string) =>
  rows(on.db, sql`INSERT INTO memberships (group_pk, user_pk) VALUES (${group}, ${pks[username]})`)

const on = await installation({ workers: 'none' })
await on.db.role.create({ data: { pk: key(8), name: 'readers', permissions: ['view_user'] } })
await on.db.role.create({ data: { pk: key(7), name: 'writers' } })
await on.db.group.create({ data: { pk: root, name: 'Root 100%', isSuperuser: true } })
await on.db.group.create({
  data: {
    ...{ pk: team, name: 'team_a', parentPk: root, attributes: { room: { floor: 1, doors: ['n', 's'] } } },
    roles: { create: [{ rolePk: key(8) }, { rolePk: key(7) }] },
  },
})
await on.db.group.create({ data: { pk: loose, name: 'loose' } })
for (const username of ['ada', 'alan.t', 'Zoë+1']) {
  const { pk } = await on.db.user.create({
    data: {
      ...{ uuid: randomUUID(), username, name: 'Quote " \\ and é\u2028', email: 'x@example.com' },
      ...{ isActive: username !== 'alan.t', attributes: { a: { b: [1, 'ü'] } } },
      lastLogin: username === 'ada' ? new Date('2026-01-02T03:04:05.600Z') : null,
    },
  })
  pks[username] = pk
}
await join('alan.t', team)
await join('ada', team)
await join('Zoë+1', loose)

const named = (parameters: Parameters<typeof read>[1]) => column(groups, 'name', parameters)
const rowOf = async (name: string, more = {}) => (await read(groups, { name, ...more })).results[0]
const shipped = ['gatewright Admins', 'gatewright Deployers']

describe('a group', () => {
  const roles = {
    roles: [key(7), key(8)],
    roles_obj: [
      { pk: key(7), name: 'writers' },
      { pk: key(8), name: 'readers' },
    ],
  }

  test('is shown with every field, its direct users and roles too', async () => {
    const { numPk } = await on.db.group.findUniqueOrThrow({ where: { pk: team } })
    const [installed] = await rows<{ id: string }>(on.db, sql`SELECT id FROM installation`)
    const brief = (username: string, last_login: string | null) => ({
      ...{ pk: pks[username], username, name: 'Quote " \\ and é\u2028', is_active: username === 'ada', last_login },
      ...{ email: 'x@example.com', attributes: { a: { b: [1, 'ü'] } } },
      uid: createHash('sha256').update(`${pks[username]}-${installed?.id}`).digest('hex'),
    })
    expect(await rowOf('team_a')).toEqual({
      ...{ pk: team, num_pk: numPk, name: 'team_a', is_superuser: false, parent: root, parent_name: 'Root 100%' },
      users: [pks.ada, pks['alan.t']],
      users_obj: [brief('ada', '2026-01-02T03:04:05.600Z'), brief('alan.t', null)],
      attributes: { room: { floor: 1, doors: ['n', 's'] } },
      ...roles,
    })
  })

  test('with only a name has [], {} and null in its other fields', async () => {
    const empty = {
      users: [],
      users_obj: [],
      roles: [],
      roles_obj: [],
      attributes: {},
      parent: null,
      parent_name: null,
    }
    expect(await rowOf('Root 100%')).toMatchObject({ ...empty, is_superuser: true })
  })

  test('is shown without users when they are not requested, except their keys; and no user is read', async () => {
    const sent = await statementsOf(async () =>
      expect(await rowOf('team_a', { include_users: 'False' })).toMatchObject({
        ...{ users: [pks.ada, pks['alan.t']], users_obj: null },
        ...roles,
      }),
    )
    const withUsers = await statementsOf(() => rowOf('team_a'))
    expect(sent.length).toBe(withUsers.length - 1)
  })
})

describe('is narrowed by', () => {
  test.each<[Parameters<typeof read>[1], string[]]>([
    [{ name: 'loose' }, ['loose']],
    [{ name: 'Loose' }, []],
    [{ is_superuser: true }, ['Root 100%', 'gatewright Admins']],
    [{ is_superuser: false, search: 'gatewright' }, ['gatewright Deployers']],
    [{ members_by_username: 'ada' }, ['team_a']],
    [{ members_by_username: ['ada', 'Zoë+1'] }, ['loose', 'team_a']],
    [{ members_by_username: ['ada', 'alan.t'] }, ['team_a']],
    [{ members_by_username: 'admin' }, ['gatewright Admins']],
    [{ attributes: '{"room__floor": 1}' }, ['team_a']],
    [{ attributes: '{"room": {"doors": ["s"]}}' }, ['team_a']],
    [{ attributes: '{"room__floor": 2}' }, []],
    [{ search: 'TEAM' }, ['team_a']],
    [{ search: '100%' }, ['Root 100%']],
    [{ search: '_' }, ['team_a']],
    [{ search: 'root 100' }, ['Root 100%']],
    [{ search: 'root loose' }, []],
    [{}, ['Root 100%', ...shipped, 'loose', 'team_a']],
  ])('%j', async (parameters, expected) => {
    expect(await named(parameters)).toEqual(expected)
  })

  test('members_by_pk, directly', async () => {
    expect(await named({ members_by_pk: Number(pks.ada) })).toEqual(['team_a'])
    expect(await named({ members_by_pk: [Number(pks.ada), Number(pks['Zoë+1'])] })).toEqual(['loose', 'team_a'])
    expect(await named({ members_by_pk: Number(pks.ada), members_by_username: 'Zoë+1' })).toEqual([])
    // An empty list is none: generated clients send it.
    expect(await named({ members_by_pk: '', members_by_username: '' })).toHaveLength(5)
  })
})

test.each([
  ['num_pk', [...shipped, 'Root 100%', 'team_a', 'loose']],
  ['-num_pk', ['loose', 'team_a', 'Root 100%', ...shipped.toReversed()]],
  ['-is_superuser,name', ['Root 100%', 'gatewright Admins', 'gatewright Deployers', 'loose', 'team_a']],
  ['pk', [...shipped, 'Root 100%', 'team_a', 'loose']],
])('is ordered by %s', async (ordering, expected) => {
  expect(await named({ ordering })).toEqual(expected)
})

const badName = ['May hold only letters, digits and @ . + - _ characters.']

testRefusals(groups, {
  'a mistyped flag': ['?include_user=true', { include_user: ['Unknown parameter. Did you mean include_users?'] }],
  'a username of 151 characters': [
    `?members_by_username=ada&members_by_username=${'x'.repeat(151)}`,
    { members_by_username: { 1: ['Must be at most 150 characters.'] } },
  ],
  'a username with a space': ['?members_by_username=a+b', { members_by_username: { 0: badName } }],
  'a user that is not there': [
    '?members_by_username=nobody&members_by_pk=999999&members_by_pk=1',
    { members_by_username: ['There is no user "nobody".'], members_by_pk: ['There is no user "999999".'] },
  ],
  'a user key that is none': ['?members_by_pk=x', { members_by_pk: { 0: ['Must be a whole number.'] } }],
  'a user key beyond all': ['?members_by_pk=2147483648', { members_by_pk: { 0: ['Must be from 1 to 2147483647.'] } }],
  'attributes that are a list': [
    queryOf({ attributes: '[]' }),
    { attributes: [expect.stringMatching(/^Must be a JSON object/)] },
  ],
  'a flag that is none': ['?is_superuser=yes', { is_superuser: ['Must be true or false.'] }],
})

testPages(
  groups,
  ['name', 'num_pk', 'pk', 'is_superuser'],
  [{ is_superuser: false }, { search: 'e' }, { include_users: false }, { members_by_username: ['ada', 'admin'] }],
)

testStatements(groups, 6, [
  { page_size: 100, include_users: false },
  { members_by_username: 'ada', attributes: '{}', search: 'team' },
])

test('is refused without view_group', async () => {
  const someone = await on.make.user({ permissions: ['view_user', 'add_group', 'change_group'] })
  expect(await refusal({ ...groups, by: () => someone }, '')).toMatchObject({ status: 403 })
})
