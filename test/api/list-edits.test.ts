import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Answer, answered, applied, applyPath, type Entry } from '../support/asker.ts'
import { aGroup, anApplication, aProvider, aUser, installation, named } from '../support/kit.ts'

/** `{"add": [...], "remove": [...]}` in place of a list of references. */

const groups = '/api/v3/core/groups/'
const on = await installation()
const { apply, plan, patch, runOf } = on.admin

const group = (name: string, attrs: object, id?: string): Entry => ({
  ...(id !== undefined && { id }),
  ...aGroup(name, attrs),
})
const membersOf = async (pk: string) =>
  (await on.db.membership.findMany({ where: { groupPk: pk } })).map(({ userPk }) => userPk).sort((a, b) => a - b)
const logs = (...lines: string[]) => ({ status: 200, json: { applied: true, logs: lines } })

/** A busy machine answers 503 to a request that waits for 19 others: it is sent again, as clients do. */
async function untilTaken(request: () => Promise<Answer>): Promise<void> {
  let answer = await request()
  while (answer.status === 503 || answer.status === 202) answer = await request()
  expect(answer).toMatchObject({ status: 200 })
}

/** A group with two members, and a third user. */
async function some() {
  const [ada, bob, eve] = [await on.make.user(), await on.make.user(), await on.make.user()]
  return { ada, bob, eve, ...(await on.make.group({ users: [ada.pk, bob.pk] })) }
}

describe('PATCH of a group', () => {
  test('adds and removes the members that it names, by key or name, and leaves the others', async () => {
    const { pk, ada, bob, eve } = await some()
    const url = `${groups}${pk}/`
    await answered(200, patch(url, { users: { add: [eve.username], remove: [bob.pk] } }), { users: [ada.pk, eve.pk] })
    const { headers } = await on.admin.get(url)
    expect(await patch(url, { users: { add: [eve.pk], remove: [bob.username] } })).toMatchObject({
      status: 200,
      headers: { etag: headers.etag },
    })
    expect(await patch(url, { users: { remove: [ada.pk] } })).toMatchObject({ json: { users: [eve.pk] } })
    expect(await patch(url, { users: { add: [] } })).toMatchObject({ json: { users: [eve.pk] } })
    expect(await patch(url, { users: [bob.pk] })).toMatchObject({ json: { users: [bob.pk] } })
  })

  test('20 at the same time: all 20 are done, by PATCH, and by documents of groups and of users', async () => {
    const [{ pk, name }, people] = [await on.make.group(), await Promise.all(Array.from({ length: 20 }, on.make.user))]
    const all = people.map((each) => each.pk).sort((a, b) => a - b)
    const atOnce = (change: (of: (typeof people)[number]) => Promise<Answer>) =>
      Promise.all(people.map((each) => untilTaken(() => change(each))))
    const add = (user: number) => patch(`${groups}${pk}/`, { users: { add: [user] } })
    const answers = await Promise.all(all.map(add))
    expect(answers.map(({ status }) => status)).toEqual(all.map(() => 200))
    expect(await membersOf(pk)).toEqual(all)
    await atOnce((each) => apply([group(name, { users: { remove: [each.username] } })]))
    expect(await membersOf(pk)).toEqual([])
    await atOnce((each) => apply([aUser(each.username, { groups: { add: [name] } })]))
    expect(await membersOf(pk)).toEqual(all)
    const [one = on.admin as never] = people
    await atOnce((each) => apply([aUser(one.username, { groups: { add: [each.group] } })]))
    expect(await on.db.membership.count({ where: { userPk: one.pk } })).toBe(21)
  })

  test('a new group has what is added', async () => {
    const { ada, bob } = await some()
    const name = `new-${randomUUID()}`
    await answered(201, on.admin.post(groups, { name, users: { add: [ada.pk], remove: [bob.pk] } }), {
      users: [ada.pk],
    })
  })

  test.each([
    [{}, 'users', 'Takes a list, or an object with add, remove or both.'],
    [{ addd: [1] }, 'users.addd', 'Unknown field. Did you mean add?'],
    [{ add: 1 }, 'users.add', 'Must be a list.'],
    [{ add: [1, 1] }, 'users.add', 'Must not hold a key twice.'],
    [{ add: [2147480000] }, 'users.add.0', 'There is no user with the key 2147480000.'],
    [{ add: [1], remove: [1] }, 'users.add.0', 'Stands in remove, too: leave one of the two out.'],
    [{ add: ['x'.repeat(300)] }, 'users.add.0', 'Must be at most 255 characters.'],
  ])('refuses %j', async (users, at, message) => {
    const { pk } = await on.make.group()
    const { status, json } = await patch(`${groups}${pk}/`, { users })
    const found = at.split('.').reduce<unknown>((value, name) => Object(value)[name], json)
    expect([status, found]).toEqual([400, [message]])
  })

  test('who is gone needs no removing: by key, by name, and in the document that deletes the user', async () => {
    const { pk, name, ada, bob, eve } = await some()
    for (const remove of [[2147480000], ['nobody-has-this-name'], [eve.pk, 'gone-as-well']])
      await answered(200, patch(`${groups}${pk}/`, { users: { remove } }), { users: [ada.pk, bob.pk] })
    const gone: object = { ...aUser(ada.username), state: 'absent' }
    const document = () => apply([group(name, { users: { remove: [ada.username] } }), gone as Entry])
    expect(await document()).toMatchObject({ status: 200, json: { applied: true } })
    const again = await applied(document())
    expect(again.text).not.toMatch(/updated|deleted/)
    expect(await membersOf(pk)).toEqual([bob.pk])
  })

  test('one user by key and by name in both lists is refused', async () => {
    const { pk, ada } = await some()
    await answered(400, patch(`${groups}${pk}/`, { users: { add: [ada.pk], remove: [ada.username] } }), {
      users: { add: { 0: [expect.stringContaining('Stands in remove')] } },
    })
  })

  test('takes the permissions of what it does', async () => {
    const { pk, bob, eve } = await some()
    const clerk = await on.make.user({ permissions: ['change_group', 'view_group', 'view_user'] })
    for (const users of [{ add: [eve.pk] }, { remove: [bob.pk] }])
      await answered(403, clerk.patch(`${groups}${pk}/`, { users }), {
        detail: expect.stringContaining('the permission add_user_to_group is missing'),
      })
    const { pk: role } = await on.make.role(['view_token'])
    const adder = await on.make.user({
      permissions: ['change_group', 'view_group', 'view_user', 'view_role', 'assign_role'],
    })
    await answered(403, adder.patch(`${groups}${pk}/`, { roles: { add: [role] } }), {
      detail: expect.stringContaining('view_token'),
    })
    await answered(409, patch(`${groups}${pk}/`, { roles: { add: [role] } }), {
      detail: expect.stringMatching(/would gain rights.*view_token/),
    })
    expect(await membersOf(pk)).not.toContain(eve.pk)
  })
})

describe('documents', () => {
  test('say what is added and removed, in plan, logs and changes; again: unchanged', async () => {
    const { pk, name, ada, bob, eve } = await some()
    const file = [group(name, { users: { add: [eve.username], remove: [bob.username] } })]
    const planned = await plan(file)
    expect(planned.logs).toEqual([`group "${name}" would be updated: users - "${bob.username}" + "${eve.username}"`])
    expect(await membersOf(pk)).toEqual([ada.pk, bob.pk])
    const applied = await apply(file, { ifMatch: planned.etag })
    expect(applied).toMatchObject(logs(`group "${name}" updated: users - "${bob.username}" + "${eve.username}"`))
    expect((await runOf(applied)).changes).toEqual((await runOf(planned)).changes)
    expect(await membersOf(pk)).toEqual([ada.pk, eve.pk])
    expect(await apply(file)).toMatchObject(logs(`group "${name}" unchanged`))
    expect(await apply(file, { query: 'reset=true' })).toMatchObject(logs(`group "${name}" unchanged`))
  })

  test('entries for one row are taken together; those that contradict are refused, with both places', async () => {
    const { pk, name, ada, bob, eve } = await some()
    const both = (first: object, second: object) =>
      [group(name, { users: first }, 'one'), group(pk, { users: second })].map((entry, index) =>
        index === 0 ? entry : { ...entry, identifiers: { pk } },
      )
    for (const send of [plan, apply])
      expect(await send(both({ add: [eve.pk] }, { remove: [bob.pk] }))).toMatchObject({ status: 200 })
    expect(await membersOf(pk)).toEqual([ada.pk, eve.pk])
    const contradicts = {
      status: 400,
      json: { entries: { 1: { users: [expect.stringContaining('Entry "one" names the same row')] } } },
    }
    for (const [first, second] of [
      [{ add: [bob.pk] }, { remove: [bob.username] }],
      [{ remove: [ada.pk] }, { add: [ada.pk] }],
      [[ada.pk, bob.pk], { add: [eve.pk] }],
      [{ remove: [eve.pk] }, [ada.pk, eve.pk]],
    ] as const)
      expect(await apply(both(first, second))).toMatchObject(contradicts)
    expect(await apply(both([ada.pk, bob.pk], { add: [bob.pk], remove: [eve.pk] }))).toMatchObject({ status: 200 })
    expect(await membersOf(pk)).toEqual([ada.pk, bob.pk])
  })

  test('items are tags, too: of new rows, and of rows that are found', async () => {
    const { pk, name, ada, bob } = await some()
    const username = `new-${randomUUID()}`
    const yaml = `version: 1
metadata: {name: tags}
entries:
  - {model: service_core.user, id: new, identifiers: {username: ${username}}}
  - model: service_core.group
    identifiers: {name: ${name}}
    attrs:
      users:
        add: [!KeyOf new, !If [true, ${ada.username}, x]]
        remove: [!Find [service_core.user, [username, ${bob.username}]]]
`
    expect((await apply(yaml)).json).toMatchObject({ applied: true })
    const { pk: made } = await on.db.user.findUniqueOrThrow({ where: { username } })
    expect(await membersOf(pk)).toEqual([ada.pk, made])
  })

  test('providers keep the property mappings that are not named, and their order; a limit holds for the result', async () => {
    const body = await named('oauth2', `edit-${randomUUID().slice(0, 8)}`)
    const mappings = (
      await on.db.propertyMapping.findMany({ where: { kind: 'oauth2' }, take: 3, orderBy: { name: 'asc' } })
    ).map(({ pk }) => pk)
    const [one = '', two = '', three = ''] = mappings
    const put = (property_mappings: unknown) =>
      on.admin.put(applyPath, { ...body, provider: { ...body.provider, property_mappings } })
    const stored = async () =>
      (await on.db.provider.findUniqueOrThrow({ where: { name: String(body.provider.name) } })).settings
    expect(await put([one, two])).toMatchObject({ status: 200 })
    expect(await put({ add: [three], remove: [one] })).toMatchObject({ status: 200 })
    expect(await stored()).toMatchObject({ property_mappings: [two, three] })
    expect(await put({ add: [two] })).toMatchObject({
      json: { logs: [expect.stringContaining('unchanged'), expect.stringContaining('unchanged')] },
    })
    await answered(400, put({ add: [randomUUID()] }), {
      provider: { property_mappings: { add: { 0: [expect.stringContaining('There is no')] } } },
    })
  })

  test('an application is given one more backchannel provider', async () => {
    const slug = `edit-${randomUUID().slice(0, 8)}`
    const scim = (name: string): Entry => ({
      ...aProvider('scim', name, { url: 'https://scim.example', token: 'x'.repeat(30) }),
    })
    const app = (backchannel_providers: unknown): Entry => ({
      ...anApplication(slug, { name: slug, backchannel_providers }),
    })
    expect(await apply([scim(`${slug}-1`), scim(`${slug}-2`), app([`${slug}-1`])])).toMatchObject({ status: 200 })
    const wanted = [app({ add: [`${slug}-2`] })]
    expect(await apply(wanted)).toMatchObject(logs(expect.stringContaining(`backchannel_providers + "${slug}-2"`)))
    expect(await apply(wanted)).toMatchObject(logs(expect.stringContaining('unchanged')))
    const count = () => on.db.backchannelProvider.count({ where: { application: { slug } } })
    expect(await count()).toBe(2)
    await apply([app({ remove: [`${slug}-1`] })])
    expect(await count()).toBe(1)
  })

  test('a list is as long as it may be: what would be longer is refused', async () => {
    const { username, pk } = await on.make.user()
    await on.db.group.createMany({
      data: Array.from({ length: 499 }, (_, index) => ({ pk: randomUUID(), name: `${username} ${index}` })),
    })
    const made = await on.db.group.findMany({ where: { name: { startsWith: username } } })
    await on.db.membership.createMany({ data: made.map((each) => ({ groupPk: each.pk, userPk: pk })) })
    const more = await on.make.group()
    await answered(400, apply([aUser(username, { groups: { add: [more.name] } })]), {
      entries: { 0: { groups: [expect.stringContaining('500')] } },
    })
    const [first] = made
    await answered(200, apply([aUser(username, { groups: { add: [more.name], remove: [first?.name] } })]))
  })

  test('a caller who may not view a row is not shown its other items', async () => {
    const { pk, name, eve } = await some()
    const blind = await on.make.user({ permissions: ['change_group', 'add_user_to_group', 'view_user'] })
    for (const send of [blind.plan, blind.apply]) {
      const answer = await answered(200, send([group(name, { users: { add: [eve.username] } })]))
      const { changes } = await runOf(answer)
      expect(JSON.stringify(changes)).toContain('"to":["')
      const [change] = changes
      expect(change?.fields).toEqual({ users: { from: { not_shown: true }, to: [eve.username] } })
    }
    expect(await membersOf(pk)).toContain(eve.pk)
  })
})
