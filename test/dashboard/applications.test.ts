import { expect, test } from 'vitest'
import { answered, dashboardOf, installation, type SubmitOptions, textOf, until } from '../support/kit.ts'
import { statesOf } from '../support/operations.ts'

/** The pages of applications: what there is, whose it is, and what was done to it. */

const permissions = ['view_queue', 'view_application', 'view_radiusprovider', 'view_run', 'view_user']
const service = await installation()
const dashboard = dashboardOf(service)
const operator = await service.make.user({ permissions })

const { get } = dashboard
const put = (slug: string, options?: SubmitOptions) => answered(200, service.admin.submit('radius', slug, options))
const list = '/admin/applications/'
const page = (slug: string) => `${list}${slug}/`
const slugsOf = (body: string) =>
  [...body.matchAll(/href="\/admin\/applications\/([\w-]+)\/"/g)].map(([, slug]) => slug)

test('the list is searched by words and owner, page by page', async () => {
  for (let each = 10; each < 65; each += 1) await put(`paged-${each}`, { owner: 'team-pages' })
  const first = (await get(operator, `${list}?owner=team-pages`)).body
  expect(first).toContain('55 applications')
  expect(slugsOf(first)).toHaveLength(50)
  const [, next = ''] = /href="([^"]+)">Next</.exec(first) ?? []
  const second = (await get(operator, next.replaceAll('&amp;', '&'))).body
  expect(new Set([...slugsOf(first), ...slugsOf(second)]).size).toBe(55)
  expect(slugsOf((await get(operator, `${list}?text=paged-11`)).body)).toEqual(['paged-11'])
  expect((await get(operator, `${list}?text=there-is-none`)).body).toContain('0 applications')
})

test('callers see what they see in the API: those of their owners, or none', async () => {
  await put('sight-a', { owner: 'team-a' })
  await put('sight-b', { owner: 'team-b' })
  const bound = await service.make.user({ permissions, owners: ['team-a'] })
  expect(slugsOf((await get(bound, `${list}?text=sight`)).body)).toEqual(['sight-a'])
  expect((await get(bound, page('sight-a'))).statusCode).toBe(200)
  expect((await get(bound, page('sight-b'))).statusCode).toBe(404)
  const plain = await service.make.user({ permissions: ['view_queue', 'view_run'] })
  for (const url of [list, page('sight-a')]) {
    const { statusCode, body } = await get(plain, url)
    expect([url, statusCode, body.includes('sight-a')]).toEqual([url, 403, false])
  }
})

test('one has a timeline with from -> to, who and the run, also when it is renamed and deleted', async () => {
  await put('timed', { app: { name: '<b>First</b>' } })
  await put('timed', { app: { name: 'Second' } })
  const { id } = await service.db.run.findFirstOrThrow({ where: { slug: 'timed' }, orderBy: { createdAt: 'desc' } })
  const { body } = await get(operator, page('timed'))
  expect(body).toContain('name: <span class="quiet">&lt;b&gt;First&lt;/b&gt;</span> -> Second')
  expect(body).toContain(`href="/admin/runs/${id}/"`)
  expect(body).toMatch(/changed<\/span><br>application <span class="name" title="timed">timed/)
  expect((await get(operator, `/admin/runs/${id}/`)).body).toContain('href="/admin/applications/timed/"')

  const secretive = await service.make.user({ permissions: ['view_queue', 'view_application'] })
  const hidden = (await get(secretive, page('timed'))).body
  expect(hidden.includes('<td class="name">admin')).toBe(false)
  expect(hidden.includes(id)).toBe(false)
  expect(hidden.includes('not shown')).toBe(true)

  expect((await service.admin.delete('/api/v3/core/applications/timed/')).status).toBe(204)
  const gone = (await get(operator, page('timed'))).body
  expect(gone).toContain('There is no application of this slug now')
  expect(gone).toMatch(/class="mark bad">deleted</)
  expect((await get(operator, page('never-was'))).statusCode).toBe(404)
})

test('one shows the names of what it refers to, compares each entry with before, and counts its fields', async () => {
  const flow = await service.db.flow.findUniqueOrThrow({ where: { slug: 'default-authorization-explicit' } })
  await put('by-key', { provider: { authorization_flow: flow.pk } })
  const { id } = await service.db.run.findFirstOrThrow({ where: { slug: 'by-key' } })
  const application = await service.db.application.findUniqueOrThrow({ where: { slug: 'by-key' } })
  const { body } = await get(operator, page('by-key'))
  expect(body).not.toContain(flow.pk)
  expect(textOf(body)).toContain('authorization_flow: default-authorization-explicit')
  expect(body).toContain(`<a href="/admin/runs/${id}/#changes">compare with before</a>`)
  expect(body).toMatch(/<summary>\d+ fields and \d+ defaults?<\/summary>/)
  const run = (await get(operator, `/admin/runs/${id}/`)).body
  expect([run.includes(flow.pk), run.includes('<section id="changes">')]).toEqual([false, true])

  // Set by its key alone, past the service: the history has no name of it.
  await service.db.auditRow.deleteMany()
  expect(textOf((await get(operator, page('by-key'))).body)).toContain('provider: by-key')
  const blind = await service.make.user({ permissions: ['view_queue', 'view_application'] })
  expect(textOf((await get(blind, page('by-key'))).body)).toContain(`provider: ${application.providerPk}`)
})

test('one stands with what it refers to now, and not with what was recorded', async () => {
  for (const slug of ['portal', 'wiki']) await put(slug)
  const standing = async (slug: string) => {
    const [, text = ''] = textOf((await get(operator, page(slug))).body).split('As it stands')
    return text.split('What was done to it')[0]
  }
  const [flow, wiki] = await Promise.all([
    service.db.flow.findUniqueOrThrow({ where: { slug: 'default-authorization-explicit' } }),
    service.db.provider.findUniqueOrThrow({ where: { name: 'wiki' } }),
  ])
  expect(await standing('portal')).not.toContain(flow.slug)
  await service.db.provider.update({ where: { name: 'portal' }, data: { authorizationFlowPk: flow.pk } })
  expect(await standing('portal')).toContain(`authorization_flow: default-authorization-implicit -> ${flow.slug}`)
  await service.db.application.update({ where: { slug: 'wiki' }, data: { providerPk: null } })
  await service.db.application.update({ where: { slug: 'portal' }, data: { providerPk: wiki.pk } })
  expect(await standing('portal')).toContain('provider: portal -> wiki')
  await put('chat')
  await put('talk', { app: { was: 'chat' }, provider: { was: 'chat' } })
  expect(await standing('talk')).toContain('provider: talk')
  for (const slug of ['portal', 'wiki']) await service.db.application.delete({ where: { slug } })
})

const rowOf = (body: string, owner: string) =>
  textOf(body.match(new RegExp(`<tr id="team-${owner}".*?</tr>`, 's'))?.[0] ?? '')

test('a first deployment that is not applied has a page, and its owner a row', async () => {
  const bound = await service.make.user({ permissions, owners: ['team-a'] })
  const release = service.hold()
  const { run } = await service.admin.submit('radius', 'first-ever', { owner: 'team-new', prefer: 'respond-async' })
  expect(textOf((await get(operator, page('first-ever'))).body)).toMatch(/not there.*waiting/s)
  await answered(200, service.admin.post(`${run}cancel/`))
  const entry = { model: 'service_core.application', identifiers: { slug: 'first-of-set' }, attrs: { name: 'First' } }
  const { runId: id } = await service.admin.apply([entry], { prefer: 'respond-async' })
  await service.db.run.update({ where: { id }, data: { blueprint: 'v1.not.sealed.here' } })
  release()
  await until('the page of the one that a document names', async () =>
    textOf((await get(operator, page('first-of-set'))).body).includes('sealed under key'),
  )
  expect(textOf((await get(operator, page('first-ever'))).body)).toMatch(/not there.*cancelled.*cancelled by admin/s)
  expect((await get(bound, page('first-ever'))).statusCode).toBe(404)
  const search = '/admin/search/?q=first-ever'
  expect((await get(operator, search)).headers.location).toBe(page('first-ever'))
  expect((await get(bound, search)).body).toContain('Nothing is found')
  for (const path of ['/admin/', `${list}?owner=team-new`])
    expect(rowOf((await get(operator, path)).body, 'team-new')).toMatch(/team-new cancelled [\d:]+ all runs 0 0 0 0/)
  // No filter has the runs without an owner.
  expect(rowOf((await get(operator, '/admin/')).body, '')).toMatch(/none failed [\d:]+ \d+ \d+ \d+ \d+/)
  await put('first-ever', { owner: 'team-new' })
  expect(rowOf((await get(operator, '/admin/')).body, 'team-new')).toMatch(/team-new applied [\d:]+ all runs 1 0 0 0/)
  expect((await get(operator, page('first-ever'))).body).not.toContain('The last runs that name it')
})

test('one whose last run was refused is failing in the banner and in what needs attention', async () => {
  await put('refused')
  const shown = async () => {
    const [banner = '', attention = ''] = textOf((await get(operator, '/admin/')).body).split('Needs attention')
    return [banner, attention].map((text) => /\d+ applications? failing/.exec(text)?.[0])
  }
  expect(await shown()).toEqual([undefined, undefined])
  await statesOf(service).refused('refused')
  expect(await shown()).toEqual(['1 application failing', '1 application failing'])
  await put('refused')
})

test('one that was changed past the service says so', async () => {
  await put('outside')
  expect((await get(operator, page('outside'))).body).not.toContain('changed outside</span>')
  await service.db.application.updateMany({ where: { slug: 'outside' }, data: { metaDescription: 'by SQL' } })
  // Workers have not compared it yet.
  const { body } = await get(operator, page('outside'))
  expect(body.match(/[\w ]+<\/span> \(meta_description\)|applied<\/span>/g)).toEqual([
    'changed outside</span> (meta_description)',
  ])
  expect(body).toContain('changed outside</span> <span class="says">')
})

test('one that was deleted past the service says so and leads to its plan, until it is put back', async () => {
  const administrator = await service.make.user({ superuser: true })
  await put('erased', { owner: 'team-a' })
  await service.db.application.deleteMany({ where: { slug: 'erased' } })
  const erased = (await get(administrator, page('erased'))).body
  expect(erased).toContain('There is no application of this slug now')
  expect(erased).toContain('changed outside</span>')
  const { id } = await service.db.run.findFirstOrThrow({ where: { slug: 'erased' } })
  expect(erased).toContain(`<a href="/admin/runs/${id}/roll-back/">Plan its last document again</a>`)

  // Callers see what they would see of it if it were there.
  const own = await service.make.user({ permissions, owners: ['team-a'] })
  const other = await service.make.user({ permissions, owners: ['team-b'] })
  expect((await get(own, page('erased'))).body).toContain('changed outside</span>')
  expect((await get(other, page('erased'))).statusCode).toBe(404)

  await put('erased', { owner: 'team-a' })
  expect((await get(operator, page('erased'))).body).not.toContain('changed outside</span>')
})

test('a long history is read part by part', async () => {
  for (let each = 0; each < 25; each += 1) await put('long', { app: { meta_description: '<'.repeat(400) + each } })
  const first = (await get(operator, page('long'))).body
  const [, older = ''] = /href="([^"]+)">Older</.exec(first) ?? []
  const second = (await get(operator, older)).body
  const actions = [first, second].flatMap((body) =>
    [...body.matchAll(/class="mark \w+">(created|changed)</g)].map(([, what]) => what),
  )
  expect(actions.filter((what) => what === 'changed')).toHaveLength(24)
  expect(second).toContain('The newest')
})

test('the list has the state of each, as a filter too, and the page of an owner its last deployment', async () => {
  for (const slug of ['fine', 'broken', 'by-sql']) await put(slug, { owner: 'team-states' })
  const release = service.hold()
  const { runId: id } = await service.admin.submit('radius', 'broken', {
    ...{ app: { group: 'New' }, owner: 'team-states', prefer: 'respond-async' },
  })
  expect((await get(operator, page('broken'))).body).toContain('A run that names it has not ended.')
  expect((await get(operator, page('broken'))).body).toContain(`<a href="/admin/runs/${id}/"`)
  await service.db.run.update({ where: { id }, data: { blueprint: 'v1.not.sealed.here' } })
  release()
  const run = () => service.db.run.findUniqueOrThrow({ where: { id } })
  await until('the run to fail', async () => (await run()).state === 'failed')
  const chief = await service.make.user({ permissions: ['view_queue', 'manage_queue'] })
  await service.db.application.update({ where: { slug: 'by-sql' }, data: { group: 'by SQL' } })
  expect((await get(operator, list)).body).not.toContain('Compared at')
  expect((await dashboard.post(chief, list, {})).statusCode).toBe(303)
  expect((await get(operator, list)).body).toMatch(/Compared at <time [^>]+>[\d-]+ [\d:]+ UTC/)
  const states = async (query: string) => {
    const { body } = await get(operator, `/admin/applications/?owner=team-states${query}`)
    const rows = [...body.matchAll(/<tr id="application-.*?<\/tr>/gs)]
      .map(([text]) => text.replace(/<[^>]+>/g, ' '))
      .sort()
    return { body, rows }
  }
  const { body, rows } = await states('')
  expect(rows).toHaveLength(3)
  for (const row of [/changed outside.*\(group\).*by-sql/, /failing.*since.*\(.*SECRET_KEY.*broken/, /applied.*fine/])
    expect(rows).toContainEqual(expect.stringMatching(row))
  expect(body).toMatch(new RegExp(`<a href="/admin/runs/${id}/">sealed under key`))
  expect(rowOf(body, 'team-states')).toMatch(/team-states failed [\d:]+ all runs 1 1 0 1/)
  for (const [state, slug] of [
    ['applied', 'fine'],
    ['failing', 'broken'],
    ['changed_outside', 'by-sql'],
  ] as const)
    expect((await states(`&state=${state}`)).rows).toEqual([expect.stringContaining(slug)])
  const changed = (await get(operator, page('by-sql'))).body
  expect(changed).toContain('group: <span class="quiet">Network</span> -> by SQL')
  const failing = (await get(operator, page('broken'))).body
  expect(failing).toMatch(/failing<\/span> since/)
})

test('one that was deleted past the service is counted and listed until it is put back', async () => {
  const chief = await service.make.user({ permissions: [...permissions, 'manage_queue'] })
  const other = await service.make.user({ permissions, owners: ['team-a'] })
  const compare = () => dashboard.post(chief, list, {})
  await compare()
  const countOf = async (as = chief) =>
    textOf((await get(as, '/admin/')).body).match(/(\d+) applications? changed outside/)?.[1] ?? '0'
  const before = Number(await countOf())
  for (const slug of ['Lost-fax', 'kept-fax', 'ended-fax']) await put(slug, { owner: 'team-lost' })
  await service.db.application.deleteMany({ where: { slug: 'Lost-fax' } })
  await answered(
    204,
    service.admin.delete('/api/v3/core/applications/ended-fax/', { headers: { 'gatewright-owner': 'team-lost' } }),
  )
  const says = 'Deleted past the service: Lost-fax'
  const shown = async (query: string, as = chief) => textOf((await get(as, `${list}${query}`)).body).includes(says)
  expect([await countOf(), await shown('')]).toEqual([String(before), false])
  await compare()
  expect([await countOf(), await countOf(other)]).toEqual([String(before + 1), '0'])
  expect(rowOf((await get(chief, '/admin/')).body, 'team-lost')).toMatch(/team-lost applied [\d:]+ all runs 1 0 0 1/)
  for (const query of ['', '?state=changed_outside&owner=team-lost', '?text=fax+lost'])
    expect([query, await shown(query), await shown(query, other)]).toEqual([query, true, false])
  for (const query of ['?state=applied', '?owner=team-a', '?text=kept-fax'])
    expect([query, await shown(query)]).toEqual([query, false])
  expect((await get(chief, '/admin/search/?q=lost')).headers.location).toBe(page('Lost-fax'))
  expect((await get(other, '/admin/search/?q=lost')).body).toContain('Nothing is found')

  await put('Lost-fax', { owner: 'team-lost' })
  expect([await countOf(), await shown('')]).toEqual([String(before), false])
  await compare()
  expect([await countOf(), await shown('')]).toEqual([String(before), false])
  expect(
    await service.db.applicationState.findMany({ where: { OR: [{ slug: 'Lost-fax' }, { slug: 'ended-fax' }] } }),
  ).toEqual([
    expect.objectContaining({ outside: [], gonePk: null }),
    expect.objectContaining({ outside: [], gonePk: null }),
  ])
})
