import { createHash, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { notKept } from '../../../src/numbers.ts'
import { userView } from '../../../src/views/user.ts'
import { type Installation, installation, rows, sql } from '../../support/kit.ts'
import {
  column,
  invalid,
  type Listed,
  queryOf,
  read,
  refusal,
  testPages,
  testRefusals,
  testStatements,
} from './listing.ts'

/** GET /api/v3/core/users/ */

const users: Listed = { path: '/api/v3/core/users/', by: () => on.admin, view: userView.schema }

/** A tree of groups: `root` (superuser) above `team`; `loose` beside them. */
const groups = {
  root: '6f7e0000-0000-4000-8000-000000009001',
  team: '6f7e0000-0000-4000-8000-000000009002',
  loose: '6f7e0000-0000-4000-8000-000000009003',
}
const none = '6f7e0000-0000-4000-8000-00000000ffff'

type Person = Parameters<Installation['db']['user']['create']>[0]['data']
const people: Record<string, Partial<Person>> = {
  ada: {
    name: 'Ada Lovelace',
    email: 'ada@example.com',
    lastLogin: new Date('2026-01-02T03:04:05.678Z'),
    attributes: { department: 'it', address: { city: 'London', zip: 1 }, avatar: 'https://example.com/ada.png' },
    path: 'users/staff',
  },
  alan: { name: 'Alan Turing', attributes: { department: 'it', tags: ['x', 'y'] }, path: 'users/staff/night' },
  grace: { name: 'Grace 100% Hopper', email: 'grace_h@example.com', isActive: false, path: 'users/staffing' },
  robot: { name: 'a\\b', type: 'service_account', attributes: { department: null, a__b: 1, a: { b: 2 } } },
  probe: { type: 'internal_service_account', attributes: { deep: { a: { b: [1, { c: true }] } } } },
  guest: { name: 'İrem', type: 'external', path: 'guests', attributes: { avatar: 'javascript:alert(1)' } },
}

const join = (username: string, group: keyof typeof groups) =>
  rows(
    on.db,
    sql`INSERT INTO memberships (group_pk, user_pk) SELECT ${groups[group]}, pk FROM users WHERE username = ${username}`,
  )

const named = (parameters: Parameters<typeof read>[1]) => column(users, 'username', parameters)
const rowOf = async (username: string) => (await read(users, { username })).results[0]
const uuidOf = async (username: string) => (await on.db.user.findUniqueOrThrow({ where: { username } })).uuid

describe('a user', () => {
  test('is shown with every field', async () => {
    const { pk, uuid } = await on.db.user.findUniqueOrThrow({ where: { username: 'ada' } })
    const [installed] = await rows<{ id: string }>(on.db, sql`SELECT id FROM installation`)
    const numbers = await rows<{ name: string; num_pk: number }>(on.db, sql`SELECT name, num_pk FROM groups`)
    const numberOf = (group: string) => numbers.find(({ name }) => name === group)?.num_pk
    expect(await rowOf('ada')).toEqual({
      pk,
      username: 'ada',
      name: 'Ada Lovelace',
      is_active: true,
      last_login: '2026-01-02T03:04:05.678Z',
      is_superuser: true,
      groups: [groups.team, groups.loose],
      groups_obj: [
        {
          ...{ pk: groups.team, num_pk: numberOf('team'), name: 'team', is_superuser: false },
          ...{ parent: groups.root, parent_name: 'root', attributes: { room: 1 } },
        },
        {
          ...{ pk: groups.loose, num_pk: numberOf('loose'), name: 'loose', is_superuser: false },
          ...{ parent: null, parent_name: null, attributes: {} },
        },
      ],
      email: 'ada@example.com',
      avatar: 'https://example.com/ada.png',
      attributes: { department: 'it', address: { city: 'London', zip: 1 }, avatar: 'https://example.com/ada.png' },
      uid: createHash('sha256').update(`${pk}-${installed?.id}`).digest('hex'),
      path: 'users/staff',
      type: 'internal',
      uuid,
    })
  })

  test('with only a username has "", [], {} and null in its other fields', async () => {
    expect(await rowOf('probe')).toMatchObject({
      ...{ name: '', email: '', last_login: null, groups: [], groups_obj: [], is_superuser: false, path: 'users' },
    })
  })

  test('has an avatar of initials unless it has an https address', async () => {
    const svgOf = async (username: string) => {
      const avatar = String((await rowOf(username))?.avatar)
      expect(avatar).toMatch(/^data:image\/svg\+xml;base64,/)
      return Buffer.from(avatar.slice(avatar.indexOf(',') + 1), 'base64').toString()
    }
    expect(await svgOf('alan')).toMatch(/>AT</)
    expect(await svgOf('guest')).toMatch(/>İ</)
    expect(await svgOf('probe')).toMatch(/>P</)
  })

  test('is shown without groups when they are not requested, except their keys', async () => {
    for (const text of ['false', 'FALSE']) {
      const { results } = await read(users, { username: 'ada', include_groups: text })
      expect(results).toMatchObject([{ groups: [groups.team, groups.loose], groups_obj: null }])
    }
  })
})

describe('is narrowed by', () => {
  test.each<[Parameters<typeof read>[1], string[]]>([
    [{ username: 'ada' }, ['ada']],
    [{ username: 'ad' }, []],
    [{ name: 'Alan Turing' }, ['alan']],
    [{ email: 'grace_h@example.com' }, ['grace']],
    [{ is_active: false }, ['grace']],
    [{ is_active: 'TRUE', type: 'external' }, ['guest']],
    [{ path: 'users/staff' }, ['ada']],
    [{ path_startswith: 'users/staff' }, ['ada', 'alan', 'grace']],
    [{ path_startswith: 'users/staff/' }, ['alan']],
    [{ path_startswith: '%' }, []],
    [{ path_startswith: 'user_' }, []],
    [{ type: ['service_account', 'internal_service_account'] }, ['probe', 'robot']],
    [{ groups_by_name: 'loose' }, ['ada', 'alan']],
    [{ groups_by_name: ['loose', 'root'] }, ['ada', 'alan', 'grace']],
    [{ groups_by_name: 'root' }, ['grace']],
    [{ groups_by_pk: groups.loose.toUpperCase() }, ['ada', 'alan']],
    [{ groups_by_pk: [groups.loose, groups.team, groups.team] }, ['ada', 'alan']],
    [{ groups_by_name: 'loose', groups_by_pk: groups.team }, ['ada']],
    [{ groups_by_name: 'loose', groups_by_pk: '', type: '' }, ['ada', 'alan']],
    [{ attributes: '{"department": "it"}' }, ['ada', 'alan']],
    [{ attributes: '{"address": {"city": "London"}}' }, ['ada']],
    [{ attributes: '{"address__city": "London", "department": "it"}' }, ['ada']],
    [{ attributes: '{"address__city": "London", "address__zip": 2}' }, []],
    [{ attributes: '{"tags": ["y"]}' }, ['alan']],
    [{ attributes: '{"department": null}' }, ['robot']],
    [{ attributes: '{"deep__a__b": [{"c": true}]}' }, ['probe']],
    [{ attributes: '{"a__b": 2}' }, ['robot']],
    [{ attributes: '{"a__b": 1}' }, []],
    [{ attributes: `{"x": "' OR true --"}` }, []],
    [{ search: 'LOVE' }, ['ada']],
    [{ search: 'example.com hopper' }, ['grace']],
    [{ search: 'lovelace turing' }, []],
    [{ search: '100%' }, ['grace']],
    [{ search: 'e_h' }, ['grace']],
    [{ search: 'a\\b' }, ['robot']],
    [{ search: '%' }, ['grace']],
    [{ search: 'ovelace ada' }, ['ada']],
    [{ search: 'lovelaceada' }, []],
    [{ search: "'; DROP TABLE users" }, []],
  ])('%j', async (parameters, expected) => {
    expect(await named(parameters)).toEqual(expected)
  })

  test('uuid, in any case, and by search for a part of it', async () => {
    const uuid = await uuidOf('alan')
    expect(await named({ uuid: uuid.toUpperCase() })).toEqual(['alan'])
    expect(await named({ search: uuid.slice(3, 25).toUpperCase() })).toEqual(['alan'])
    expect(await named({ uuid: none })).toEqual([])
  })

  test('is_superuser, by any group above', async () => {
    expect(await named({ is_superuser: true })).toEqual(['ada', 'admin', 'grace'])
    expect(await named({ is_superuser: false })).toEqual(['alan', 'guest', 'probe', 'robot'])
  })

  test('nothing at all', async () => {
    const everybody = ['ada', 'admin', 'alan', 'grace', 'guest', 'probe', 'robot']
    for (const parameters of [{}, { attributes: '{}' }, { search: '  \t ' }, { path_startswith: '' }])
      expect(await named(parameters)).toEqual(everybody)
  })
})

test.each<[string, string[]]>([
  ['-username', ['robot', 'probe', 'guest', 'grace', 'alan', 'admin', 'ada']],
  ['is_active,-username', ['grace', 'robot', 'probe', 'guest', 'alan', 'admin', 'ada']],
  [' -is_active , username ', ['ada', 'admin', 'alan', 'guest', 'probe', 'robot', 'grace']],
  ['pk', ['admin', 'ada', 'alan', 'grace', 'robot', 'probe', 'guest']],
  ['last_login,username', ['ada', 'admin', 'alan', 'grace', 'guest', 'probe', 'robot']],
  ['-last_login,username', ['admin', 'alan', 'grace', 'guest', 'probe', 'robot', 'ada']],
  ['username,-username', ['ada', 'admin', 'alan', 'grace', 'guest', 'probe', 'robot']],
])('is ordered by %s', async (ordering, expected) => {
  expect(await named({ ordering })).toEqual(expected)
})

const mustBeObject = ['Must be a JSON object, such as {"department": "it"}.']
const unstorable = ['May not hold NUL characters or halves of surrogate pairs.']
const attributes = (text: string) => queryOf({ attributes: text })

const on = await installation({ workers: 'none' })
await on.db.group.create({ data: { pk: groups.root, name: 'root', isSuperuser: true } })
await on.db.group.create({ data: { pk: groups.team, name: 'team', parentPk: groups.root, attributes: { room: 1 } } })
await on.db.group.create({ data: { pk: groups.loose, name: 'loose' } })
for (const [username, person] of Object.entries(people))
  await on.db.user.create({ data: { uuid: randomUUID(), username, ...person } })
await join('ada', 'team')
await join('ada', 'loose')
await join('alan', 'loose')
await join('grace', 'root')

const members = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i])))
const oneOfTypes = ['Must be one of: external, internal, internal_service_account, service_account.']

testRefusals(users, {
  'a mistyped filter': ['?user_name=x', { user_name: ['Unknown parameter. Did you mean username?'] }],
  'two values of a filter': ['?username=a&username=b', { username: ['Send this parameter once.'] }],
  'a uuid that is none': ['?uuid=1', { uuid: ['Must be a UUID.'] }],
  'an empty group key among others': [
    `?groups_by_pk=&groups_by_pk=${groups.team}`,
    { groups_by_pk: { 0: ['Must be a UUID.'] } },
  ],
  'a group key that is none': ['?groups_by_pk=x', { groups_by_pk: { 0: ['Must be a UUID.'] } }],
  'a group that is not there': [
    `?groups_by_pk=${none}&groups_by_pk=${groups.team}&groups_by_name=team&groups_by_name=nobody's`,
    { groups_by_pk: [`There is no group "${none}".`], groups_by_name: [`There is no group "nobody's".`] },
  ],
  'a hundred and one groups': [
    queryOf({ groups_by_name: Array.from({ length: 101 }, () => 'team') }),
    { groups_by_name: ['Send at most 100 of these.'] },
  ],
  'a type that is none': ['?type=internal&type=robot', { type: { 1: oneOfTypes } }],
  'two empty types': ['?type=&type=', { type: { 0: oneOfTypes, 1: oneOfTypes } }],
  'a boolean that is none': ['?is_active=1', { is_active: ['Must be true or false.'] }],
  'an include flag that is none': ['?include_groups=no', { include_groups: ['Must be true or false.'] }],
  'a flag sent twice': ['?is_superuser=true&is_superuser=false', { is_superuser: ['Send this parameter once.'] }],
  'a name of 256 characters': [`?name=${'x'.repeat(256)}`, { name: ['Must be at most 255 characters.'] }],
  'attributes that are a text': [attributes('"it"'), { attributes: mustBeObject }],
  'attributes that are a list': [attributes('[]'), { attributes: mustBeObject }],
  'attributes that are null': [attributes('null'), { attributes: mustBeObject }],
  'attributes that are no JSON': [attributes('{a:1}'), { attributes: mustBeObject }],
  'no attributes': [attributes(''), { attributes: mustBeObject }],
  'attributes with 21 fields': [attributes(members(21)), { attributes: ['Must have at most 20 fields.'] }],
  'attributes with NUL': [attributes('{"a": "\\u0000"}'), { attributes: unstorable }],
  'attributes named NUL': [attributes('{"\\u0000": 1}'), { attributes: unstorable }],
  'half of a surrogate pair': [attributes('{"a": ["\\ud800"]}'), { attributes: unstorable }],
  'a number beyond all': [attributes('{"a": 1e999}'), { attributes: [notKept] }],
  'a number with more digits than it keeps': [attributes('{"id": 1056712345678901234}'), { attributes: [notKept] }],
  'attributes nested too deep': [
    attributes(`{"a": ${'['.repeat(40)}${']'.repeat(40)}}`),
    { attributes: ['Must nest at most 32 levels deep.'] },
  ],
  'attributes nested too deep by name': [
    attributes(JSON.stringify({ ['a__'.repeat(2_000)]: 1 })),
    { attributes: ['Must nest at most 32 levels deep.'] },
  ],
  'attributes that are very long': [
    attributes(JSON.stringify({ a: 'x'.repeat(10_000) })),
    { attributes: ['Must be at most 10000 characters.'] },
  ],
})

test('20 attributes are taken', async () => {
  expect(await named({ attributes: members(20) })).toEqual([])
})

testPages(
  users,
  ['username', 'name', 'email', 'path', 'type', 'is_active', 'last_login', 'pk', 'uuid'],
  [{ is_active: true }, { search: 'a' }, { attributes: '{"department": "it"}' }, { search: 'nobody' }],
)

testStatements(users, 6, [
  { page_size: 100, include_groups: false },
  { include_groups: true, is_superuser: true },
  { groups_by_name: 'team', attributes: '{}', page_size: 1 },
])

test('is refused without view_user', async () => {
  const someone = await on.make.user({ permissions: ['view_group', 'change_user'] })
  expect(await refusal({ ...users, by: () => someone }, '')).toMatchObject({ status: 403 })
  await rows(on.db, sql`DELETE FROM users WHERE pk = ${someone.pk}`)
  expect(await refusal(users, '?uuid=x')).toEqual(invalid({ uuid: ['Must be a UUID.'] }))
})
