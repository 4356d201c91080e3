import { randomUUID } from 'node:crypto'
import { Signer } from '@fastify/cookie'
import { describe, expect, test } from 'vitest'
import { sessionLifetimeS } from '../../src/dashboard/session.ts'
import { installation } from '../support/installation.ts'

/** The cookie of a session as the server signs it. */

const service = await installation({ workers: 'none' })
const viewer = await service.make.user({ permissions: ['view_queue'] })
const { pk: tokenPk } = await service.db.token.findFirstOrThrow({ where: { userPk: viewer.pk } })
/** The key of a session of the viewer. */
const pk = randomUUID()
await service.db.dashboardSession.create({ data: { pk, tokenPk, expires: new Date('2999-01-01') } })
const signer = new Signer(service.engine.keyring.derive('dashboard session'))
const sign = (claim: string) => signer.sign(claim)

/** @returns the status for a request with this cookie: 200 in, 303 to the login */
async function statusWith(value: string): Promise<number> {
  const cookie = `gatewright_admin=${encodeURIComponent(value)}`
  return (await service.app.inject({ url: '/admin/', headers: { cookie } })).statusCode
}

test('the cookie names the session, signed, and not the access token', async () => {
  const host = '127.0.0.1:9000'
  const answer = await service.app.inject({
    method: 'POST',
    url: '/admin/login/',
    headers: { host, origin: `http://${host}`, 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({ access_token: viewer.token }).toString(),
  })
  const [cookie] = answer.cookies
  const [named = ''] = cookie?.value.split('.') ?? []
  const { expires, token } = await service.db.dashboardSession.findUniqueOrThrow({
    where: { pk: named },
    include: { token: true },
  })
  expect(token.userPk).toBe(viewer.pk)
  expect(Math.abs(expires.getTime() - Date.now() - 1_000 * sessionLifetimeS)).toBeLessThan(60_000)
  expect(cookie?.value).toBe(sign(named))
  expect(String(answer.headers['set-cookie'])).not.toContain(viewer.token)
  expect(await statusWith(cookie?.value ?? '')).toBe(200)
})

test('a session lasts until it expires', async () => {
  const until = async (expires: Date) => {
    await service.db.dashboardSession.update({ where: { pk }, data: { expires } })
    return statusWith(sign(pk))
  }
  expect(await until(new Date(Date.now() - 1_000))).toBe(303)
  expect(await until(new Date('2999-01-01'))).toBe(200)
})

describe('a cookie is refused that', () => {
  const valid = () => sign(pk)
  test.each<[string, () => string]>([
    ['is empty', () => ''],
    ['has no signature', () => pk],
    ['has an empty signature', () => `${pk}.`],
    ['names another session', () => valid().replace(/^./, (first) => (first === '0' ? '1' : '0'))],
    ['has an altered signature', () => valid().replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))],
    ['has a shorter signature', () => valid().slice(0, -1)],
    ['has more behind it', () => `${valid()}x`],
    ['is signed under another key', () => new Signer(Buffer.alloc(32, 1)).sign(pk)],
    ['is signed, but names no session', () => sign('42')],
    ['is signed, but names one that has ended', () => sign(randomUUID())],
    ['is signed, but longer', () => sign(`${pk}.1`)],
  ])('%s', async (_, cookie) => {
    expect(await statusWith(valid())).toBe(200)
    expect(await statusWith(cookie())).toBe(303)
  })
})
