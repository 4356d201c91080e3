import { expect, test } from 'vitest'
import { aGroup, answered, applyPath, dashboardOf, installation, named } from '../support/kit.ts'

/** /admin/search/ */

const there = await installation()
const dashboard = dashboardOf(there)
const all = ['view_queue', 'view_run', 'view_audit', 'view_user', 'view_application']
const operator = await there.make.user({ permissions: all })
const cookie = await dashboard.session(operator.token)

async function search(q: string, as = cookie) {
  const url = `/admin/search/?q=${encodeURIComponent(q)}`
  const { statusCode, headers, body } = await dashboard.send({ method: 'GET', url, headers: { cookie: as } })
  return {
    status: statusCode,
    to: headers.location,
    body,
    sections: [...body.matchAll(/<h2>([^<]+)</g)].map(([, of]) => of),
  }
}
const hrefs = (body: string) =>
  [...body.matchAll(/<li><a href="(\/admin\/(?:applications|runs|audit|refusals)\/[^"]+)"/g)].map(([, to]) => to)

const submit = async (name: string, owner: string, id: string) => {
  const headers = { 'x-request-id': id }
  return answered(200, there.admin.put(applyPath, await named('oauth2', name), { owner, headers }))
}
const wiki = await submit('wiki', 'team-docs', 'deploy-4711')
const old = await submit('wiki-old', 'team-docs', 'deploy-4712')

test('an exact slug opens the application, and words list those that have them', async () => {
  expect(await search('wiki')).toMatchObject({ status: 303, to: '/admin/applications/wiki/' })
  const { status, body, sections } = await search('IKI')
  expect([status, sections]).toEqual([200, ['Applications']])
  expect(hrefs(body).toSorted()).toEqual(['/admin/applications/wiki-old/', '/admin/applications/wiki/'])
  expect(body).toContain('owner team-docs')
})

test('a slug that an application had leads to its history, also beside others that have it in theirs', async () => {
  await submit('number-5', 'team-former', 'former-1')
  for (const name of ['number-50', 'number-51']) await submit(name, 'team-former', name)
  const remove = (name: string) => there.admin.delete(`/api/v3/core/applications/${name}/`, { owner: 'team-former' })
  expect((await remove('number-5')).status).toBe(204)
  const { body } = await search('number-5')
  const former = '/admin/applications/number-5/'
  expect(hrefs(body)).toEqual([former, '/admin/applications/number-50/', '/admin/applications/number-51/'])
  expect(body).toContain('not there')
  const listOf = async (as: string) =>
    (await dashboard.send({ method: 'GET', url: '/admin/applications/?text=number-5', headers: { cookie: as } })).body
  expect(await listOf(cookie)).toContain(`href="${former}">What was done to one with the slug number-5`)
  // It is a hit by itself, and none for those who do not see the owner's applications.
  for (const name of ['number-50', 'number-51']) await remove(name)
  expect(await search('number-5')).toMatchObject({ status: 303, to: former })
  const other = await there.make.user({ permissions: ['view_application', 'view_queue'], owners: ['team-docs'] })
  const session = await dashboard.session(other.token)
  expect((await search('number-5', session)).status).toBe(200)
  expect(await listOf(session)).not.toContain('What was done')
})

test('an owner opens the list of its applications, and a user the acts of that user, or the runs without view_audit', async () => {
  expect(await search('Team-Docs')).toMatchObject({ status: 303, to: '/admin/applications/?owner=team-docs' })
  const to = `/admin/audit/?period=month&who=${operator.username}`
  expect(await search(operator.username)).toMatchObject({ status: 303, to })
  const other = await there.make.user({ permissions: ['view_queue', 'view_user'] })
  const runs = `/admin/runs/?period=month&who=${operator.username}`
  expect(await search(operator.username, await dashboard.session(other.token))).toMatchObject({ status: 303, to: runs })
})

test('a run is opened by its id, by the end of it as pages show it, and by its request', async () => {
  const to = `/admin/runs/${wiki.runId}/`
  const end = String(wiki.runId).slice(-8)
  for (const q of [String(wiki.runId), String(wiki.runId).toUpperCase(), end, end.toUpperCase(), ' deploy-4711 '])
    expect([q, await search(q)]).toEqual([q, expect.objectContaining({ status: 303, to })])
  expect((await search(end.slice(1))).status).toBe(200)
})

test('a request is searched where nothing else is found', async () => {
  await submit('nightly', 'team-docs', 'nightly-1')
  await submit('nightly-2', 'team-docs', 'nightly')
  expect(await search('nightly')).toMatchObject({ status: 303, to: '/admin/applications/nightly/' })
})

test('a request without a run leads to the audit, or to its refusal', async () => {
  const headers = { 'x-request-id': 'single-1', 'content-type': 'application/json' }
  const write = { method: 'POST', url: '/api/v3/core/groups/', headers, payload: { name: 'Searched' } } as const
  expect((await there.admin.send(write)).status).toBe(201)
  expect(await search('single-1')).toMatchObject({ status: 303, to: '/admin/audit/?period=all&id=single-1' })
  const refused = await operator.put('/api/v3/blueprints/', { version: 1, entries: [aGroup('X')], nonsense: 1 })
  const id = refused.headers['x-request-id'] ?? ''
  await expect.poll(async () => (await search(id)).to, { timeout: 20_000 }).toBe(`/admin/refusals/?id=${id}`)
})

test('several kinds stand on one page, at most ten hits each', async () => {
  await submit('team-docs', 'team-many', 'deploy-many')
  const two = await search('team-docs')
  expect([two.status, two.sections]).toEqual([200, ['Applications', 'Owners']])
  for (let each = 0; each < 11; each += 1) await submit(`many-${each}`, 'team-many', 'deploy-many')
  const many = await search('many-')
  expect(hrefs(many.body)).toHaveLength(10)
  expect(many.body).toContain('There are more')
  expect(hrefs((await search('deploy-many')).body)).toHaveLength(10)
})

test('nothing says what was searched, and texts of others are escaped', async () => {
  const none = await search('no <b>such</b> thing')
  expect([none.status, none.sections]).toEqual([200, []])
  expect(none.body).toContain('Nothing is found, as far as you may see. Searched are the slugs')
  expect(none.body).toContain('value="no &lt;b&gt;such&lt;/b&gt; thing"')
  expect((await search('')).body).toContain('<p>Searched are the slugs')
  for (const q of ['%', '\\', "'", '"; DROP', 'a '.repeat(40), '-', 'x:y/z=+.'])
    expect([q, (await search(q)).status]).toEqual([q, 200])
  expect((await search('\u0000')).status).toBe(400)
  expect((await search('x'.repeat(201))).status).toBe(400)
})

test('a caller finds what its lists show, and nothing else', async () => {
  const as = async (permissions: string[], owners: string[] = []) =>
    dashboard.session((await there.make.user({ permissions: ['view_queue', ...permissions], owners })).token)
  const blind = await as([])
  for (const q of [
    'wiki',
    'team-docs',
    operator.username,
    String(wiki.runId),
    String(wiki.runId).slice(-8),
    'deploy-4711',
    'single-1',
  ])
    expect([q, (await search(q, blind)).sections, (await search(q, blind)).to]).toEqual([q, [], undefined])
  const bound = await as(['view_application', 'view_run', 'view_oauth2provider'], ['team-many'])
  expect((await search('wiki', bound)).sections).toEqual([])
  expect((await search(String(old.runId), bound)).sections).toEqual([])
  expect(await search('many-3', bound)).toMatchObject({ status: 303, to: '/admin/applications/many-3/' })
  const withoutAudit = await as(['view_run'])
  expect((await search('single-1', withoutAudit)).sections).toEqual([])
  expect(await search('deploy-4712', withoutAudit)).toMatchObject({ status: 303, to: `/admin/runs/${old.runId}/` })
})

test('every page has the field in its header, one that is missing too', async () => {
  for (const url of ['/admin/', '/admin/audit/', '/admin/nothing/'])
    expect((await dashboard.send({ method: 'GET', url, headers: { cookie, accept: 'text/html' } })).body).toMatch(
      /<form role="search" action="\/admin\/search\/"><input type="search" name="q"/,
    )
})
