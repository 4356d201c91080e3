import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Write, write } from '../../src/blueprint/write.ts'
import { transaction } from '../../src/db/client.ts'
import { sql } from '../../src/db/sql.ts'
import { Faults } from '../../src/errors.ts'
import { uuid7 } from '../../src/ids.ts'
import { type Actor, system } from '../../src/permissions.ts'
import { versions } from '../support/contents.ts'
import { until } from '../support/until.ts'
import { bench } from './engine.ts'
import { people } from './people.ts'

const there = await bench()
const crowd = people(there)
let name: string
beforeEach(() => {
  name = randomUUID()
})

const model = 'service_core.group'
const keyOf = async (_: unknown, key: string | number) => key

const create = (members: unknown, actor: Actor = system, more: Partial<Write> = {}) =>
  write(
    there.db,
    there.engine,
    actor,
    { model, mode: { create: true }, members, requestId: `r-${name}`, ...more },
    keyOf,
  )
const change = (key: string | number, members: unknown, actor: Actor = system, more: Partial<Write> = {}) =>
  write(
    there.db,
    there.engine,
    actor,
    { model, mode: { change: key }, members, requestId: `r-${name}`, ...more },
    keyOf,
  )

const audited = () =>
  there.db.prisma.auditRow.findMany({ where: { requestId: `r-${name}` }, omit: { pk: true, at: true } })

test('a new row gets what was sent and the defaults of the rest, and an audit row without values', async () => {
  const ada = await crowd.user({ permissions: ['add_group'] })
  const pk = await create({ name, attributes: { secret: 'kept apart' } }, ada)
  expect(await there.db.prisma.group.findUnique({ where: { pk: String(pk) } })).toMatchObject({
    name,
    isSuperuser: false,
    parentPk: null,
    attributes: { secret: 'kept apart' },
  })
  expect(await audited()).toEqual([
    {
      actorPk: ada.pk,
      actorName: ada.username,
      realPk: null,
      realName: null,
      action: 'create',
      changes: [
        {
          model,
          key: pk,
          action: 'create',
          members: ['name', 'is_superuser', 'parent', 'users', 'roles', 'attributes'],
        },
      ],
      requestId: `r-${name}`,
      runId: null,
    },
  ])
})

test('a change writes what differs and nothing else, links as a difference', async () => {
  const [a, b, c] = [await crowd.user(), await crowd.user(), await crowd.user()]
  const pk = String(await create({ name, users: [a.pk, b.pk], attributes: { x: 1 } }))
  const links = () =>
    there.db.query<{ user: number; version: string }>(
      sql`SELECT user_pk AS user, xmin::text AS version FROM memberships WHERE group_pk = ${pk} ORDER BY 1`,
    )
  const [first] = await links()
  await change(pk, { users: [c.pk, a.pk] })
  const after = await links()
  expect(after.map(({ user }) => user)).toEqual([a.pk, c.pk])
  expect(after[0]).toEqual(first)
  const group = await there.db.prisma.group.findUniqueOrThrow({ where: { pk } })
  expect(group).toMatchObject({ name, attributes: { x: 1 } })
  expect((await audited()).map(({ action, changes }) => [action, changes])).toEqual([
    ['create', expect.anything()],
    ['update', [{ model, key: pk, action: 'update', members: ['users'] }]],
  ])
})

test('what is as it was is not written, nor audited', async () => {
  const pk = await create({ name })
  const before = await versions(there.db)
  expect(await change(pk, { name, users: [], parent: null })).toBe(pk)
  expect(await change(pk, {})).toBe(pk)
  expect(await versions(there.db)).toEqual(before)
  expect(await audited()).toHaveLength(1)
})

test('while somebody acts as another, the audit row names both', async () => {
  const ada = await crowd.user({ permissions: ['impersonate'] })
  const bob = await crowd.user({ permissions: ['add_group'] })
  await create({ name }, { ...bob, impersonator: ada })
  expect(await audited()).toMatchObject([
    { actorPk: bob.pk, actorName: bob.username, realPk: ada.pk, realName: ada.username },
  ])
})

describe('what is refused leaves nothing behind', () => {
  test('every fault at once, by the member as the body has it', async () => {
    await create({ name })
    const before = await versions(there.db)
    const textFaults = new Faults()
    textFaults.add(['attributes', 'a'], 'May not hold the NUL character.')
    const members = { nam: 1, name, parent: uuid7(), users: [9_999_999, 'x'], is_superuser: 'yes', num_pk: 7 }
    await expect(create(members, system, { textFaults })).rejects.toMatchObject({
      code: 'invalid',
      fields: {
        nam: ['Unknown member. Did you mean name?'],
        name: [`"${name}" is taken by group "${name}".`],
        parent: [expect.stringContaining('There is no group with the key')],
        users: { 0: ['There is no user with the key 9999999.'], 1: ['Must be a whole number.'] },
        is_superuser: ['Must be true or false.'],
        attributes: { a: ['May not hold the NUL character.'] },
      },
    })
    expect(await versions(there.db)).toEqual(before)
  })

  test.each([[[]], [null], ['text'], [7], [undefined]])('a body that is no object: %j', async (members) => {
    const fields = { non_field_errors: ['Must be an object.'], name: ['This member is required.'] }
    await expect(create(members)).rejects.toMatchObject({ code: 'invalid', fields })
  })

  test('what is only shown is read over, on the way in and on the way back', async () => {
    const pk = await create({ name, pk: uuid7(), users_obj: [], parent_name: 'x' })
    expect(await change(pk, { pk, num_pk: 1, roles_obj: null })).toBe(pk)
  })

  test('a change of nothing', async () => {
    await expect(change(uuid7(), { name })).rejects.toMatchObject({ code: 'not_found' })
    expect(await there.db.prisma.group.count({ where: { name } })).toBe(0)
  })

  test('without the permission, of which alone is told', async () => {
    const ada = await crowd.user({ permissions: ['view_group'] })
    const why = `You may not create group "${name}": the permission add_group is missing.`
    await expect(create({ name, nam: 1 }, ada)).rejects.toMatchObject({ code: 'permission_denied', message: why })
    const pk = await create({ name })
    await expect(change(pk, {}, ada)).rejects.toMatchObject({ code: 'permission_denied' })
    await expect(change(pk, { is_superuser: true }, ada)).rejects.toMatchObject({ code: 'permission_denied' })
  })
})

describe('others who write at the same time', () => {
  test('of those who take one name, one has it and the others are told the member', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, () => create({ name })))
    const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(lost).toHaveLength(11)
    for (const { reason } of lost)
      expect(reason).toMatchObject({
        code: 'invalid',
        fields: { name: [expect.stringContaining('is taken by group')] },
      })
    expect(await there.db.prisma.group.count({ where: { name } })).toBe(1)
    expect(await audited()).toHaveLength(1)
  })

  test('a row that is referred to and deleted meanwhile is a fault of the member', async () => {
    const { pk } = await crowd.user()
    const gone = transaction(there.db, async (tx) => {
      await tx.query(sql`DELETE FROM users WHERE pk = ${pk}`)
      writing = create({ name, users: [pk] }).catch((error: unknown) => error)
      await until(
        async () => {
          const waiting = await there.db.query(
            sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
          )
          return waiting.length > 0
        },
        { what: 'the write to wait for the delete' },
      )
    })
    let writing: Promise<unknown> = Promise.resolve()
    await gone
    expect(await writing).toMatchObject({
      code: 'invalid',
      fields: { users: { 0: [`There is no user with the key ${pk}.`] } },
    })
  })

  test('two thousand crossing writes of twenty clients all end well: a collision is tried again', async () => {
    const pks = await Promise.all(Array.from({ length: 4 }, (_, index) => create({ name: `${name}-${index}` })))
    const users = [await crowd.user(), await crowd.user(), await crowd.user()].map(({ pk }) => pk)
    const one = (index: number) => {
      const pk = pks[index % pks.length] ?? ''
      return change(pk, { users: users.slice(index % 3), attributes: { index }, parent: null })
    }
    // As many clients at a time as find a connection within the time that the product waits for one.
    const clients = Array.from({ length: 20 }, async (_, client) => {
      const failed: unknown[] = []
      for (let turn = 0; turn < 100; turn += 1) await one(100 * client + turn).catch((error) => failed.push(error))
      return failed
    })
    expect((await Promise.all(clients)).flat()).toEqual([])
  }, 60_000)
})
