import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { answered, applied, dashboardOf, execute, installation, type Made, sql, textOf } from '../support/kit.ts'

/** The servers that read an application's provider: in its history, and on its page. */

const on = await installation()
const { db } = on
const self = '/api/v3/consumers/self/'
const issuer = 'https://id.example.com'
const permissions = ['record_sign_in', 'view_oauth2provider']

async function app(owner: string): Promise<string> {
  const slug = `app-${randomUUID()}`
  await applied(on.admin.submit('oauth2', slug, { owner }))
  return slug
}

/** Records that a consumer has read up to now, and was heard so long ago. */
const heard = ({ pk }: Made, secondsAgo = 0) =>
  execute(
    db,
    sql`INSERT INTO consumers (user_pk, kind, revision, seen_at)
      VALUES (${pk}, 'oauth2', pg_current_snapshot()::text, now() - make_interval(secs => ${secondsAgo}))
      ON CONFLICT (user_pk, kind) DO UPDATE SET revision = excluded.revision, seen_at = excluded.seen_at`,
  )

type Consumer = { name: string | null; issuer: string | null; behind_ms: number | null; silent_ms: number | null }

async function consumersOf(slug: string, by = on.admin): Promise<Consumer[]> {
  const { json } = await answered(200, by.get(`/api/v3/core/applications/${slug}/history/`))
  return (json as { consumers: Consumer[] }).consumers
}

const forget = () => db.consumer.deleteMany()

test('a server says where it is found, once, with an audit row', async () => {
  const server = await on.make.user({ permissions })
  const headers = { 'x-request-id': `issuer-${server.pk}` }
  for (const body of [{ issuer: 'https://old.example.com' }, { issuer, kind: 'oauth2' }, { issuer }])
    await answered(200, server.put(self, body, { headers }), { ...body, kind: 'oauth2' })
  const where = { requestId: `issuer-${server.pk}` }
  expect(await db.auditRow.findMany({ where })).toMatchObject(
    ['old', 'new'].map(() => ({ action: 'set_issuer', actorPk: server.pk, changes: [{ fields: ['issuer'] }] })),
  )
  const slug = await app('team-a')
  expect(await consumersOf(slug)).toEqual([{ name: server.username, issuer, behind_ms: null, silent_ms: null }])
  for (const [body, code] of [
    [{ issuer: 'javascript:alert(1)' }, 'wrong_format'],
    [{ issuer, kind: 'none' }, 'invalid_choice'],
    [{}, 'required'],
  ] as const)
    expect((await on.refused(400, () => server.put(self, body))).errors).toMatchObject([{ code }])
  await on.refused(403, () => server.put(self, { issuer, kind: 'saml' }))
  await forget()
})

test('an issuer is of a server that may record logins, and may read the provider', async () => {
  const slug = await app('team-a')
  const reader = await on.make.user({ permissions: ['view_oauth2provider'] })
  await on.refused(403, () => reader.put(self, { issuer: 'https://evil.example.com' }))
  const [own, other] = [
    await on.make.user({ permissions, owners: ['team-a'] }),
    await on.make.user({ permissions, owners: ['team-b'] }),
  ]
  for (const each of [own, other]) await answered(200, each.put(self, { issuer }))
  expect((await consumersOf(slug)).map(({ name }) => name)).toEqual([own.username])
  await db.role.updateMany({
    where: { groups: { some: { groupPk: own.group } } },
    data: { permissions: ['view_oauth2provider'] },
  })
  expect(await consumersOf(slug)).toEqual([])
  await heard(own)
  expect(await consumersOf(slug)).toMatchObject([{ name: own.username, issuer: null, behind_ms: 0 }])
  await forget()
})

test('one that follows is up to date, behind, or last heard a while ago', async () => {
  const operator = await on.make.user({
    permissions: ['view_queue', 'view_application', 'view_oauth2provider', 'view_user', 'view_run'],
  })
  const slug = await app('team-a')
  const server = await on.make.user({ permissions })
  await heard(server)
  const page = async (by = operator) => {
    const { body } = await dashboardOf(on).get(by, `/admin/applications/${slug}/`)
    return textOf(body)
  }
  expect(await consumersOf(slug)).toMatchObject([{ name: server.username, issuer: null, behind_ms: 0 }])
  expect(await page()).toContain(`${server.username} up to date`)
  await applied(on.admin.submit('oauth2', slug, { owner: 'team-a', app: { name: 'Changed' } }))
  const [behind] = await consumersOf(slug)
  expect(behind?.behind_ms).toBeGreaterThan(0)
  expect(await page()).toMatch(new RegExp(`${server.username} [\\d.]+ m?s behind`))
  // Another application changed: that is nothing for this one.
  await heard(server)
  await app('team-a')
  expect(await consumersOf(slug)).toMatchObject([{ behind_ms: 0 }])
  await heard(server, 300)
  expect(await page()).toContain(`${server.username} last heard 5 min ago`)
  await answered(200, server.put(self, { issuer }))
  expect(await page()).toContain(issuer)

  const blind = await on.make.user({ permissions: ['view_queue', 'view_application', 'view_oauth2provider'] })
  expect(await consumersOf(slug, blind)).toMatchObject([{ name: null, issuer }])
  expect(await page(blind)).not.toContain(server.username)
  const foreign = await on.make.user({ permissions: ['view_application'] })
  expect(await consumersOf(slug, foreign)).toEqual([])
  await db.user.update({ where: { pk: server.pk }, data: { isActive: false } })
  expect(await consumersOf(slug)).toEqual([])
})

test('a server has read a change when it asks for what came after', async () => {
  const slug = await app('team-a')
  const server = await on.make.user({ permissions })
  const read = async (since: string) => {
    const { json } = await server.get(`/api/v3/consumers/oauth2/${since && `?since=${encodeURIComponent(since)}`}`)
    return (json as { revision?: string } | undefined)?.revision ?? since
  }
  const isUpToDate = async () =>
    (await consumersOf(slug)).filter(({ name }) => name === server.username).map(({ behind_ms }) => behind_ms === 0)
  const first = await read('')
  expect(await isUpToDate()).toEqual([])
  expect(await read(first)).toBe(first)
  expect(await isUpToDate()).toEqual([true])
  await applied(on.admin.submit('oauth2', slug, { owner: 'team-a', app: { name: 'Changed' } }))
  expect(await isUpToDate()).toEqual([false])
  const second = await read(first)
  expect(await isUpToDate()).toEqual([false])
  expect(await read(second)).toBe(second)
  expect(await isUpToDate()).toEqual([true])
})
