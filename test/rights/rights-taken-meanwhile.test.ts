import { beforeEach, describe, expect, test } from 'vitest'
import { lock } from '../../src/apply/execute.ts'
import { write } from '../../src/apply/write.ts'
import { transaction } from '../../src/db/client.ts'
import { type EngineTx, withEngine } from '../../src/db/engine-tx.ts'
import type { Actor } from '../../src/permissions.ts'
import { lockRights } from '../../src/rights/rights.ts'
import { bench } from '../apply/engine.ts'
import { execute, rows, sql, until, versions } from '../support/kit.ts'
import { groupEntry, type Person, people, roleEntry } from './people.ts'

/** A request that waits for the rights lock is decided on the rights that the caller has afterwards. */

const there = await bench()
const crowd = people(there)
let jonas: Person
let bob: Person
beforeEach(async () => {
  jonas = await crowd.user({ superuser: true })
  bob = await crowd.user()
})

const lose = ({ own }: Person) => sql`DELETE FROM memberships WHERE group_pk = ${own}`
const deactivate = ({ pk }: Person) => sql`UPDATE users SET is_active = false WHERE pk = ${pk}`

/** Starts `work` while another transaction holds a lock that it needs, and runs `change` there before it commits. */
async function meanwhile(hold: (tx: EngineTx) => void, work: () => Promise<unknown>, change: ReturnType<typeof sql>) {
  const before: Promise<unknown>[] = []
  await transaction(there.db, async (tx) => {
    await withEngine(tx, async (engineTx) => hold(engineTx))
    before.push(work().catch((error: unknown) => error))
    const waiting = sql`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()`
    await until('the write to wait', async () => (await rows(there.db, waiting)).length > 0)
    await execute(tx, change)
  })
  const [outcome] = await Promise.all(before)
  return outcome
}

const join = (actor: Actor, group: string) => () =>
  write(
    there.db,
    there.engine,
    actor,
    { model: 'service_core.group', mode: { change: group }, fields: { users: [bob.pk] }, requestId: 'r' },
    async () => 'written',
  )

describe('a superuser who waits to write, and meanwhile', () => {
  test('loses the flag, has no more rights than others', async () => {
    const admins = await crowd.group({ superuser: true })
    const outcome = await meanwhile(lockRights, join(jonas, admins), lose(jonas))
    expect(outcome).toMatchObject({ code: 'permission_denied' })
    expect(await rows(there.db, sql`SELECT 1 FROM memberships WHERE group_pk = ${admins}`)).toEqual([])
  })

  test('is deactivated, is not authenticated', async () => {
    const group = await crowd.group()
    const outcome = await meanwhile(lockRights, join(jonas, group), deactivate(jonas))
    expect(outcome).toMatchObject({ code: 'not_authenticated' })
  })

  test('may no longer impersonate, is denied', async () => {
    const helped = await crowd.user({ permissions: ['change_group', 'add_user_to_group'] })
    const group = await crowd.group()
    const asHelped = { ...helped, impersonator: jonas }
    expect(await meanwhile(lockRights, join(asHelped, group), lose(jonas))).toMatchObject({
      code: 'permission_denied',
      message: `You may no longer impersonate ${helped.username}.`,
    })
    const root = await crowd.user({ superuser: true })
    const asRoot = { ...helped, impersonator: root }
    expect(await meanwhile(lockRights, join(asRoot, group), deactivate(helped))).toMatchObject({
      code: 'permission_denied',
    })
    expect(await meanwhile(lockRights, join(asRoot, group), deactivate(root))).toMatchObject({
      code: 'not_authenticated',
    })
  })

  test('loses the flag or is deactivated, cannot apply a blueprint', async () => {
    const admins = await crowd.group({ superuser: true })
    const apply = () => there.apply([groupEntry(admins, { users: [bob.pk] })], jonas)
    expect(await meanwhile(lockRights, apply, lose(jonas))).toMatchObject({ reason: 'permission_denied' })
    const root = await crowd.user({ superuser: true })
    const asRoot = () => there.apply([groupEntry(admins, { users: [bob.pk] })], root)
    expect(await meanwhile(lockRights, asRoot, deactivate(root))).toMatchObject({ reason: 'permission_denied' })
    expect(await rows(there.db, sql`SELECT 1 FROM memberships WHERE group_pk = ${admins}`)).toEqual([])
  })
})

test('a group that gets a role while its new name waits is renamed only by a caller who holds it', async () => {
  const ada = await crowd.user({ permissions: ['change_group', 'change_role'] })
  const [group, role] = [await crowd.group(), await crowd.role(['view_user'])]
  const gets = sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${group}, ${role})`
  const rename = { model: 'service_core.group', mode: { change: group }, fields: { name: 'mine' }, requestId: 'r' }
  const byRequest = () => write(there.db, there.engine, ada, rename, async () => 'written')
  expect(await meanwhile(lockRights, byRequest, gets)).toMatchObject({ code: 'permission_denied' })
  const [other, filled] = [await crowd.group(), await crowd.role([])]
  const getsToo = sql`INSERT INTO group_roles (group_pk, role_pk) VALUES (${other}, ${role})`
  const byDocument = () => there.apply([groupEntry(other, { name: 'mine' })], ada)
  expect(await meanwhile(lockRights, byDocument, getsToo)).toMatchObject({ reason: 'permission_denied' })
  const fills = sql`UPDATE roles SET permissions = '{view_user}' WHERE pk = ${filled}`
  const renameRole = () => there.apply([roleEntry(filled, { name: 'mine' })], ada)
  expect(await meanwhile(lockRights, renameRole, fills)).toMatchObject({ reason: 'permission_denied' })
})

test('a caller who loses the superuser flag while waiting cannot make a token that does not expire', async () => {
  await there.apply([
    { model: 'service_core.token', identifiers: { identifier: `of-${bob.pk}` }, attrs: { user: bob.pk } },
  ])
  const [token] = await rows<{ pk: string }>(there.db, sql`SELECT pk FROM tokens WHERE user_pk = ${bob.pk}`)
  const pk = token?.pk ?? expect.fail('no token')
  const model = there.engine.registry.byName('service_core.token') ?? expect.fail('no model')
  const step = {
    id: undefined,
    model,
    state: 'present',
    identifiers: new Map([['pk', pk]]),
    attrs: new Map(),
    path: [],
  } as const
  const before = await versions(there.db)
  const request = { model: model.name, mode: { change: pk }, fields: { expiring: false }, requestId: 'r' }
  const outcome = await meanwhile(
    (tx) => lock(tx, [step]),
    () => write(there.db, there.engine, jonas, request, async () => 'written'),
    sql`UPDATE groups SET is_superuser = false WHERE pk = ${jonas.own}`,
  )
  expect(outcome).toMatchObject({ code: 'permission_denied' })
  expect((await versions(there.db)).tokens).toEqual(before.tokens)
})
