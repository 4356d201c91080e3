import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { nothingAllowed } from '../../src/plan/engine.ts'
import { application as applicationEntry, bench, scim as scimEntry } from '../apply/engine.ts'
import { type Answer, type Asker, type AskOptions, answered, applied, applyPath, type Entry } from '../support/asker.ts'
import { anApplication, dashboardOf, execute, installation, type Made, name, named, sql } from '../support/kit.ts'
import { people } from './people.ts'

/** What follows from a document for rows that it does not name is not reported to a caller who may not know these rows. */

const deploys = [
  ...['application', 'oauth2provider', 'scimprovider'].flatMap((each) =>
    ['view', 'add', 'change', 'delete'].map((action) => `${action}_${each}`),
  ),
  'view_flow',
]
const [oauth2, scim] = ['service_providers_oauth2.oauth2provider', 'service_providers_scim.scimprovider']

/** The name of a row of team one, which no answer to team two has. */
let secret: string
const there = await installation()
const one = await there.make.user({ permissions: deploys, owners: ['team-one'] })
const two = await there.make.user({ permissions: deploys, owners: ['team-two'] })
beforeEach(async () => {
  secret = `secret-${randomUUID()}`
  expect((await two.submit('oauth2', name, { owner: 'team-two' })).status).toBe(200)
})

const owned = (owner: string | null) => (owner === null ? {} : { 'gatewright-owner': owner })
const blueprint = (by: Asker, entries: readonly object[], owner = 'team-two', query = '') =>
  by.put(`/api/v3/blueprints/${query}`, { version: 1, metadata: { name: 'n' }, entries }, { headers: owned(owner) })

/** A provider of team one that the application of team two has: only a superuser made it so. */
async function foreignProvider(owner = 'team-one'): Promise<number> {
  const data = { uuid: randomUUID(), kind: 'oauth2', name: secret, owner, settings: {}, secrets: {} }
  const { pk } = await there.db.provider.create({ data })
  await there.db.application.update({ where: { slug: name }, data: { providerPk: pk } })
  return pk
}

/** All that the caller gets to see: the answer and the run. */
async function shown(by: Asker, answer: Answer): Promise<string> {
  const path = answer.headers['content-location']
  return `${answer.text} ${path === undefined ? '' : (await by.get(path)).text}`
}

describe('a provider of another owner that an application loses', () => {
  test('is not named in a plan, an apply and its run', async () => {
    await foreignProvider()
    for (const query of ['dry_run=true', '']) {
      const answer = await answered(200, two.submit('oauth2', name, { owner: 'team-two', query }))
      expect(await shown(two, answer)).not.toContain(secret)
      expect(await shown(two, answer)).not.toContain('has no application now')
    }
  })

  test('is named to a caller who may know it', async () => {
    await foreignProvider('team-two')
    expect((await two.submit('oauth2', name, { owner: 'team-two' })).text).toContain(
      `provider oauth2 \\"${secret}\\" has no application now`,
    )
  })

  test('is not named when it was to be deleted', async () => {
    await foreignProvider()
    const remove = { method: 'DELETE', url: `/api/v3/core/applications/${name}/?with_provider=true` }
    const answers = [
      await two.submit('oauth2', name, { owner: 'team-two', query: 'replace_provider=true' }),
      await two.submit('oauth2', name, { owner: 'team-two', query: 'replace_provider=true&dry_run=true' }),
      await two.send({ ...remove, headers: owned('team-two') }),
    ]
    for (const answer of answers) {
      expect(answer.status).toBe(403)
      expect(Object(answer.json).detail).toBe(
        'You may not delete the provider oauth2 that follows from this: the permission delete_oauth2provider holds for rows of owner "team-two" only.',
      )
    }
  })
})

test('an application of another owner that loses its provider is not named', async () => {
  const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  await there.db.application.update({ where: { slug: name }, data: { providerPk: null } })
  await there.db.application.create({
    data: { pk: randomUUID(), name: secret, slug: secret, providerPk: pk, owner: 'team-one' },
  })
  const gone = [{ model: oauth2, identifiers: { name }, state: 'absent' }]
  for (const query of ['?dry_run=true', '']) {
    const answer = await answered(200, blueprint(two, gone, 'team-two', query))
    expect(await shown(two, answer)).not.toContain(secret)
  }
})

test('an application of the same owner that loses its provider is named', async () => {
  const gone = [{ model: oauth2, identifiers: { name }, state: 'absent' }]
  expect((await blueprint(two, gone)).text).toContain(`application \\"${name}\\" has no provider now`)
})

test('a row of another kind that a key finds is not named', async () => {
  const pk = await foreignProvider()
  const answer = await answered(
    400,
    blueprint(two, [{ model: scim, identifiers: { pk }, attrs: { url: 'https://example.com' } }]),
  )
  expect(answer.text).not.toContain(secret)
  expect(answer.text).toContain(`${pk} is the key of a provider oauth2: choose another.`)
})

describe('what is left over in a stack', () => {
  const none: Entry = { ...anApplication('none'), state: 'absent' }
  let stack: string
  beforeEach(async () => {
    stack = `stack-${name}`
    await foreignProvider('team-two')
    const entries = [anApplication(name), { model: oauth2, identifiers: { name: secret } }]
    await applied(there.admin.apply(entries, { owner: 'team-two', stack, allow: 'takeover' }))
  })

  const standing = async () =>
    (await there.db.provider.count({ where: { name: secret } })) +
    (await there.db.application.count({ where: { slug: name } }))

  test('is neither named nor counted nor deleted without any permission for it', async () => {
    const caller = await there.make.user({
      permissions: ['delete_application', 'view_application'],
      owners: ['team-two'],
    })
    const send = (options: AskOptions & { query?: string }) =>
      caller.apply([none], { owner: 'team-two', stack, ...options })
    const planned = await answered(200, send({ query: 'dry_run=true' }))
    for (const answer of [planned, await applied(send({}))]) {
      expect(answer.text).not.toContain(secret)
      expect(answer.text).toContain('1 left over')
    }
    for (const allow of ['deletes=1', 'deletes=2']) {
      const refused = await answered(403, send({ allow }))
      expect(refused.text).not.toContain(secret)
      expect(refused.text).toContain('has objects that no entry names, and that the submitter may not delete')
    }
    const { text } = await answered(200, caller.get(`/api/v3/blueprints/stacks/${stack}/`))
    expect([text.includes(secret), text.includes(name)]).toEqual([false, true])
    expect(await standing()).toBe(2)
    const { text: done } = await applied(send({ ifMatch: planned.etag }))
    expect(done).not.toContain(secret)
    expect(await there.db.provider.count({ where: { name: secret } })).toBe(1)
  })

  test('of another owner is neither named nor deleted', async () => {
    const send = (options: AskOptions) => one.apply([none], { owner: 'team-one', stack, ...options })
    for (const answer of [await answered(403, send({ allow: 'deletes=2' })), await applied(send({}))]) {
      expect([answer.text.includes(secret), answer.text.includes(`"${name}`)]).toEqual([false, false])
    }
    expect(await standing()).toBe(2)
    await answered(404, one.get(`/api/v3/blueprints/stacks/${stack}/`))
  })

  test('is named to a caller who may delete it', async () => {
    const planned = await answered(200, two.apply([none], { owner: 'team-two', stack, query: 'dry_run=true' }))
    expect(planned.text).toContain(secret)
    await applied(two.apply([none], { owner: 'team-two', stack, ifMatch: planned.etag }))
    expect(await there.db.provider.count({ where: { name: secret } })).toBe(0)
  })
})

test('what is left over is not named by the worker either, and stays', async () => {
  const on = await bench()
  const caller = await people(on).user({ permissions: ['delete_application'] })
  await execute(on.db, sql`UPDATE roles SET owners = '{team-two}' WHERE permissions = '{delete_application}'`)
  await on.apply([scimEntry(secret), applicationEntry(name)], undefined, { owner: 'team-two', stack: 'two' })
  const none = [{ ...applicationEntry('none'), attrs: {}, state: 'absent' }] as const
  const allow = { ...nothingAllowed, deletes: 1 }
  const refused = await on.refusal(none, caller, { owner: 'team-two', stack: 'two', allow })
  const { logs } = await on.apply(none, caller, { owner: 'team-two', stack: 'two' })
  expect([...refused.logs, ...logs].join()).not.toContain(secret)
  expect(refused.logs.join()).toContain('that the submitter may not delete')
  expect(logs.join()).toContain(`application "${name}" is left over`)
  expect(await on.db.provider.count({ where: { name: secret } })).toBe(1)
})

test('what a row was, while another owner managed it, stands in no history for the next one', async () => {
  const taken = `${name}-taken`
  const app = async (owner: string, app: object) =>
    there.admin.submit('oauth2', taken, {
      app: { name: taken, ...app },
      headers: { 'gatewright-owner': owner, 'gatewright-allow': 'takeover' },
    })
  const answers = [
    await app('team-one', { group: secret }),
    await app('team-one', { group: 'then' }),
    await app('team-two', { group: 'then' }),
    await app('team-two', { group: 'now' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const path = `/api/v3/core/applications/${taken}/history/`
  const [mine, all] = [await two.get(path), await there.admin.get(path)]
  expect([mine.status, all.status]).toEqual([200, 200])
  expect(all.text).toContain(secret)
  expect(mine.text).not.toContain(secret)
  expect(mine.text).toContain('"now"')
})

describe('a run that takes an application over', () => {
  const allow = { 'gatewright-owner': 'team-two', 'gatewright-allow': 'takeover' }
  const runPath = ({ headers }: Answer) => headers['content-location'] ?? ''
  const viewerOf = (...owners: string[]) =>
    there.make.user({ permissions: [...deploys, 'view_run', 'view_queue'], owners })

  /** All that a caller is shown of a run, by the API and on pages. */
  async function allOf(by: Made, path: string): Promise<string> {
    const { send, session } = dashboardOf(there)
    const headers = { cookie: await session(by.token) }
    const [id = ''] = path.split('/').slice(-2)
    const runs = await by.get('/api/v3/blueprints/runs/?page_size=100')
    const listed = Object(runs.json).results.filter((each: { id: string }) => each.id === id)
    const pages = await Promise.all(
      ['', 'differences/', 'document/', 'roll-back/'].map((page) =>
        send({ method: 'GET', url: `/admin/runs/${id}/${page}`, headers }),
      ),
    )
    expect(pages[0]?.statusCode).toBe(200)
    const { body } = await send({ method: 'GET', url: '/admin/runs/', headers })
    const row = body.match(/<tr id="run-[\s\S]*?<\/tr>/g)?.filter((each) => each.includes(id)) ?? []
    expect([listed, row]).toEqual([[expect.anything()], [expect.anything()]])
    return [(await by.get(path)).text, JSON.stringify(listed), ...pages.map((page) => page.body), ...row].join('\n')
  }

  async function taken(query = ''): Promise<string> {
    const body = async (group: string) => named('oauth2', `${name}-one`, { app: { group } })
    expect((await one.put(applyPath, await body(secret), { headers: owned('team-one') })).status).toBe(200)
    const answer = await answered(200, there.admin.put(`${applyPath}${query}`, await body('now'), { headers: allow }))
    expect(answer.text).toContain(secret)
    return runPath(answer)
  }

  test.each(['', '?dry_run=true'])(
    'shows a caller bound to the next owner nothing of the former one: %j',
    async (query) => {
      const path = await taken(query)
      const shownTo = await allOf(await viewerOf('team-two'), path)
      expect([secret, 'team-one', one.username].filter((each) => shownTo.includes(each))).toEqual([])
      expect(shownTo).toContain('"group":{"from":{"not_shown":true},"to":"now"}')
      for (const by of [await viewerOf('team-one', 'team-two'), there.admin])
        expect((await by.get(path)).text).toMatch(new RegExp(`(?=.*"from":"${secret}")(?=.*belonged to owner)`))
      const seen = await allOf(await viewerOf('team-one', 'team-two'), path)
      expect(seen).toContain(secret)
    },
  )

  test('and deletes it, or is refused, names the former owner in no log', async () => {
    await taken('?dry_run=true')
    const document = (state: string) => ({
      ...{ version: 1, metadata: { name: 'n' } },
      entries: [{ ...anApplication(`${name}-one`), state }],
    })
    const send = (state: string, headers: Record<string, string>) =>
      there.admin.put('/api/v3/blueprints/', document(state), { headers })
    const gone = await send('absent', allow)
    expect(gone.text).toContain('belonged to owner \\"team-one\\"')
    const [two, both] = [await viewerOf('team-two'), await viewerOf('team-one', 'team-two')]
    const { id } = await there.db.run.findFirstOrThrow({ orderBy: { id: 'desc' }, select: { id: true } })
    expect(await allOf(two, runPath(gone))).not.toContain('team-one')
    // A worker refuses what is taken between the check and the apply.
    const data = { applied: false, reason: 'conflict', changes: [], logs: ['it belongs to owner "team-one"'] }
    await there.db.run.update({ where: { id }, data })
    expect(await allOf(two, runPath(gone))).not.toContain('team-one')
    expect((await there.admin.get(runPath(gone))).text).toContain('team-one')
    expect((await both.get(runPath(gone))).status).toBe(200)
  })

  test('shows the log of another run, and of the own one that was refused', async () => {
    const answer = await there.admin.submit('oauth2', name, { owner: 'team-two' })
    expect(await allOf(await viewerOf('team-two'), runPath(answer))).toContain(`application \\"${name}\\" unchanged`)
    const own = runPath(await two.submit('oauth2', name, { owner: 'team-two' }))
    const [id = ''] = own.split('/').slice(-2)
    await there.db.run.update({ where: { id }, data: { applied: false, reason: 'conflict', logs: ['two many'] } })
    expect((await two.get(own)).text).toContain('two many')
  })
})

test('a name that a row had under another owner finds no run', async () => {
  const provider = (owner: string, of: string, attrs: object) => {
    const entries = [{ model: oauth2, identifiers: { name: of }, attrs }]
    const document = { version: 1, metadata: { name: 'n' }, owner, entries }
    return there.admin.put('/api/v3/blueprints/', document, { headers: { 'gatewright-allow': 'takeover' } })
  }
  const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  await there.db.provider.update({ where: { pk }, data: { name: secret, owner: 'team-one' } })
  const answers = [await provider('team-one', secret, { sub_mode: 'user_email' })]
  await there.db.provider.update({ where: { pk }, data: { name } })
  answers.push(await provider('team-two', name, { sub_mode: 'user_id' }))
  expect(answers.map(({ text }) => text)).toEqual(answers.map(() => expect.stringContaining('"applied":true')))
  await answered(200, blueprint(two, [{ model: oauth2, identifiers: { name }, attrs: { sub_mode: 'user_email' } }]))
  const found = async (by: Asker, of: string) =>
    Object((await by.get(`/api/v3/blueprints/runs/?object=oauth2provider:${of}`)).json).results.length
  expect((await found(there.admin, secret)) > 1).toBe(true)
  expect((await found(two, name)) > 0).toBe(true)
  expect(await found(two, secret)).toBe(0)
})

test('a slug that an application has or had under another owner finds no history', async () => {
  const { pk } = await there.db.application.findUniqueOrThrow({ where: { slug: name } })
  const group = (owner: string, slug: string) => {
    const entries = [anApplication(slug, { group: randomUUID() })]
    const document = { version: 1, metadata: { name: 'n' }, owner, entries }
    return there.admin.put('/api/v3/blueprints/', document, { headers: { 'gatewright-allow': 'takeover' } })
  }
  const called = (slug: string, owner: string) => there.db.application.update({ where: { pk }, data: { slug, owner } })
  const historyOf = async (by: Asker, slug: string) =>
    (await by.get(`/api/v3/core/applications/${slug}/history/`)).status
  const [then, now] = [`then-${name}`, `now-${name}`]
  await called(then, 'team-one')
  expect((await group('team-one', then)).json).toMatchObject({ applied: true })
  await called(name, 'team-two')
  expect((await group('team-two', name)).json).toMatchObject({ applied: true })
  expect([await historyOf(two, name), await historyOf(two, then), await historyOf(one, then)]).toEqual([200, 404, 200])
  await called(now, 'team-one')
  expect([await historyOf(two, name), await historyOf(two, now), await historyOf(one, now)]).toEqual([200, 404, 200])
  expect([await historyOf(there.admin, then), await historyOf(there.admin, now)]).toEqual([200, 200])
})
