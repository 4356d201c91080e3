import { describe, expect, test } from 'vitest'
import { sql } from '../../src/db/sql.ts'
import { sha256 } from '../../src/ids.ts'
import { actorByToken } from '../../src/models/actor.ts'
import type { Actor } from '../../src/permissions.ts'
import { bench } from './engine.ts'
import { absent, people, tokenEntry } from './people.ts'

const there = await bench()
const crowd = people(there)

async function made(user: number, attrs: Record<string, unknown> = {}): Promise<string> {
  const { changes } = await there.apply([tokenEntry(null, { user, ...attrs })])
  return String(changes[0]?.key)
}
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const token = (pk: string) => there.db.prisma.token.findUniqueOrThrow({ where: { pk } })

test('its secret is made up, kept as a digest and sealed, and the engine tells it to nobody', async () => {
  const ada = await crowd.user()
  const entry = { ...tokenEntry(null, { user: ada.pk }), id: 'token' }
  const result = await there.apply([entry], ada)
  expect(result.generated).toEqual({})
  const pk = String(result.changes[0]?.key)
  const { sealedKey, keyHash } = await token(pk)
  const place = { table: 'tokens', row: pk, column: 'sealed_key' }
  const secret = there.engine.keyring.open(sealedKey ?? '', place)
  expect(secret).toMatch(/^gw_a_[0-9A-Za-z]{36}$/)
  expect(Buffer.from(keyHash)).toEqual(sha256(secret))
  expect(await actorByToken(there.db, secret)).toMatchObject({ pk: ada.pk })
  expect(JSON.stringify(result)).not.toContain(secret)
})

test('one that says nothing expires in 30 days, by the clock of the database', async () => {
  const pk = await made((await crowd.user()).pk)
  const [row] = await there.db.query<{ left: number }>(
    sql`SELECT extract(epoch FROM expires - now())::float8 / 86400 AS left FROM tokens WHERE pk = ${pk}`,
  )
  expect(row?.left).toBeCloseTo(30, 2)
  expect(await token(pk)).toMatchObject({ intent: 'api', expiring: true, managed: null, description: '' })
})

describe('whose it is', () => {
  test('for oneself nothing is needed, to make, change or delete it', async () => {
    const ada = await crowd.user()
    const entry = tokenEntry(null, { user: ada.pk })
    await crowd.allowed(ada, entry)
    await crowd.allowed(ada, { ...entry, attrs: { description: 'mine' } })
    await crowd.allowed(ada, absent(entry))
  })

  test('for another it needs add_token, change_token or delete_token', async () => {
    const [ada, bob] = [await crowd.user(), await crowd.user()]
    const entry = tokenEntry(null, { user: bob.pk })
    await crowd.refused(ada, entry, 'the permission add_token is missing')
    await crowd.allowed(await crowd.user({ permissions: ['add_token'] }), entry)
    const changed = { ...entry, attrs: { description: 'x' } }
    await crowd.refused(ada, changed, 'the permission change_token is missing')
    await crowd.allowed(await crowd.user({ permissions: ['change_token'] }), changed)
    await crowd.refused(ada, absent(entry), 'the permission delete_token is missing')
    await crowd.allowed(await crowd.user({ permissions: ['delete_token'] }), absent(entry))
  })

  test('for somebody with more rights than the caller it is not made, or made to last', async () => {
    const ada = await crowd.user({ permissions: ['add_token', 'change_token'] })
    const root = await crowd.user({ superuser: true })
    const bob = await crowd.user({ permissions: ['view_user'] })
    await crowd.refused(ada, tokenEntry(null, { user: root.pk }), 'its user has superuser rights')
    await crowd.refused(ada, tokenEntry(null, { user: bob.pk }), 'its user has the permission view_user')
    const pk = await made(bob.pk, { intent: 'app_password' })
    for (const change of [{ expires: inDays(99) }, { intent: 'api' }])
      await crowd.refused(ada, tokenEntry(pk, change), 'its user has the permission view_user')
    await crowd.allowed(ada, tokenEntry(pk, { description: 'x' }))
  })

  test('it stays with its user, whoever asks (CVE-2024-37905: a PATCH moved a token to another user)', async () => {
    const [ada, bob] = [await crowd.user({ permissions: ['change_token', 'add_token'] }), await crowd.user()]
    const root = await crowd.user({ superuser: true })
    const [mine, his] = [await made(ada.pk), await made(bob.pk)]
    const message = 'A token stays with its user: leave this member out.'
    await crowd.faulty(ada, tokenEntry(mine, { user: root.pk }), 'user', message)
    await crowd.faulty(ada, tokenEntry(his, { user: ada.pk }), 'user', message)
    await crowd.faulty(root, tokenEntry(his, { user: root.pk }), 'user', message)
    await crowd.allowed(ada, tokenEntry(mine, { user: ada.pk, description: 'the same' }))
  })

  test('somebody who acts as another has nothing of his own: he needs the permission himself', async () => {
    const bob = await crowd.user()
    const as = async (...permissions: string[]): Promise<Actor> => ({
      ...bob,
      impersonator: await crowd.user({ permissions: ['impersonate', ...permissions] }),
    })
    const entry = tokenEntry(null, { user: bob.pk })
    const changed = { ...entry, attrs: { description: 'x' } }
    await crowd.refused(await as(), entry, 'the permission add_token is missing')
    await crowd.allowed(await as('add_token'), entry)
    await crowd.refused(await as('add_token'), changed, 'the permission change_token is missing')
    await crowd.allowed(await as('change_token'), changed)
    await crowd.refused(await as('add_token'), absent(entry), 'the permission delete_token is missing')
    await crowd.allowed(await as('delete_token'), absent(entry))
  })

  test('somebody who acts as another makes no token with more rights than his own', async () => {
    const bob = await crowd.user({ permissions: ['view_user'] })
    const ada = await crowd.user({ permissions: ['impersonate', 'add_token'] })
    const asBob: Actor = { ...bob, impersonator: ada }
    const why = 'its user has the permission view_user, and the caller has not'
    await crowd.refused(asBob, tokenEntry(null, { user: bob.pk }), why)
    const asHim: Actor = { ...bob, impersonator: await crowd.user({ superuser: true }) }
    await crowd.allowed(asHim, tokenEntry(null, { user: bob.pk }))
  })
})

describe('what only a superuser may', () => {
  test.each(['verification', 'recovery'])('the intent %s', async (intent) => {
    const ada = await crowd.user()
    const why = `only a superuser may make it a ${intent} token`
    await crowd.refused(ada, tokenEntry(null, { user: ada.pk, intent }), why)
    await crowd.refused(ada, tokenEntry(await made(ada.pk), { intent }), why)
    await crowd.allowed(await crowd.user({ superuser: true }), tokenEntry(null, { user: ada.pk, intent }))
  })

  test('one that does not expire', async () => {
    const ada = await crowd.user()
    const root = await crowd.user({ superuser: true })
    const why = 'only a superuser may make a token that does not expire'
    await crowd.refused(ada, tokenEntry(null, { user: ada.pk, expiring: false }), why)
    const mine = await made(ada.pk)
    await crowd.refused(ada, tokenEntry(mine, { expiring: false }), why)
    await crowd.allowed(root, tokenEntry(mine, { expiring: false }))
    expect(await token(mine)).toMatchObject({ expiring: false, expires: null })
    await crowd.allowed(ada, tokenEntry(mine, { description: 'still does not' }))
    await crowd.allowed(ada, tokenEntry(mine, { expiring: true }))
    expect((await token(mine)).expires).toBeInstanceOf(Date)
  })

  test('managed', async () => {
    const ada = await crowd.user()
    const message = 'Only a superuser may set this member.'
    await crowd.faulty(ada, tokenEntry(null, { user: ada.pk, managed: 'x' }), 'managed', message)
    const mine = await made(ada.pk, { managed: 'gatewright/tests' })
    await crowd.faulty(ada, tokenEntry(mine, { managed: null }), 'managed', message)
    await crowd.allowed(ada, tokenEntry(mine, { description: 'x' }))
    await crowd.allowed(await crowd.user({ superuser: true }), tokenEntry(mine, { managed: null }))
  })

  test('more than TOKEN_MAX_DAYS ahead', async () => {
    const ada = await crowd.user()
    const message = 'Must be at most 365 days ahead.'
    await crowd.faulty(ada, tokenEntry(null, { user: ada.pk, expires: inDays(365.1) }), 'expires', message)
    const mine = await made(ada.pk)
    await crowd.faulty(ada, tokenEntry(mine, { expires: inDays(366) }), 'expires', message)
    await crowd.allowed(ada, tokenEntry(mine, { expires: inDays(364.9) }))
    await crowd.allowed(await crowd.user({ superuser: true }), tokenEntry(mine, { expires: inDays(4_000) }))
    await crowd.allowed(ada, tokenEntry(mine, { description: 'still there' }))
  })
})

describe('when it expires', () => {
  test('is in the future, and nowhere when it does not', async () => {
    const root = await crowd.user({ superuser: true })
    const of = (attrs: Record<string, unknown>) => tokenEntry(null, { user: root.pk, ...attrs })
    await crowd.faulty(root, of({ expires: inDays(-0.01) }), 'expires', 'Must be in the future.')
    const nowhere = 'A token that does not expire has no such time.'
    await crowd.faulty(root, of({ expires: inDays(1), expiring: false }), 'expires', nowhere)
  })

  test('taken away, it is not made up anew behind the caller’s back', async () => {
    const root = await crowd.user({ superuser: true })
    const pk = await made(root.pk, { expires: inDays(300) })
    const before = await token(pk)
    const needed = 'A token that expires needs a time: leave this member out to keep the one it has.'
    await crowd.faulty(root, tokenEntry(pk, { expires: null }), 'expires', needed)
    await crowd.faulty(root, tokenEntry(pk, { expires: null, expiring: true }), 'expires', needed)
    expect(await token(pk)).toEqual(before)
    await crowd.allowed(root, tokenEntry(pk, { expires: null, expiring: false }))
    await crowd.allowed(root, tokenEntry(pk, { expires: null, expiring: true }))
  })

  test('a change resets nothing, of an expired one neither', async () => {
    const ada = await crowd.user()
    const pk = await made(ada.pk, { intent: 'app_password', description: 'd', expires: inDays(9) })
    await there.db.query(sql`UPDATE tokens SET expires = now() - interval '1 day' WHERE pk = ${pk}`)
    const before = await token(pk)
    await crowd.allowed(ada, tokenEntry(pk, { identifier: 'another-name' }))
    expect(await token(pk)).toEqual({ ...before, identifier: 'another-name' })
  })

  test('sent as it is, in any notation, it is unchanged', async () => {
    const ada = await crowd.user()
    const pk = await made(ada.pk, { expires: inDays(10).replace('Z', '+00:00') })
    const expires = (await token(pk)).expires?.toISOString() ?? ''
    const { changes } = await there.apply([tokenEntry(pk, { expires, expiring: true })], ada)
    expect(changes).toEqual([])
    expect((await there.apply([tokenEntry(pk, { expires: expires.replace('Z', '+00:00') })], ada)).changes).toEqual([])
  })
})
