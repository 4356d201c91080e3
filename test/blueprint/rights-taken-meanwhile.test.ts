import { beforeEach, describe, expect, test } from 'vitest'
import { lock } from '../../src/blueprint/perform.ts'
import { lockRights } from '../../src/blueprint/rights.ts'
import { write } from '../../src/blueprint/write.ts'
import { type Tx, transaction } from '../../src/db/client.ts'
import { sql } from '../../src/db/sql.ts'
import type { Actor } from '../../src/permissions.ts'
import { versions } from '../support/contents.ts'
import { until } from '../support/until.ts'
import { bench } from './engine.ts'
import { groupEntry, people, type Somebody } from './people.ts'

/** Whoever waits for others who decide about rights is judged by what they left him, not by what he came with. */

const there = await bench()
const crowd = people(there)
let jonas: Somebody
let bob: Somebody
beforeEach(async () => {
  jonas = await crowd.user({ superuser: true })
  bob = await crowd.user()
})

const lose = ({ own }: Somebody) => sql`DELETE FROM memberships WHERE group_pk = ${own}`
const deactivate = ({ pk }: Somebody) => sql`UPDATE users SET is_active = false WHERE pk = ${pk}`

/** Begins `work` while somebody else holds a lock it needs, who does `change` before he lets go. */
async function meanwhile(hold: (tx: Tx) => void, work: () => Promise<unknown>, change: ReturnType<typeof sql>) {
  const before: Promise<unknown>[] = []
  await transaction(there.db, async (tx) => {
    hold(tx)
    await tx.query(sql`SELECT 1`)
    before.push(work().catch((error: unknown) => error))
    const waiting = sql`SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()`
    await until(async () => (await there.db.query(waiting)).length > 0, { what: 'the write to wait' })
    await tx.query(change)
  })
  const [outcome] = await Promise.all(before)
  return outcome
}

const join = (actor: Actor, group: string) => () =>
  write(
    there.db,
    there.engine,
    actor,
    { model: 'service_core.group', mode: { change: group }, members: { users: [bob.pk] }, requestId: 'r' },
    async () => 'written',
  )

describe('a superuser who waits to write', () => {
  test('and is none any longer may no more than others', async () => {
    const admins = await crowd.group({ superuser: true })
    const outcome = await meanwhile(lockRights, join(jonas, admins), lose(jonas))
    expect(outcome).toMatchObject({ code: 'permission_denied' })
    expect(await there.db.query(sql`SELECT 1 FROM memberships WHERE group_pk = ${admins}`)).toEqual([])
  })

  test('and is no longer active is nobody', async () => {
    const group = await crowd.group()
    const outcome = await meanwhile(lockRights, join(jonas, group), deactivate(jonas))
    expect(outcome).toMatchObject({ code: 'not_authenticated' })
  })

  test('as somebody else may not when neither may any longer', async () => {
    const helped = await crowd.user({ permissions: ['change_group', 'add_user_to_group'] })
    const group = await crowd.group()
    const acting = { ...helped, impersonator: jonas }
    expect(await meanwhile(lockRights, join(acting, group), lose(jonas))).toMatchObject({
      code: 'permission_denied',
      message: `You may no longer act as ${helped.username}.`,
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

  test('his blueprint neither', async () => {
    const admins = await crowd.group({ superuser: true })
    const apply = () => there.apply([groupEntry(admins, { users: [bob.pk] })], jonas)
    expect(await meanwhile(lockRights, apply, lose(jonas))).toMatchObject({ reason: 'permission_denied' })
    const root = await crowd.user({ superuser: true })
    const asRoot = () => there.apply([groupEntry(admins, { users: [bob.pk] })], root)
    expect(await meanwhile(lockRights, asRoot, deactivate(root))).toMatchObject({ reason: 'permission_denied' })
    expect(await there.db.query(sql`SELECT 1 FROM memberships WHERE group_pk = ${admins}`)).toEqual([])
  })
})

test('nor is a token made to last for ever by whoever lost the right to while he waited for it', async () => {
  await there.apply([
    { model: 'service_core.token', identifiers: { identifier: `of-${bob.pk}` }, attrs: { user: bob.pk } },
  ])
  const [token] = await there.db.query<{ pk: string }>(sql`SELECT pk FROM tokens WHERE user_pk = ${bob.pk}`)
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
  const request = { model: model.name, mode: { change: pk }, members: { expiring: false }, requestId: 'r' }
  const outcome = await meanwhile(
    (tx) => lock(tx, [step]),
    () => write(there.db, there.engine, jonas, request, async () => 'written'),
    sql`UPDATE groups SET is_superuser = false WHERE pk = ${jonas.own}`,
  )
  expect(outcome).toMatchObject({ code: 'permission_denied' })
  expect((await versions(there.db)).tokens).toEqual(before.tokens)
})
