import { describe, expect, test } from 'vitest'
import { number } from '../../src/dashboard/words.ts'
import { uuid7 } from '../../src/ids.ts'
import { answered } from '../support/asker.ts'
import { aGroup, applyPath, dashboardOf, example, form, installation, named, origin, until } from '../support/kit.ts'

/** /admin/audit/ and /admin/refusals/ */

const there = await installation()
const dashboard = dashboardOf(there)
const operator = await there.make.user({ permissions: ['view_queue', 'manage_queue', 'view_run', 'view_audit'] })
const cookie = await dashboard.session(operator.token)

async function show(url: string, as = cookie): Promise<string> {
  const answer = await dashboard.send({ method: 'GET', url, headers: { cookie: as, accept: 'text/html' } })
  expect([url, answer.statusCode]).toEqual([url, 200])
  return answer.body
}
const rowsOf = (page: string): string[] => page.match(/<tr id="[\s\S]*?<\/tr>/g) ?? []

test('the page of retention has all that workers delete: credentials, too', async () => {
  const put = async (client_secret: string | object) => {
    const body = await named('oauth2', 'overlapped', { provider: { client_secret } })
    expect((await there.admin.put(applyPath, body)).status).toBe(200)
  }
  await put('first-secret-of-this-client-0001')
  await put({ value: 'second-secret-of-this-client-002', overlap: 'hours=2' })
  const page = await show('/admin/retention/')
  expect(page).toMatch(/Former client secrets<\/th>.*until their overlap ends<.*<time [^>]+>.*>1<\/td>/)
  for (const what of [
    'Keys of tokens that were not viewed',
    'Idempotency keys',
    'Access tokens of jobs, valid for 15 minutes',
  ])
    expect(page).toMatch(`${what}</th>`)
  expect(page).toContain('A run that is still queued after an hour is cancelled.')
  expect(await show('/admin/')).toContain('<a href="/admin/retention/">Retention</a>')
})

describe('the audit', () => {
  test('says who paused the queue and why, and what an apply changed, without values', async () => {
    const act = (name: string, payload = '') =>
      dashboard.send({
        ...{ method: 'POST', url: `/admin/${name}/`, payload },
        headers: { cookie, origin, 'content-type': form },
      })
    await act('pause', new URLSearchParams({ reason: 'upgrade <b>tonight</b>' }).toString())
    await act('resume')
    const body = await named('oauth2', 'audited', { app: { meta_description: 'a value of its own' } })
    expect(await there.admin.put(applyPath, body)).toMatchObject({ status: 200 })
    const page = await show('/admin/audit/')
    const [applied = '', resumed = '', paused = ''] = rowsOf(page)
    expect(paused).toContain(operator.username)
    expect(paused).toContain('pause queue')
    expect(paused).toContain('upgrade &lt;b&gt;tonight&lt;/b&gt;')
    expect(resumed).toContain('resume queue')
    expect(applied).toMatch(/application <span class="name" title="[^"]+">audited<\/span> created</)
    expect(page).not.toContain('a value of its own')
  })

  test('is narrowed by action, by who, and by request, and goes on by key', async () => {
    const only = rowsOf(await show('/admin/audit/?action=pause_queue&who=&id='))
    expect(only).toHaveLength(1)
    expect(rowsOf(await show(`/admin/audit/?who=${operator.username.toUpperCase()}`))).toHaveLength(2)
    for (let made = 0; made < 51; made += 1)
      await there.db.auditRow.create({
        data: {
          actorName: 'made',
          action: 'apply',
          changes: [],
          requestId: `made-${made}`,
          at: new Date('2026-01-01'),
        },
      })
    const first = await show('/admin/audit/?period=all&who=made&unchanged=shown')
    expect(rowsOf(first)).toHaveLength(50)
    const [, next = ''] = /href="([^"]*before=\d+)">Older/.exec(first) ?? []
    expect(rowsOf(await show(next.replaceAll('&amp;', '&')))).toHaveLength(1)
    expect(rowsOf(await show('/admin/audit/?period=week&who=made&unchanged=shown'))).toHaveLength(0)
    expect(rowsOf(await show('/admin/audit/?period=all&id=made-7&unchanged=shown'))).toHaveLength(1)
  })

  test('says who deleted a group in one search, and leaves out what changed nothing', async () => {
    const sent = (entries: object[]) =>
      there.admin.put('/api/v3/blueprints/', { version: 1, metadata: { name: 'groups' }, entries })
    const crew = ['One', 'Two', 'Three', 'Four'].map((name) => aGroup(`Crew ${name}`))
    expect((await sent([...crew, aGroup('Gone')])).status).toBe(200)
    const unchanged = await sent(crew)
    const gone = await sent([
      ...crew.map((each, index) => ({ ...each, attrs: { attributes: { index } } })),
      { ...aGroup('Gone'), state: 'absent' },
    ])
    const page = await show('/admin/audit/?period=all&action=delete&object=group%3AGone')
    expect(rowsOf(page)).toEqual([
      expect.stringMatching(
        new RegExp(
          `>admin<[^]*>apply<[^]*group <span class="name" title="[^"]+">Gone</span> deleted<[^]*/${gone.runId}/`,
        ),
      ),
    ])
    expect(await show('/admin/audit/')).not.toContain(`/${unchanged.runId}/`)
    expect(await show('/admin/audit/?unchanged=shown')).toContain(`/${unchanged.runId}/`)
    const wrong = await show('/admin/audit/?object=Gone')
    expect(wrong).toContain('Nothing is shown: Object: Must be a kind and a name')
    expect(rowsOf(wrong)).toEqual([])
  })

  test('tells runs of the same moment apart', async () => {
    const ids = [uuid7(), uuid7(), uuid7()]
    const of = { actorName: 'hasty', action: 'apply', changes: [], requestId: 'hasty' }
    await there.db.auditRow.createMany({ data: ids.map((runId) => ({ ...of, runId })) })
    const page = await show('/admin/audit/?who=hasty&unchanged=shown')
    const names = ids.map((id) => new RegExp(`<a href="/admin/runs/${id}/">([^<]+)</a>`).exec(page)?.[1])
    expect(new Set(names).size).toBe(3)
    expect(names).not.toContain(undefined)
  })

  test('needs view_audit, and an address that is right', async () => {
    const other = await there.make.user({ permissions: ['view_queue', 'manage_queue', 'view_run'] })
    const as = await dashboard.session(other.token)
    const get = (url: string, cookie: string) => dashboard.send({ method: 'GET', url, headers: { cookie } })
    expect((await get('/admin/audit/', as)).statusCode).toBe(403)
    for (const query of ['period=year', 'before=0', 'before=1;drop', 'who=%00', 'nonsense=1', `who=${'a'.repeat(201)}`])
      expect([query, (await get(`/admin/audit/?${query}`, cookie)).statusCode]).toEqual([query, 400])
  })
})

describe('refused access', async () => {
  const curious = await there.make.user({ permissions: ['view_queue'] })
  const keptOf = (where: object) =>
    until(`a refusal with ${JSON.stringify(where)}`, async () =>
      there.db.refusal.findFirst({ where, orderBy: { pk: 'desc' } }),
    )

  test('to a write is kept with its user, its path, the missing permission and its request', async () => {
    const caller = await there.make.user({ permissions: ['view_group'] })
    const made = await there.admin.post('/api/v3/core/groups/', { name: 'Kept group' })
    const path = `/api/v3/core/groups/${(made.json as { pk: string }).pk}/`
    const refused = await answered(403, caller.patch(path, { name: 'Other' }))
    expect(await keptOf({ userPk: caller.pk })).toMatchObject({
      ...{ kind: 'access', route: '/api/v3/core/groups/:group_uuid/', status: 403, username: caller.username },
      ...{ title: `PATCH ${path}`, requestId: refused.headers['x-request-id'] },
      sentence: expect.stringContaining('change_group'),
    })
    const anonymous = await there.as('gw_a_wrong').post('/api/v3/core/groups/', { name: 'Other group' })
    expect(await keptOf({ requestId: anonymous.headers['x-request-id'] })).toMatchObject({
      ...{ kind: 'access', status: 401, username: null, title: 'POST /api/v3/core/groups/' },
    })
  })

  test('to a submission names its route, and the application where it was read', async () => {
    const caller = await there.make.user({ permissions: ['add_application', 'change_application'] })
    await answered(403, caller.put(applyPath, await named('oauth2', 'not-for-them')))
    const title = 'PUT /api/v3/core/transactional/applications/: not-for-them'
    expect(await keptOf({ userPk: caller.pk })).toMatchObject({ kind: 'submission', title })
  })

  test('to the audit, to runs of others and to token keys is kept, and other reads are not', async () => {
    const caller = await there.make.user({ permissions: [] })
    const other = await there.make.user({ permissions: [] })
    const { runId } = await there.admin.put(applyPath, await named('oauth2', 'of-another'))
    const get = async (path: string) => (await caller.get(`/api/v3${path}`)).status
    const token = await there.db.token.findFirstOrThrow({ where: { userPk: other.pk } })
    expect(await get('/core/groups/')).toBe(403)
    expect((await there.as('gw_a_wrong').get('/api/v3/core/audit/')).status).toBe(401)
    expect(await get('/core/audit/')).toBe(403)
    expect(await get(`/blueprints/runs/${runId}/`)).toBe(404)
    expect(await get(`/blueprints/runs/${uuid7()}/`)).toBe(404)
    expect(await get(`/core/tokens/${token.identifier}/view_key/`)).toBe(404)
    await keptOf({ userPk: caller.pk, sentence: { contains: 'view_token_key' } })
    const all = await there.db.refusal.findMany({ where: { userPk: caller.pk }, orderBy: { pk: 'asc' } })
    const run = 'There is no such run, or the permission view_run is missing or does not hold for it.'
    expect(all.map(({ sentence }) => sentence)).toEqual([
      'You lack the permission view_audit.',
      // The record does not say which of the two runs there is: the caller may see its own refusals.
      ...[run, run],
      'There is no such token, or the permission view_token_key is missing or does not hold for it.',
    ])
    const cookieOf = await dashboard.session(curious.token)
    for (const url of ['/admin/audit/', `/admin/runs/${runId}/`, '/admin/applications/'])
      await dashboard.send({ method: 'GET', url, headers: { cookie: cookieOf } })
    const seen = () => there.db.refusal.findMany({ where: { userPk: curious.pk }, orderBy: { pk: 'asc' } })
    await until('the refusals of pages', async () => (await seen()).length === 2)
    expect((await seen()).map(({ title }) => title)).toEqual(['GET /admin/audit/', `GET /admin/runs/${runId}/`])
  })

  test('at the login is kept: a wrong token, an expired one, and one without the right', async () => {
    const login = (access_token: string) =>
      dashboard.send({
        ...{ method: 'POST', url: '/admin/login/', payload: new URLSearchParams({ access_token }).toString() },
        headers: { origin, 'content-type': form },
      })
    const plain = await there.make.user({ permissions: [] })
    const late = await there.make.user({ permissions: ['view_queue'] })
    await there.db.token.updateMany({
      where: { userPk: late.pk },
      data: { expiring: true, expires: new Date('2026-01-02') },
    })
    for (const [token, status] of [
      ['gw_a_wrong', 401],
      [late.token, 401],
      [plain.token, 403],
    ] as const)
      expect((await login(token)).statusCode).toBe(status)
    await keptOf({ userPk: plain.pk })
    const all = await there.db.refusal.findMany({ where: { kind: 'login' }, orderBy: { pk: 'asc' } })
    expect(all.map(({ status, username, sentence }) => [status, username, sentence])).toEqual([
      [401, null, expect.stringMatching(/^Send a valid access token/)],
      [401, null, expect.stringMatching(/expired on 2026-01-02/)],
      [403, plain.username, 'You lack the permission view_queue.'],
    ])
  })

  test('is found by kind, by user and by request', async () => {
    const logins = rowsOf(await show('/admin/refusals/?kind=login&who=&id='))
    expect(logins).toHaveLength(3)
    expect(rowsOf(await show('/admin/refusals/?kind=access')).join('')).not.toContain('/admin/login/')
    expect(rowsOf(await show('/admin/refusals/?kind=submission')).join('')).not.toContain('GET /')
    const ofOne = rowsOf(await show(`/admin/refusals/?who=${curious.username.toUpperCase()}`))
    expect(ofOne).toHaveLength(2)
    const [, id = ''] = />([^<]+)<\/td><\/tr>/.exec(ofOne[0] ?? '') ?? []
    expect(rowsOf(await show(`/admin/refusals/?id=${id}`))).toEqual([ofOne[0]])
  })

  test('of one user again and again is visible as such on the first page', async () => {
    const flooding = await there.make.user({ permissions: [] })
    for (let sent = 0; sent < 12; sent += 1) await flooding.post('/api/v3/core/groups/', { name: 'Flood' })
    await until('all of them', async () => (await there.db.refusal.count({ where: { userPk: flooding.pk } })) === 12)
    const page = await show('/admin/')
    const [, times = '', who = ''] = /<li>(\d+) permission_denied: ([^<]*)<\/li>/.exec(page) ?? []
    expect([Number(times) >= 12, who.startsWith(flooding.username)]).toEqual([true, true])
    expect(await show('/admin/refusals/')).toMatch(
      new RegExp(`>permission_denied<[^\\n]*>403<[^\\n]*>${flooding.username}<[^\\n]*>12<`),
    )
  })
})

describe('a submission that was refused before it was recorded', () => {
  const kept = (sentence: string) =>
    until(`the refusal "${sentence}"`, async () =>
      there.db.refusal.findFirst({ where: { sentence: { contains: sentence } } }),
    )

  test('is kept with its code, its user and why, and without what was sent', async () => {
    const body = await named('oauth2', 'refused', {
      app: { meta_launch_url: 'not <a> URL', meta_description: 'a description that was sent' },
    })
    await answered(403, operator.put(applyPath, body))
    expect((await there.admin.put(applyPath, body)).status).toBe(400)
    expect((await there.as('gw_a_wrong').put(applyPath, body)).status).toBe(401)
    await kept('meta_launch_url')
    await kept('access token')
    const page = await show('/admin/refusals/')
    const rows = rowsOf(page)
    expect(rows).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/>400<[\s\S]*>invalid<[\s\S]*>admin<[\s\S]*app\.meta_launch_url: /),
        expect.stringMatching(new RegExp(`>403<[\\s\\S]*>permission_denied<[\\s\\S]*>${operator.username}<`)),
        expect.stringMatching(/>401<[\s\S]*>not_authenticated<[\s\S]*>not authenticated</),
      ]),
    )
    expect(page).not.toContain('a description that was sent')
  })

  test('stands on the first page, by reason and who', async () => {
    const page = await show('/admin/')
    expect(page).toMatch(/<li>\d+ permission_denied: [^<]*user-/)
    expect(page).toContain('not_authenticated: not authenticated')
  })

  test('is shown to others only with view_run', async () => {
    const other = await there.make.user({ permissions: ['view_queue'] })
    const page = await show('/admin/refusals/', await dashboard.session(other.token))
    expect(rowsOf(page)).toEqual([])
    expect(page).toContain('you lack the permission view_run')
    await other.put(applyPath, await example('ldap'))
    await until('its own refusal', async () => (await there.db.refusal.count({ where: { userPk: other.pk } })) > 0)
    const own = await show('/admin/refusals/', await dashboard.session(other.token))
    expect(rowsOf(own)).toHaveLength(1)
  })

  test('is shown to its user alone of those whose rights are bound to owners', async () => {
    const deploys = ['application', 'oauth2provider'].flatMap((each) => [
      `view_${each}`,
      `add_${each}`,
      `change_${each}`,
    ])
    const permissions = [...deploys, 'view_flow', 'view_run', 'view_queue']
    const one = await there.make.user({ permissions, owners: ['team-one'] })
    const two = await there.make.user({ permissions, owners: ['team-two'] })
    const body = await named('oauth2', 'secret-project', { app: { meta_launch_url: 'no address' } })
    expect((await one.put(applyPath, body, { owner: 'team-one' })).status).toBe(400)
    await until('the refusal', async () => (await there.db.refusal.count({ where: { userPk: one.pk } })) > 0)
    const [ofOne, ofTwo] = [await dashboard.session(one.token), await dashboard.session(two.token)]
    expect(rowsOf(await show('/admin/refusals/', ofOne))).toEqual([expect.stringContaining('secret-project')])
    expect(await show('/admin/', ofOne)).toContain(`invalid: ${one.username}`)
    const others = await show('/admin/refusals/', ofTwo)
    expect(rowsOf(others)).toEqual([])
    expect(others).toContain('You see your own only: your rights are bound to owners.')
    for (const page of [others, await show('/admin/', ofTwo)])
      expect(['secret-project', one.username].filter((each) => page.includes(each))).toEqual([])
    const all = await there.make.user({ permissions: ['view_run', 'view_queue'] })
    expect(await show('/admin/refusals/', await dashboard.session(all.token))).toContain('secret-project')
  })

  test('is no run that a worker refused, and no other request', async () => {
    const before = await there.db.refusal.count()
    expect((await there.admin.get('/api/v3/core/users/?page=0')).status).toBe(400)
    const racing = await named('oauth2', 'raced')
    expect((await there.admin.put(applyPath, racing)).status).toBe(200)
    await there.as('gw_a_wrong').put(applyPath, { marker: true })
    await until('the next refusal', async () => (await there.db.refusal.count()) > before)
    expect(await there.db.refusal.count()).toBe(before + 1)
  })

  test('goes when a thousand are newer: what is kept has pages, and is not taken for all', async () => {
    const row = { route: '/x', code: 'too_many', status: 400, requestId: 'x', sentence: 'one a second', userPk: 1 }
    const ofUsers = () => there.db.refusal.count({ where: { userPk: { not: null } } })
    const began = Date.now() - 1_200_000
    await there.db.refusal.createMany({
      data: Array.from({ length: 1_100 }, (_, each) => ({ ...row, at: new Date(began + each * 1_000) })),
    })
    await there.as('gw_a_wrong').put(applyPath, {})
    await until('the oldest to go', async () => (await ofUsers()) <= 1_000)
    // Callers without a valid token have a ring of their own.
    const anonymous = Array.from({ length: 1_100 }, () => ({ ...row, userPk: null, at: new Date(began) }))
    await there.db.refusal.createMany({ data: anonymous })
    await there.as('gw_a_wrong').put(applyPath, {})
    await until('them to go', async () => (await there.db.refusal.count({ where: { userPk: null } })) <= 1_000)
    expect(await ofUsers()).toBe(1_000)
    await there.db.refusal.deleteMany({ where: { userPk: null } })
    const seen: string[] = []
    let url: string | undefined = '/admin/refusals/'
    for (let pages = 0; url !== undefined && pages < 20; pages += 1) {
      const page: string = await show(url)
      expect([url, page.includes('At least')]).toEqual([url, pages === 0])
      expect(page).toMatch(/Those before <time[^>]*>[^<]+<\/time> are no longer kept/)
      seen.push(...rowsOf(page).map((each) => /id="refusal-(\d+)"/.exec(each)?.[1] ?? ''))
      url = /href="([^"]*before=\d+)">Older/.exec(page)?.[1]
    }
    const all = await there.db.refusal.findMany({ orderBy: { pk: 'desc' }, select: { pk: true } })
    expect(seen).toEqual(all.map(({ pk }) => String(pk)))
    expect(await show('/admin/refusals/')).toContain(`<h2>${number(all.length)}+ refusals</h2>`)

    const ofHour = () => show('/admin/').then((page) => /<li>([^<]*) too_many: [^<]*<\/li>/.exec(page)?.[1])
    await until('the first page to say "at least"', async () => (await ofHour())?.startsWith('at least ') === true)
    // All of the last hour is kept, once what is kept is older.
    await there.db.refusal.updateMany({ data: { at: new Date(Date.now() - 7_200_000) } })
    await there.db.refusal.updateMany({
      where: { pk: { in: all.slice(0, 3).map(({ pk }) => pk) } },
      data: { at: new Date(), code: 'too_many' },
    })
    await until('the first page to say how many there were', async () => (await ofHour()) === '3')
  })

  test('is a sample of a flood, and the page says so', async () => {
    const row = {
      route: '/x',
      code: 'flood',
      status: 400,
      requestId: 'x',
      sentence: 'flood',
      at: new Date(Date.now() - 600_000),
    }
    const says = async () => (await show('/admin/refusals/')).includes('More came than are kept: at most 100 a second')
    await there.db.refusal.deleteMany()
    await there.db.refusal.createMany({ data: Array.from({ length: 99 }, () => row) })
    expect(await says()).toBe(false)
    await there.db.refusal.createMany({ data: [row] })
    expect(await says()).toBe(true)
    await until('the first page', async () => (await show('/admin/')).includes('<li>at least 100 flood: '))
  })

  test.each(['0', '1x', '', '9'.repeat(19)])('has no page before %j', async (before) => {
    const answer = await dashboard.send({
      method: 'GET',
      url: `/admin/refusals/?before=${before}`,
      headers: { cookie },
    })
    expect(answer.statusCode).toBe(400)
  })
})
