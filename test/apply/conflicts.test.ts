import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { type Conditions, nothingAllowed } from '../../src/plan/engine.ts'
import { people } from '../rights/people.ts'
import { counts, versions } from '../support/contents.ts'
import { application, type Bench, bench, oauth2, scim } from './engine.ts'

/** What the submitter has to acknowledge. The worker decides again, because rows change after the check of the API. */

const accepting = await bench()
/** Without acknowledgements, unless a test gives them. */
const there: Bench = {
  ...accepting,
  apply: (entries, as, conditions) => accepting.apply(entries, as, { allow: nothingAllowed, ...conditions }),
  refusal: (entries, as, conditions) => accepting.refusal(entries, as, { allow: nothingAllowed, ...conditions }),
  check: (entries, as, conditions) => accepting.check(entries, as, { allow: nothingAllowed, ...conditions }),
}
const { user, role, group: groupOf } = people(there)
let name: string
beforeEach(() => {
  name = randomUUID()
})

type Document = readonly Partial<Entry>[]

/** The sentence with which both the check and the worker refuse; nothing is written. */
async function refused(entries: Document, conditions: Partial<Conditions> = {}, inCheck = true): Promise<string> {
  const before = [await counts(there.db), await versions(there.db)]
  const { reason, logs } = await there.refusal(entries, undefined, conditions)
  expect(reason).toBe('conflict')
  expect([await counts(there.db), await versions(there.db)]).toEqual(before)
  const [why = ''] = logs.map((line) => line.replace(/^rolled back: /, ''))
  if (inCheck)
    await expect(there.check(entries, undefined, conditions)).rejects.toMatchObject({
      code: 'conflict',
      message: `${why}.`,
    })
  return why
}

const allowing = (word: keyof typeof nothingAllowed) => ({ allow: { ...nothingAllowed, [word]: true } })

test('the worker refuses what became the object of another owner after the check', async () => {
  const [amira, bo] = [await user({ superuser: true }), await user({ superuser: true })]
  const entries = [oauth2(name)]
  await there.check(entries, bo, { owner: 'team-b' })
  await there.apply(entries, amira, { owner: 'team-a' })
  expect(await there.refusal(entries, bo, { owner: 'team-b' })).toMatchObject({
    reason: 'conflict',
    logs: [expect.stringMatching(/^rolled back: provider oauth2 ".*" belongs to owner "team-a" \(made by /)],
  })
  await there.apply(entries, bo, { owner: 'team-b', ...allowing('takeover') })
  expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({
    owner: 'team-b',
    createdBy: amira.pk,
  })
})

test('errors come before conflicts: they are fixed first', async () => {
  const [amira, bo] = [await user({ superuser: true }), await user({ superuser: true })]
  await there.apply([oauth2(name)], amira, { owner: 'team-a' })
  const entries = [oauth2(name), application(name, { provider: 999_999_999 })]
  await expect(there.check(entries, bo, { owner: 'team-b' })).rejects.toMatchObject({ code: 'invalid' })
})

test('entries of one document share its owner', async () => {
  const amira = await user({ superuser: true })
  const entries = [application(name), application(name, { group: 'again' }), scim(name), application(name)]
  expect((await there.apply(entries, amira, { owner: 'team-a' })).logs).toHaveLength(4)
  expect(await there.db.application.findUnique({ where: { slug: name } })).toMatchObject({ owner: 'team-a' })
})

describe('rights for a group that is there', () => {
  const group = (attrs: Record<string, unknown>): Partial<Entry> => ({
    model: 'service_core.group',
    identifiers: { name },
    attrs,
  })
  const reader = (): Promise<string> => role(['view_user'])

  /** A group without rights whose members the author of the document does not know. */
  async function claimed(members = 2, { below = false } = {}): Promise<{ names: string[]; keys: number[] }> {
    await there.apply([group({})])
    const users = await Promise.all(Array.from({ length: members }, () => user()))
    const { pk } = await there.db.group.findUniqueOrThrow({ where: { name } })
    const keys = users.map((each) => each.pk)
    if (below) await groupOf({ parent: await groupOf({ parent: pk }), users: keys })
    else await there.db.membership.createMany({ data: keys.map((userPk) => ({ groupPk: pk, userPk })) })
    return { names: users.map(({ username }) => username).sort(), keys }
  }

  const gives = (members: string) =>
    `group "${name}" is there already, and gives rights to members whom the document does not name: ${members}. Gatewright-Allow: grants applies it all the same`

  test.each([
    ['a role', async () => ({ roles: [await reader()] })],
    ['a new role', async () => ({ roles: [new KeyOf('role')] })],
    ['the flag', async () => ({ is_superuser: true })],
    ['a parent with a role', async () => ({ parent: await groupOf({ permissions: ['view_user'] }) })],
    ['a parent with the flag', async () => ({ parent: await groupOf({ superuser: true }) })],
    [
      'a parent below one with a role',
      async () => ({ parent: await groupOf({ parent: await groupOf({ permissions: ['view_user'] }) }) }),
    ],
  ])('%s is refused with the names of its members, unless it is acknowledged', async (what, attrs) => {
    const { names } = await claimed()
    const before = what === 'a new role' ? [newRole()] : []
    const entries = [...before, group(await attrs())]
    expect(await refused(entries)).toBe(gives(names.join(', ')))
    expect((await there.apply(entries, undefined, allowing('grants'))).logs.at(-1)).toContain(`group "${name}" updated`)
    // It has them now: nothing is given any more.
    expect((await there.apply(entries)).logs.at(-1)).toBe(`group "${name}" unchanged`)
  })

  const newRole = (): Partial<Entry> => ({
    model: 'service_rbac.role',
    id: 'role',
    identifiers: { name },
    attrs: { permissions: ['view_user'] },
  })

  test('members of the groups below get them too', async () => {
    const { names } = await claimed(1, { below: true })
    expect(await refused([group({ roles: [await reader()] })])).toBe(gives(names.join(', ')))
    // A list of members replaces those of the group itself only.
    expect(await refused([group({ roles: [await reader()], users: [] })])).toBe(gives(names.join(', ')))
  })

  test('at most ten members are named', async () => {
    const { names } = await claimed(13)
    expect(await refused([group({ is_superuser: true })])).toBe(gives(`${names.slice(0, 10).join(', ')} and 3 more`))
  })

  test.each<[string, (members: Members) => Partial<Entry>[]]>([
    ['as the members of the group', ({ keys }) => [group({ users: keys })]],
    [
      'by !Find',
      ({ names }) => [group({ users: names.map((username) => new Find('service_core.user', { username })) })],
    ],
    [
      'as users of their own',
      ({ names }) => names.map((username) => ({ model: 'service_core.user', identifiers: { username } })),
    ],
    [
      'as members of another group',
      ({ keys }) => [{ model: 'service_core.group', identifiers: { name: `${name}-b` }, attrs: { users: keys } }],
    ],
  ])('members that the document names %s are known', async (_, others) => {
    const members = await claimed()
    const grant = group({ roles: [await reader()] })
    const [first, ...more] = others(members)
    const isSame = first?.identifiers?.name === name
    const entries = isSame ? [{ ...first, attrs: { ...first.attrs, ...grant.attrs } }] : [first ?? {}, ...more, grant]
    await expect(there.check(entries)).resolves.toBeDefined()
    expect((await there.apply(entries)).logs.at(-1)).toContain(`group "${name}" updated`)
  })

  test('one of several who is not named is', async () => {
    const { names, keys } = await claimed(2)
    const named = { model: 'service_core.user', identifiers: { username: names[0] } }
    expect(keys).toHaveLength(2)
    expect(await refused([named, group({ roles: [await reader()] })])).toBe(gives(names[1] ?? ''))
  })

  test('what gives nothing needs no acknowledgement', async () => {
    await claimed()
    const parent = await groupOf()
    const role = await reader()
    for (const attrs of [
      { attributes: { a: 1 } },
      { parent },
      { parent: null },
      { roles: [] },
      { is_superuser: false },
    ])
      await there.apply([group(attrs)])
    await there.apply([group({ roles: [role] })], undefined, allowing('grants'))
    await there.apply([group({ roles: [role], attributes: { a: 2 } })])
    expect((await there.apply([group({ roles: [] })])).logs).toEqual([
      `group "${name}" updated: roles ["${role}"] -> []`,
    ])
  })

  test('a group that is empty or new needs none either', async () => {
    await there.apply([group({})])
    await there.apply([group({ is_superuser: true })])
    name = randomUUID()
    const { pk } = await user()
    expect((await there.apply([group({ is_superuser: true, users: [pk] })])).logs[0]).toContain('created')
  })

  test('a parent that an earlier entry gives rights to is seen by the worker', async () => {
    await claimed(1)
    const parent = { ...group({ roles: [await reader()] }), id: 'parent', identifiers: { name: `${name}-parent` } }
    expect(await refused([parent, group({ parent: new KeyOf('parent') })], {}, false)).toContain('gives rights')
    // In the other order, the parent has the members below it when it gets the role.
    await there.apply([{ ...parent, attrs: {} }, group({ parent: new KeyOf('parent') })])
    expect(await refused([parent])).toContain('gives rights')
  })
})

type Members = { readonly names: string[]; readonly keys: number[] }

describe('an application takes a provider that is there', () => {
  const able = (...permissions: string[]) =>
    user({ permissions: ['add_application', 'change_application', ...permissions] })
  const pkOf = async (of: string) => (await there.db.provider.findUniqueOrThrow({ where: { name: of } })).pk

  test.each(['provider', 'backchannel_providers'])('in %s, with the permission to change it', async (field) => {
    await there.apply([scim(name)])
    const pk = await pkOf(name)
    const entries = [application(name, { [field]: field === 'provider' ? pk : [pk] })]
    const why = 'the permission change_scimprovider is missing for a row that it names'
    for (const actor of [await able(), await able('change_oauth2provider', 'add_scimprovider')]) {
      await expect(there.check(entries, actor)).rejects.toMatchObject({
        code: 'permission_denied',
        message: `You may not create application "${name}": ${why}.`,
      })
      expect(await there.refusal(entries, actor)).toMatchObject({ reason: 'permission_denied' })
    }
    const right = await able('change_scimprovider')
    await there.check(entries, right)
    await there.apply(entries, right)
    // It has the provider now: an update of other fields needs no more.
    const other = [application(name, { ...entries[0]?.attrs, group: 'New' })]
    await there.check(other, await able())
    await there.apply(other, await able())
  })

  test.each(['provider', 'backchannel_providers'])('in %s, with its owner or an acknowledgement', async (field) => {
    await there.apply([scim(name)], undefined, { owner: 'team-a' })
    const pk = await pkOf(name)
    const entries = [application(name, { [field]: field === 'provider' ? pk : [pk] })]
    expect(await refused(entries, { owner: 'team-b' })).toContain(`provider scim "${name}" belongs to owner "team-a"`)
    expect(await refused(entries)).toContain('the request names no owner')
    await there.apply(entries, undefined, { owner: 'team-b', ...allowing('takeover') })
    expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({ owner: 'team-b' })
  })

  test('a second backchannel provider too, and by !Find', async () => {
    await there.apply([scim(name), scim(`${name}-b`), application(name)])
    await there.apply([application(name, { backchannel_providers: [await pkOf(name)] })])
    const both = [await pkOf(name), new Find('service_providers_scim.scimprovider', { name: `${name}-b` })]
    expect(await there.refusal([application(name, { backchannel_providers: both })], await able())).toMatchObject({
      reason: 'permission_denied',
    })
  })

  test('one that the same document creates needs the permission to add it only', async () => {
    const entries = [
      { ...scim(name), id: 'provider' },
      application(name, { backchannel_providers: [new KeyOf('provider')] }),
    ]
    const actor = await able('add_scimprovider')
    await there.check(entries, actor)
    expect((await there.apply(entries, actor)).logs).toHaveLength(2)
  })

  test.each([
    ['by its key', 'provider', async () => pkOf(name)],
    ['by its name', 'provider', async () => name],
    ['by !Find', 'backchannel_providers', async () => [new Find('service_providers_scim.scimprovider', { name })]],
  ])('of another owner, %s, is a conflict, unless it is acknowledged', async (_, field, reference) => {
    const [amira, bo] = [await user({ superuser: true }), await user({ superuser: true })]
    await there.apply([scim(name)], amira, { owner: 'team-a' })
    const entries = [application(name, { [field]: await reference() })]
    const conditions = { owner: 'team-b' }
    const sentence = `provider scim "${name}" belongs to owner "team-a" (made by "${amira.username}" on `
    expect(await there.refusal(entries, bo, conditions)).toMatchObject({
      reason: 'conflict',
      logs: [expect.stringContaining(`rolled back: ${sentence}`)],
    })
    await expect(there.check(entries, bo, conditions)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(sentence),
    })
    const { logs, audited } = await there.apply(entries, bo, { ...conditions, ...allowing('takeover') })
    expect(logs).toEqual([
      expect.stringContaining(`application "${name}" created`),
      expect.stringContaining(`provider scim "${name}" belonged to owner "team-a"`),
    ])
    expect(audited).toContainEqual(expect.objectContaining({ action: 'update', fields: ['owner'] }))
    expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({ owner: 'team-b' })
    // It is ours now, and nothing changes any more.
    expect((await there.apply(entries, bo, conditions)).changes).toEqual([
      expect.objectContaining({ action: 'unchanged' }),
    ])
  })
})
