import { beforeAll, describe, expect, test } from 'vitest'
import { zoneOf, zones } from '../../src/dashboard/times.ts'
import { written } from '../../src/dashboard/words.ts'
import { type Dashboard, dashboardOf, form, origin } from '../support/dashboard.ts'
import { type Installation, installation, type Made } from '../support/kit.ts'

/** Times in UTC, or in the zone that a person chose. */

describe('a time', () => {
  test.each([
    ['UTC', '2026-11-23T23:30:00.000Z', '2026-11-23 23:30:00 UTC'],
    ['Europe/Berlin', '2026-11-23T23:30:00.000Z', '2026-11-24 00:30:00 CET'],
    ['Europe/Berlin', '2026-07-01T12:00:00.000Z', '2026-07-01 14:00:00 CEST'],
    ['America/New_York', '2026-03-01T02:05:09.000Z', '2026-02-28 21:05:09 GMT−5'],
    [zoneOf('Asia/Kolkata') ?? '', '2026-11-23T18:30:00.000Z', '2026-11-24 00:00:00 GMT+5:30'],
  ])('in %s: %s', (zone, iso, text) => {
    expect(written(new Date(iso), zone)).toBe(text)
  })

  test.each([
    ['UTC', 'UTC'],
    ['Europe/Berlin', 'Europe/Berlin'],
    ['europe/berlin', 'Europe/Berlin'],
    ['US/Eastern', 'America/New_York'],
    ['Mars/Olympus', undefined],
    ['+01:00', undefined],
    ['', undefined],
    ['<b>', undefined],
  ])('is in the zone %j when it is named %j', (name, zone) => {
    expect(zoneOf(name)).toBe(zone)
  })

  test('can be in a zone of each continent', () => {
    expect(zones[0]).toBe('UTC')
    const continents = new Set(zones.map((name) => name.split('/', 1).join()))
    expect([...continents]).toEqual(expect.arrayContaining(['Africa', 'America', 'Asia', 'Australia', 'Europe']))
    expect(new Set(zones).size).toBe(zones.length)
  })
})

describe('the pages', () => {
  let service: Installation
  let dashboard: Dashboard
  let viewer: Made
  let session: string
  beforeAll(async () => {
    service = await installation()
    dashboard = dashboardOf(service)
    viewer = await service.make.user({ permissions: ['view_queue', 'view_run'] })
    session = await dashboard.session(viewer.token)
    await service.admin.submit('radius', 'timed')
  })

  const get = async (url: string, cookie = '') =>
    dashboard.send({ method: 'GET', url, headers: { cookie: `${session}; ${cookie}`, accept: 'text/html' } })
  const choose = (sent: Record<string, string>, next = '', headers: Record<string, string> = { origin }) =>
    dashboard.send({
      method: 'POST',
      url: `/admin/times/${next}`,
      headers: { cookie: session, 'content-type': form, ...headers },
      payload: new URLSearchParams(sent).toString(),
    })
  const cookieOf = (answer: { headers: Record<string, unknown> }) => String(answer.headers['set-cookie'])
  const inTokyo = 'gatewright_zone=Asia%2FTokyo'

  test('are in UTC until another zone is chosen, which a browser keeps for all of them', async () => {
    expect((await get('/admin/')).body).toContain('>Times in UTC</a>')
    const answer = await choose({ zone: 'Asia/Tokyo' }, '?next=%2Fadmin%2Fruns%2F%3Fperiod%3Dday')
    expect(answer).toMatchObject({ statusCode: 303, headers: { location: '/admin/runs/?period=day' } })
    const cookie = cookieOf(answer)
    expect(cookie).toMatch(/^gatewright_zone=Asia\/Tokyo; Max-Age=\d+; Path=\/admin; HttpOnly; SameSite=Lax$/)
    const { body } = await get('/admin/', cookie.split(';', 1).join())
    expect(body).toContain('>Times in Asia/Tokyo</a>')
    expect(body).toMatch(/As of <time datetime="[^"]+Z">[\d-]+ [\d:]+ GMT\+9<\/time>/)
  })

  test('write the same times in another zone, each with its zone', async () => {
    const { createdAt } = await service.db.run.findFirstOrThrow({ where: { slug: 'timed' } })
    const iso = createdAt.toISOString()
    const of = (zone: string) => {
      const text = written(createdAt, zone)
      return { long: `<time datetime="${iso}">${text}</time>`, title: `title="${text}"` }
    }
    const { id } = await service.db.run.findFirstOrThrow({ where: { slug: 'timed' } })
    for (const [zone, cookie] of [
      ['UTC', ''],
      ['Asia/Tokyo', inTokyo],
    ] as const) {
      expect((await get(`/admin/runs/${id}/`, cookie)).body).toContain(of(zone).long)
      expect((await get('/admin/runs/', cookie)).body).toContain(of(zone).title)
    }
    const tokyo = (await get('/admin/runs/', inTokyo)).body
    expect(tokyo.replaceAll(/datetime="[^"]*"/g, '')).not.toMatch(/\d UTC/)
  })

  test('lead back to the address where the choice was asked for, and to no other host', async () => {
    const [, link = ''] = /id="times" href="([^"]+)"/.exec((await get('/admin/runs/?period=week&who=a')).body) ?? []
    expect(link).toBe('/admin/times/?next=%2Fadmin%2Fruns%2F%3Fperiod%3Dweek%26who%3Da')
    const { body } = await get(link)
    expect(body).toContain('class="button" href="/admin/runs/?period=week&amp;who=a">Cancel')
    expect(await choose({ zone: 'UTC' }, '?next=//elsewhere.example/')).toMatchObject({
      headers: { location: '/admin/' },
    })
  })

  test('take the zone that the browser names, by an older name too', async () => {
    expect(cookieOf(await choose({ zone: 'UTC', here: 'US/Eastern' }))).toContain('=America/New_York;')
  })

  test.each([[{ zone: 'Mars/Olympus' }], [{}], [{ zone: 'x'.repeat(101) }]])('refuse %j', async (sent) => {
    const answer = await choose(sent)
    expect([answer.statusCode, answer.headers['set-cookie']]).toEqual([400, undefined])
    expect(answer.body).toContain('There is no such zone.')
  })

  test('are in UTC when the cookie names no zone, and a value of a caller is never taken for a time', async () => {
    for (const value of ['Mars', '%00', '<b>', 'x'.repeat(3_000)])
      expect((await get('/admin/', `gatewright_zone=${value}`)).body).toContain('>Times in UTC</a>')
    const name = '<time datetime="2026-11-23T23:30:00.000Z">x</time>'
    const { body } = await get(`/admin/runs/?who=${encodeURIComponent(name)}`, inTokyo)
    expect(body).toContain('&lt;time datetime=&quot;2026-11-23T23:30:00.000Z&quot;&gt;x&lt;/time&gt;')
  })

  test('are chosen by who is logged in, and from a page of this host', async () => {
    expect(await dashboard.send({ method: 'GET', url: '/admin/times/' })).toMatchObject({ statusCode: 303 })
    expect(await choose({ zone: 'UTC' }, '', { origin: 'https://elsewhere.example' })).toMatchObject({
      statusCode: 403,
    })
    expect(await choose({ zone: 'UTC' }, '', { origin, cookie: '' })).toMatchObject({ statusCode: 303 })
    expect((await choose({ zone: 'UTC' }, '', { origin, cookie: '' })).headers['set-cookie']).toBeUndefined()
  })
})
