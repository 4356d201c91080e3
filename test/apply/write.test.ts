import { describe, expect, inject, test } from 'vitest'
import { type Write, write } from '../../src/apply/write.ts'
import { transaction } from '../../src/db/client.ts'
import { failureCode } from '../../src/db/errors.ts'
import { ErrorList, Problem } from '../../src/errors.ts'
import { uuid7 } from '../../src/ids.ts'
import { type Actor, system } from '../../src/permissions.ts'
import { people } from '../rights/people.ts'
import { name, rows, sql, until, versions } from '../support/kit.ts'
import { bench } from './engine.ts'

const there = await bench()
const crowd = people(there)

const model = 'service_core.group'
const lockTimedOut = '55P03'
const keyOf = async (_: unknown, key: string | number) => key

const create = (fields: unknown, actor: Actor = system, more: Partial<Write> = {}) =>
  write(
    there.db,
    there.engine,
    actor,
    { model, mode: { create: true }, fields, requestId: `r-${name}`, ...more },
    keyOf,
  )
const change = (key: string | number, fields: unknown, actor: Actor = system, more: Partial<Write> = {}) =>
  write(there.db, there.engine, actor, { model, mode: { change: key }, fields, requestId: `r-${name}`, ...more }, keyOf)

/** The audit rows, without what they have for histories. */
async function audited() {
  const omit = { pk: true, at: true, objects: true } as const
  const found = await there.db.auditRow.findMany({ where: { requestId: `r-${name}` }, omit })
  return found.map((row) => ({
    ...row,
    changes: (row.changes as object[]).map((each) => ({ ...each, object: undefined })),
  }))
}

test('a new row has the sent values and defaults, and an audit row without values', async () => {
  const ada = await crowd.user({ permissions: ['add_group'] })
  const pk = await create({ name, attributes: { secret: 'kept apart' } }, ada)
  expect(await there.db.group.findUnique({ where: { pk: String(pk) } })).toMatchObject({
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
          fields: ['name', 'is_superuser', 'parent', 'users', 'roles', 'attributes'],
        },
      ],
      requestId: `r-${name}`,
      runId: null,
    },
  ])
})

test('a change writes only what differs, also of links', async () => {
  const [a, b, c] = [await crowd.user(), await crowd.user(), await crowd.user()]
  const pk = String(await create({ name, users: [a.pk, b.pk], attributes: { x: 1 } }))
  const links = () =>
    rows<{ user: number; version: string }>(
      there.db,
      sql`SELECT user_pk AS user, xmin::text AS version FROM memberships WHERE group_pk = ${pk} ORDER BY 1`,
    )
  const [first] = await links()
  await change(pk, { users: [c.pk, a.pk] })
  const after = await links()
  expect(after.map(({ user }) => user)).toEqual([a.pk, c.pk])
  expect(after[0]).toEqual(first)
  const group = await there.db.group.findUniqueOrThrow({ where: { pk } })
  expect(group).toMatchObject({ name, attributes: { x: 1 } })
  expect((await audited()).map(({ action, changes }) => [action, changes])).toEqual([
    ['create', expect.anything()],
    ['update', [{ model, key: pk, action: 'update', fields: ['users'] }]],
  ])
})

test('an unchanged row is not written or audited', async () => {
  const pk = await create({ name })
  const before = await versions(there.db)
  expect(await change(pk, { name, users: [], parent: null })).toBe(pk)
  expect(await change(pk, {})).toBe(pk)
  expect(await versions(there.db)).toEqual(before)
  expect(await audited()).toHaveLength(1)
})

test('while impersonating, the audit row names the effective and the real user', async () => {
  const ada = await crowd.user({ permissions: ['impersonate'] })
  const bob = await crowd.user({ permissions: ['add_group'] })
  await create({ name }, { ...bob, impersonator: ada })
  expect(await audited()).toMatchObject([
    { actorPk: bob.pk, actorName: bob.username, realPk: ada.pk, realName: ada.username },
  ])
})

describe('a refused write writes nothing', () => {
  test('all errors at once, by field as in the body', async () => {
    await create({ name })
    const before = await versions(there.db)
    const textErrors = new ErrorList()
    textErrors.add(['attributes', 'a'], 'invalid_text', 'May not hold the NUL character.')
    const fields = { nam: 1, name, parent: uuid7(), users: [9_999_999, 'x'], is_superuser: 'yes', num_pk: 7 }
    await expect(create(fields, system, { textErrors })).rejects.toMatchObject({
      code: 'invalid',
      fields: {
        nam: ['Unknown field. Did you mean name?'],
        name: [`"${name}" is taken by group "${name}".`],
        parent: [expect.stringContaining('There is no group with the key')],
        users: { 0: ['There is no user with the key 9999999.'], 1: ['No user is called "x".'] },
        is_superuser: ['Must be true or false.'],
        attributes: { a: ['May not hold the NUL character.'] },
      },
    })
    expect(await versions(there.db)).toEqual(before)
  })

  test.each([[[]], [null], ['text'], [7], [undefined]])('a body that is not an object: %j', async (body) => {
    const fields = { non_field_errors: ['Must be an object.'], name: ['This field is required.'] }
    await expect(create(body)).rejects.toMatchObject({ code: 'invalid', fields })
  })

  test('read-only fields are ignored, for a new row and for a change', async () => {
    const pk = await create({ name, pk: uuid7(), users_obj: [], parent_name: 'x' })
    expect(await change(pk, { pk, num_pk: 1, roles_obj: null })).toBe(pk)
  })

  test('a change of a row that does not exist', async () => {
    await expect(change(uuid7(), { name })).rejects.toMatchObject({ code: 'not_found' })
    expect(await there.db.group.count({ where: { name } })).toBe(0)
  })

  test('without the permission, and no other error is reported', async () => {
    const ada = await crowd.user({ permissions: ['view_group'] })
    const why = `You may not create group "${name}": the permission add_group is missing.`
    await expect(create({ name, nam: 1 }, ada)).rejects.toMatchObject({ code: 'permission_denied', message: why })
    const pk = await create({ name })
    await expect(change(pk, {}, ada)).rejects.toMatchObject({ code: 'permission_denied' })
    await expect(change(pk, { is_superuser: true }, ada)).rejects.toMatchObject({ code: 'permission_denied' })
  })
})

describe('concurrent writes', () => {
  test('of several requests for one name, one gets it and the others get an error of the field', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, () => create({ name })))
    const lost = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(lost).toHaveLength(11)
    for (const { reason } of lost)
      expect(reason).toMatchObject({
        code: 'invalid',
        fields: { name: [expect.stringContaining('is taken by group')] },
      })
    expect(await there.db.group.count({ where: { name } })).toBe(1)
    expect(await audited()).toHaveLength(1)
  })

  test('a referenced row that is deleted meanwhile is an error of the field', async () => {
    const { pk } = await crowd.user()
    const gone = transaction(there.db, async (tx) => {
      await rows(tx, sql`DELETE FROM users WHERE pk = ${pk}`)
      writing = create({ name, users: [pk] }).catch((error: unknown) => error)
      await until('the write to wait for the delete', async () => {
        const waiting = await rows(
          there.db,
          sql`SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
        )
        return waiting.length > 0
      })
    })
    let writing: Promise<unknown> = Promise.resolve()
    await gone
    expect(await writing).toMatchObject({
      code: 'invalid',
      fields: { users: { 0: [`There is no user with the key ${pk}.`] } },
    })
  })

  test('colliding writes of eight clients all succeed, because collisions are retried', async () => {
    const pks = await Promise.all(Array.from({ length: 4 }, (_, index) => create({ name: `${name}-${index}` })))
    const users = [await crowd.user(), await crowd.user(), await crowd.user()].map(({ pk }) => pk)
    const one = async (index: number, tries = 20): Promise<void> => {
      const pk = pks[index % pks.length] ?? ''
      try {
        await change(pk, { users: users.slice(index % 3), attributes: { index }, parent: null })
      } catch (error) {
        // Eight clients on few rows: on a busy machine one may wait longer than the product waits for a lock.
        if (tries === 1 || !(error instanceof Problem) || failureCode(error.cause) !== lockTimedOut) throw error
        await one(index, tries - 1)
      }
    }
    const each = 40 * inject('rounds')
    // A connection for each client: none waits for one.
    const clients = Array.from({ length: 8 }, async (_, client) => {
      const failed: unknown[] = []
      for (let index = 0; index < each; index += 1)
        await one(each * client + index).catch((error) => failed.push(error))
      return failed
    })
    expect((await Promise.all(clients)).flat()).toEqual([])
  })
})
