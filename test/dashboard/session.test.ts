import { Signer } from '@fastify/cookie'
import { beforeAll, describe, expect, test } from 'vitest'
import { sessionLifetimeS } from '../../src/dashboard/session.ts'
import { type Installation, installation } from '../support/installation.ts'
import type { Made } from '../support/make.ts'

let service: Installation
let viewer: Made
let token: string
/** As the server signs it. */
let sign: (claim: string) => string

beforeAll(async () => {
  service = await installation({ workers: 'none' })
  viewer = await service.make.user({ permissions: ['view_queue'] })
  token = (await service.db.token.findFirstOrThrow({ where: { userPk: viewer.pk } })).pk
  const signer = new Signer(service.engine.keyring.derive('dashboard session'))
  sign = (claim) => signer.sign(claim)
})

const nowS = () => Math.floor(Date.now() / 1_000)

/** @returns the status for a request with this cookie: 200 in, 303 to the login */
async function statusWith(value: string): Promise<number> {
  const cookie = `gatewright_queues=${encodeURIComponent(value)}`
  return (await service.app.inject({ url: '/admin/queues/', headers: { cookie } })).statusCode
}

test('the cookie names the token and its expiry, signed, and not the access token', async () => {
  const host = '127.0.0.1:9000'
  const answer = await service.app.inject({
    method: 'POST',
    url: '/admin/queues/login/',
    headers: { host, origin: `http://${host}`, 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({ access_token: viewer.token }).toString(),
  })
  const [cookie] = answer.cookies
  const [pk, expiry = ''] = cookie?.value.split('.') ?? []
  expect(pk).toBe(token)
  expect(Math.abs(Number(expiry) - nowS() - sessionLifetimeS)).toBeLessThan(60)
  expect(cookie?.value).toBe(sign(`${pk}.${expiry}`))
  expect(String(answer.headers['set-cookie'])).not.toContain(viewer.token)
  expect(await statusWith(cookie?.value ?? '')).toBe(200)
})

test('a session lasts until it expires', async () => {
  expect(await statusWith(sign(`${token}.${nowS() + 60}`))).toBe(200)
  expect(await statusWith(sign(`${token}.${nowS()}`))).toBe(303)
  expect(await statusWith(sign(`${token}.1800`))).toBe(303)
})

describe('a cookie is refused that', () => {
  const later = () => String(nowS() + 60)
  const valid = () => sign(`${token}.${later()}`)
  const signatureOf = (value: string) => value.slice(value.lastIndexOf('.') + 1)
  test.each<[string, () => string]>([
    ['is empty', () => ''],
    ['has no signature', () => `${token}.${later()}`],
    ['has an empty signature', () => `${token}.${later()}.`],
    ['names another token', () => valid().replace(/^./, (first) => (first === '0' ? '1' : '0'))],
    ['expires later than was signed', () => `${token}.${Number(later()) + 1}.${signatureOf(valid())}`],
    ['has an altered signature', () => valid().replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))],
    ['has a shorter signature', () => valid().slice(0, -1)],
    ['has more behind it', () => `${valid()}x`],
    ['is signed under another key', () => new Signer(Buffer.alloc(32, 1)).sign(`${token}.${later()}`)],
    ['is signed, but has no expiry', () => sign(token)],
    ['is signed, but never expires', () => sign(`${token}.never`)],
    ['is signed, but names no token', () => sign(`42.${later()}`)],
    ['is signed, but longer', () => sign(`${token}.${later()}.1`)],
  ])('%s', async (_, cookie) => {
    expect(await statusWith(valid())).toBe(200)
    expect(await statusWith(cookie())).toBe(303)
  })
})
