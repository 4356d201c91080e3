import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { write } from '../../src/apply/write.ts'
import { reader } from '../../src/db/engine-tx.ts'
import { sha256 } from '../../src/ids.ts'
import type { Actor } from '../../src/permissions.ts'
import { actorOfToken } from '../../src/rights/actor.ts'
import { bench } from '../apply/engine.ts'
import { rows, sql } from '../support/sql.ts'
import { absent, people, roleEntry, tokenEntry } from './people.ts'

const there = await bench()
const crowd = people(there)

async function createToken(user: number, attrs: Record<string, unknown> = {}): Promise<string> {
  const { audited } = await there.apply([tokenEntry(null, { user, ...attrs })])
  return String(audited[0]?.key)
}
const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const token = (pk: string) => there.db.token.findUniqueOrThrow({ where: { pk } })

test('its secret is generated, stored as a digest and sealed, and never reported by the engine', async () => {
  const ada = await crowd.user()
  const entry = { ...tokenEntry(null, { user: ada.pk }), id: 'token' }
  const result = await there.apply([entry], ada)
  expect(result.generated).toEqual({})
  const pk = String(result.audited[0]?.key)
  const { sealedKey, keyHash } = await token(pk)
  const sealedPlace = { table: 'tokens', row: pk, column: 'sealed_key' }
  const secret = there.engine.keyring.open(sealedKey ?? '', sealedPlace)
  expect(secret).toMatch(/^gw_a_[0-9A-Za-z]{36}$/)
  expect(Buffer.from(keyHash)).toEqual(sha256(secret))
  expect((await actorOfToken(reader(there.db), { secret }))?.actor).toMatchObject({ pk: ada.pk })
  expect(JSON.stringify(result)).not.toContain(secret)
})

test('a caller whose token is bound to a stack makes tokens for that stack alone', async () => {
  const ada = await crowd.user({ permissions: ['add_token'] })
  const bound: Actor = { ...ada, ceiling: new Set(['add_token', 'stack:one']) }
  const entryFor = (...stacks: string[]) => [tokenEntry(null, { user: ada.pk, stacks, intent: 'api' })]
  const { audited } = await there.apply(entryFor('one'), bound, { stack: 'one' })
  expect((await token(String(audited[0]?.key))).stacks).toEqual(['one'])
  const refused = await there.refusal(entryFor('one', 'two'), bound, { stack: 'one' })
  expect(refused.logs.join()).toContain('is bound to stack "one": it makes none for "two"')
})

test('a token without expires expires in 30 days, by the clock of the database', async () => {
  const pk = await createToken((await crowd.user()).pk)
  const [row] = await rows<{ left: number }>(
    there.db,
    sql`SELECT extract(epoch FROM expires - now())::float8 / 86400 AS left FROM tokens WHERE pk = ${pk}`,
  )
  expect(row?.left).toBeCloseTo(30, 2)
  expect(await token(pk)).toMatchObject({ intent: 'api', expiring: true, managed: null, description: '' })
})

describe('its user', () => {
  test('needs no permission to create, change or delete it', async () => {
    const ada = await crowd.user()
    const entry = tokenEntry(null, { user: ada.pk })
    await crowd.allowed(ada, entry)
    await crowd.allowed(ada, { ...entry, attrs: { description: 'mine' } })
    await crowd.allowed(ada, absent(entry))
  })

  test('another caller needs add_token, change_token or delete_token', async () => {
    const [ada, bob] = [await crowd.user(), await crowd.user()]
    const entry = tokenEntry(null, { user: bob.pk })
    const none = 'the permission add_token, change_token or delete_token is missing'
    await crowd.refused(ada, entry, none)
    await crowd.allowed(await crowd.user({ permissions: ['add_token'] }), entry)
    const changed = { ...entry, attrs: { description: 'x' } }
    await crowd.allowed(await crowd.user({ permissions: ['change_token'] }), changed)
    for (const each of [changed, { ...entry, attrs: { user: ada.pk } }, absent(entry)])
      await crowd.refused(ada, each, none)
    await crowd.allowed(await crowd.user({ permissions: ['delete_token'] }), absent(entry))
  })

  test('a caller can neither create, change nor delete a token of a user with more rights', async () => {
    const ada = await crowd.user({ permissions: ['add_token', 'change_token', 'delete_token'] })
    const root = await crowd.user({ superuser: true })
    const bob = await crowd.user({ permissions: ['view_user'] })
    await crowd.refused(ada, tokenEntry(null, { user: root.pk }), 'its user has superuser rights')
    await crowd.refused(ada, tokenEntry(null, { user: bob.pk }), 'its user has the permission view_user')
    const pk = await createToken(bob.pk, { intent: 'app_password' })
    const changes = [{ expires: inDays(99) }, { expiring: true, expires: inDays(2) }, { description: 'x' }]
    for (const change of [...changes, { identifier: randomUUID() }, { intent: 'api' }, { user: ada.pk }])
      await crowd.refused(ada, tokenEntry(pk, change), 'its user has the permission view_user')
    await crowd.refused(ada, absent(tokenEntry(pk)), 'its user has the permission view_user')
    await crowd.refused(
      ada,
      tokenEntry(await createToken(root.pk), { description: 'x' }),
      'its user has superuser rights',
    )
    const cyd = await crowd.user({ permissions: ['change_token', 'delete_token', 'view_user'] })
    await crowd.allowed(cyd, tokenEntry(pk, { description: 'x' }))
    await crowd.allowed(cyd, absent(tokenEntry(pk)))
  })

  test('cannot be changed by any caller (CVE-2024-37905: a PATCH moved a token to another user)', async () => {
    const [ada, bob] = [await crowd.user({ permissions: ['change_token', 'add_token'] }), await crowd.user()]
    const root = await crowd.user({ superuser: true })
    const [mine, others] = [await createToken(ada.pk), await createToken(bob.pk)]
    const message = 'A token stays with its user: leave this field out.'
    await crowd.invalid(ada, tokenEntry(mine, { user: root.pk }), 'user', message)
    await crowd.invalid(ada, tokenEntry(others, { user: ada.pk }), 'user', message)
    await crowd.invalid(root, tokenEntry(others, { user: root.pk }), 'user', message)
    await crowd.allowed(ada, tokenEntry(mine, { user: ada.pk, description: 'the same' }))
  })

  test('an impersonating caller owns no tokens of the user: the real user needs the permission', async () => {
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

  test('an impersonating caller creates no token with more rights than the real user', async () => {
    const bob = await crowd.user({ permissions: ['view_user'] })
    const ada = await crowd.user({ permissions: ['impersonate', 'add_token'] })
    const asBob: Actor = { ...bob, impersonator: ada }
    const why = 'its user has the permission view_user, and the caller has not'
    await crowd.refused(asBob, tokenEntry(null, { user: bob.pk }), why)
    const underRoot: Actor = { ...bob, impersonator: await crowd.user({ superuser: true }) }
    await crowd.allowed(underRoot, tokenEntry(null, { user: bob.pk }))
    const made = await there.db.token.findMany({ where: { userPk: bob.pk }, select: { ceiling: true } })
    expect(made).toEqual([{ ceiling: ['view_user'] }])
  })
})

test('the holder of a token with a ceiling is not its user: it creates no token and no device beyond the ceiling', async () => {
  const held = ['add_totpdevice', 'delete_totpdevice']
  const bob = await crowd.user({ permissions: [...held, 'view_group'] })
  const holder: Actor = { ...bob, permissions: new Set(held), ceiling: new Set([...held, 'add_role']) }
  const why = 'its user has the permission view_group, and the caller has not'
  const device = { model: 'service_stages_totp.totpdevice', identifiers: { user: bob.pk, name: randomUUID() } }
  await crowd.refused(holder, tokenEntry(null, { user: bob.pk }), why)
  await crowd.refused(holder, tokenEntry(await createToken(bob.pk), { description: 'x' }), why)
  await crowd.refused(holder, absent(tokenEntry(await createToken(bob.pk))), why)
  await crowd.refused(holder, device, why)
  await crowd.allowed(bob, device)
  await crowd.refused(holder, absent(device), why)
  await crowd.refused(holder, roleEntry(null, {}), 'the permission add_role, change_role or delete_role is missing')
})

describe('only a superuser may set', () => {
  test.each(['verification', 'recovery'])('the intent %s', async (intent) => {
    const ada = await crowd.user()
    const why = `only a superuser may make it a ${intent} token`
    await crowd.refused(ada, tokenEntry(null, { user: ada.pk, intent }), why)
    await crowd.allowed(await crowd.user({ superuser: true }), tokenEntry(null, { user: ada.pk, intent }))
  })

  test('that it does not expire', async () => {
    const ada = await crowd.user()
    const root = await crowd.user({ superuser: true })
    const why = 'only a superuser may make a token that does not expire'
    await crowd.refused(ada, tokenEntry(null, { user: ada.pk, expiring: false }), why)
    const mine = await createToken(ada.pk)
    await crowd.refused(ada, tokenEntry(mine, { expiring: false }), why)
    await crowd.allowed(root, tokenEntry(mine, { expiring: false }))
    expect(await token(mine)).toMatchObject({ expiring: false, expires: null })
    await crowd.allowed(ada, tokenEntry(mine, { description: 'still does not' }))
    await crowd.allowed(ada, tokenEntry(mine, { expiring: true }))
    expect((await token(mine)).expires).toBeInstanceOf(Date)
  })

  test('managed', async () => {
    const ada = await crowd.user()
    const message = 'Only a superuser may set this field.'
    await crowd.invalid(ada, tokenEntry(null, { user: ada.pk, managed: 'x' }), 'managed', message)
    const mine = await createToken(ada.pk, { managed: 'gatewright/tests' })
    await crowd.invalid(ada, tokenEntry(mine, { managed: null }), 'managed', message)
    await crowd.allowed(ada, tokenEntry(mine, { description: 'x' }))
    await crowd.allowed(await crowd.user({ superuser: true }), tokenEntry(mine, { managed: null }))
  })

  test('an expiry more than TOKEN_MAX_DAYS from now', async () => {
    const ada = await crowd.user()
    const message = 'Must be at most 365 days from now.'
    await crowd.invalid(ada, tokenEntry(null, { user: ada.pk, expires: inDays(365.1) }), 'expires', message)
    const mine = await createToken(ada.pk)
    await crowd.invalid(ada, tokenEntry(mine, { expires: inDays(366) }), 'expires', message)
    await crowd.allowed(ada, tokenEntry(mine, { expires: inDays(364.9) }))
    await crowd.allowed(await crowd.user({ superuser: true }), tokenEntry(mine, { expires: inDays(4_000) }))
    await crowd.allowed(ada, tokenEntry(mine, { description: 'still there' }))
  })
})

test('its intent is fixed when it is created, for superusers too', async () => {
  const [ada, root] = [await crowd.user(), await crowd.user({ superuser: true })]
  const message = 'Is fixed when a token is created: leave this field out, or create another token.'
  for (const [was, is] of [
    ['app_password', 'api'],
    ['api', 'app_password'],
    ['api', 'recovery'],
  ]) {
    const pk = await createToken(ada.pk, { intent: was })
    for (const actor of [ada, root]) await crowd.invalid(actor, tokenEntry(pk, { intent: is }), 'intent', message)
    await crowd.allowed(ada, tokenEntry(pk, { intent: was, description: 'the same' }))
  }
})

describe('a user has at most 100 tokens', () => {
  const message = 'This user has 100 tokens that have not expired, the most that one may have: delete one first.'
  const fill = (user: number, count: number) =>
    rows(
      there.db,
      sql`
      INSERT INTO tokens (pk, identifier, user_pk, expiring, key_hash)
      SELECT gen_random_uuid(), gen_random_uuid()::text, ${user}, false, sha256(gen_random_uuid()::text::bytea)
      FROM generate_series(1, ${count}::integer)`,
    )

  test('made by any caller, those of any intent included, and expired ones not', async () => {
    const ada = await crowd.user()
    const root = await crowd.user({ superuser: true })
    for (const _ of [1, 2, 3]) await crowd.token(ada.pk, { expires: new Date(1_000) })
    await fill(ada.pk, 99)
    await crowd.allowed(root, tokenEntry(null, { user: ada.pk, intent: 'recovery' }))
    for (const actor of [ada, root]) await crowd.invalid(actor, tokenEntry(null, { user: ada.pk }), 'user', message)
    const last = await there.db.token.findFirstOrThrow({ where: { userPk: ada.pk, expiring: false } })
    await crowd.allowed(ada, tokenEntry(last.pk, { description: 'can be changed' }))
    await crowd.allowed(ada, absent(tokenEntry(last.pk)))
    await crowd.allowed(ada, tokenEntry(null, { user: ada.pk }))
  })

  test('of one document too', async () => {
    const ada = await crowd.user()
    await fill(ada.pk, 99)
    const entries = [tokenEntry(null, { user: ada.pk }), tokenEntry(null, { user: ada.pk })]
    expect((await there.refusal(entries, ada)).logs).toEqual([`rolled back: entries.1.user: ${message}`])
    expect(await there.db.token.count({ where: { userPk: ada.pk } })).toBe(99)
  })

  test('created at the same time', async () => {
    const ada = await crowd.user()
    await fill(ada.pk, 95)
    const create = () =>
      write(
        there.db,
        there.engine,
        ada,
        {
          model: 'service_core.token',
          mode: { create: true },
          fields: { identifier: randomUUID(), user: ada.pk },
          requestId: 'r',
        },
        async () => 'created',
      )
    const outcomes = await Promise.allSettled(Array.from({ length: 12 }, create))
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason)
    expect(refused.map(({ code, fields }) => ({ code, fields }))).toEqual(
      Array.from({ length: 7 }, () => ({ code: 'invalid', fields: { user: [message] } })),
    )
    expect(await there.db.token.count({ where: { userPk: ada.pk } })).toBe(100)
  })

  test('is kept by the database without the check of the service', async () => {
    const ada = await crowd.user()
    await crowd.token(ada.pk, { expires: new Date(1_000) })
    await fill(ada.pk, 100)
    await expect(fill(ada.pk, 1)).rejects.toThrow('more than 100 tokens')
  })
})

describe('when it expires', () => {
  test('is in the future, and null when it does not expire', async () => {
    const root = await crowd.user({ superuser: true })
    const of = (attrs: Record<string, unknown>) => tokenEntry(null, { user: root.pk, ...attrs })
    await crowd.invalid(root, of({ expires: inDays(-0.01) }), 'expires', 'Must be in the future.')
    const nowhere = 'A token that does not expire has no such time.'
    await crowd.invalid(root, of({ expires: inDays(1), expiring: false }), 'expires', nowhere)
  })

  test('cannot be removed from a token that expires: no new default is computed', async () => {
    const root = await crowd.user({ superuser: true })
    const pk = await createToken(root.pk, { expires: inDays(300) })
    const before = await token(pk)
    const needed = 'A token that expires needs a time: leave this field out to keep the one it has.'
    await crowd.invalid(root, tokenEntry(pk, { expires: null }), 'expires', needed)
    await crowd.invalid(root, tokenEntry(pk, { expires: null, expiring: true }), 'expires', needed)
    expect(await token(pk)).toEqual(before)
    await crowd.allowed(root, tokenEntry(pk, { expires: null, expiring: false }))
    await crowd.allowed(root, tokenEntry(pk, { expires: null, expiring: true }))
  })

  test('is kept by other changes, also of an expired token', async () => {
    const ada = await crowd.user()
    const pk = await createToken(ada.pk, { intent: 'app_password', description: 'd', expires: inDays(9) })
    await rows(there.db, sql`UPDATE tokens SET expires = now() - interval '1 day' WHERE pk = ${pk}`)
    const before = await token(pk)
    await crowd.allowed(ada, tokenEntry(pk, { identifier: 'another-name' }))
    expect(await token(pk)).toEqual({ ...before, identifier: 'another-name' })
  })

  test('is unchanged when the same time is sent in another notation', async () => {
    const ada = await crowd.user()
    const pk = await createToken(ada.pk, { expires: inDays(10).replace('Z', '+00:00') })
    const expires = (await token(pk)).expires?.toISOString() ?? ''
    const { audited } = await there.apply([tokenEntry(pk, { expires, expiring: true })], ada)
    expect(audited).toEqual([])
    expect((await there.apply([tokenEntry(pk, { expires: expires.replace('Z', '+00:00') })], ada)).audited).toEqual([])
  })
})
