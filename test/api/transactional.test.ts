import { beforeAll, describe, expect, test } from 'vitest'
import { type Installation, installation, type QueueKind } from '../support/installation.ts'
import { applyPath, counts, example, kinds, named, needs, until, versions } from '../support/kit.ts'

/** What holds for both stores of the queue. */
function claims(queue: QueueKind): void {
  let there: Installation
  beforeAll(async () => {
    there = await installation({ queue })
  })
  const put = async (body: unknown, options = {}) => {
    const answer = await there.admin.put(applyPath, body, options)
    return { ...answer, logs: (answer.json as { logs?: string[] }).logs ?? [] }
  }
  const provider = (name: string) =>
    there.db.provider.findUniqueOrThrow({ where: { name }, include: { application: true } })

  describe.each(kinds)('the example of %s', (kind) => {
    test('applies as it is to a fresh installation', async () => {
      const body = await example(kind)
      const { status, json, logs } = await put(body)
      expect([status, Object.keys(json as object)]).toEqual([200, ['applied', 'logs']])
      expect(json).toMatchObject({ applied: true })
      const made = await provider(String(body.provider.name))
      expect(made).toMatchObject({ kind, application: { slug: body.app.slug, name: body.app.name } })
      expect(logs).toEqual([
        `provider ${kind} "${body.provider.name}" created (pk ${made.pk})`,
        `application "${body.app.slug}" created (pk ${made.application?.pk})`,
      ])
    })

    test('applied again, writes no row of the objects', async () => {
      const body = await example(kind)
      const before = await versions(there.db)
      const rows = await counts(there.db)
      const { status, json, logs } = await put(body)
      expect(status).toBe(200)
      expect(json).toMatchObject({ applied: true })
      expect(logs).toEqual([
        `provider ${kind} "${body.provider.name}" unchanged`,
        `application "${body.app.slug}" unchanged`,
      ])
      expect(await versions(there.db)).toEqual(before)
      expect(await counts(there.db)).toEqual({
        ...rows,
        runs: Number(rows.runs) + 1,
        audit_rows: Number(rows.audit_rows) + 1,
      })
    })
  })

  test('fields that were not sent stay as they are, and the log names the changed ones', async () => {
    const body = await named('oauth2', 'partial')
    await put(body)
    const before = await provider('partial')
    const { logs } = await put({
      app: { slug: 'partial', group: 'New', meta_publisher: 'Somebody' },
      provider_model: body.provider_model,
      provider: { name: 'partial', sub_mode: 'user_email', client_secret: 'another secret of many letters' },
    })
    expect(logs).toEqual([
      'provider oauth2 "partial" updated: client_secret changed, sub_mode "user_uuid" -> "user_email"',
      expect.stringMatching(/^application "partial" updated: meta_publisher .* -> "Somebody", group .* -> "New"$/),
    ])
    const after = await provider('partial')
    expect(after.settings).toEqual({ ...Object(before.settings), sub_mode: 'user_email' })
    expect({ ...after, settings: 0, secrets: 0, application: 0 }).toEqual({
      ...before,
      settings: 0,
      secrets: 0,
      application: 0,
    })
    expect(after.application).toEqual({ ...before.application, group: 'New', metaPublisher: 'Somebody' })
  })

  test('a read value may be sent back', async () => {
    await put(await named('saml', 'shown'))
    const made = await provider('shown')
    const body = await named('saml', 'shown', {
      app: {
        pk: made.application?.pk,
        provider: made.pk,
        provider_obj: {},
        backchannel_providers_obj: [],
        launch_url: null,
        meta_icon: null,
      },
      provider: {
        pk: made.pk,
        component: 'x',
        verbose_name: 'x',
        meta_model_name: 'x',
        assigned_application_slug: 'shown',
      },
    })
    expect((await put(body)).logs).toEqual(['provider saml "shown" unchanged', 'application "shown" unchanged'])
  })

  test('a slug of 255 characters is stored, read and found in history and pages', async () => {
    const slug = 'x'.repeat(255)
    expect((await put(await named('radius', slug, { provider: { name: 'long' } }))).status).toBe(200)
    for (const path of ['/', '/history/'])
      expect((await there.admin.get(`/api/v3/core/applications/${slug}${path}`)).status).toBe(200)
    expect((await put(await named('radius', `${slug}x`, { provider: { name: 'longer' } }))).status).toBe(400)
  })

  test('names stand where keys do, and say unchanged when they are sent again', async () => {
    const names = {
      app: { provider: 'By name' },
      provider: {
        authorization_flow: 'default-authorization-implicit',
        property_mappings: ['gatewright/oauth2/scope-openid', 'OpenID scope email'],
        signing_key: 'Gatewright self-signed',
      },
    }
    const body = await named('oauth2', 'by-name', { ...names, provider: { ...names.provider, name: 'By name' } })
    expect((await put(body)).status).toBe(200)
    const again = await put(body)
    expect(again.logs).toEqual(['provider oauth2 "By name" unchanged', 'application "by-name" unchanged'])
    const run = await there.admin.get(again.run)
    expect(run.json).toMatchObject({ blueprint: expect.stringContaining('default-authorization-implicit') })
    const { settings, ...row } = await provider('By name')
    expect(row).toMatchObject({ authorizationFlowPk: '6f7e0000-0000-4000-8000-000000000103' })
    expect(settings).toMatchObject({ signing_key: '6f7e0000-0000-4000-8000-000000000301' })
  })
  test.each(['provider_model', 'providerModel'])(
    '%s inside the provider may repeat the one beside it',
    async (field) => {
      const name = `repeated-${field}`
      const { provider_model } = await named('ldap', name)
      const body = await named('ldap', name, { provider: { [field]: provider_model } })
      expect(await put(body)).toMatchObject({ status: 200, json: { applied: true } })
      expect((await put(body)).logs).toEqual([`provider ldap "${name}" unchanged`, `application "${name}" unchanged`])
    },
  )

  test('a backchannel provider is added to an application with a provider', async () => {
    await put(await named('scim', 'behind'))
    const { pk } = await provider('behind')
    const body = await named('oauth2', 'front', { app: { backchannel_providers: [pk] } })
    expect((await put(body)).status).toBe(200)
    expect((await put(body)).logs[1]).toBe('application "front" unchanged')
    expect(await there.db.backchannelProvider.findMany()).toMatchObject([{ providerPk: pk }])
  })

  test('the answer names its run, which can be read', async () => {
    const { headers } = await put(await named('radius', 'located'), { headers: { 'x-request-id': 'pipeline-17' } })
    const path = headers['content-location'] ?? ''
    expect(path).toMatch(/^\/api\/v3\/blueprints\/runs\/[0-9a-f-]{36}\/$/)
    const run = await there.admin.get(path)
    expect(run).toMatchObject({
      status: 200,
      json: { state: 'done', applied: true, title: 'apply radius located', request_id: 'pipeline-17' },
    })
  })

  test('one audit row for an applied run, with field names and no value', async () => {
    const rows = () => there.db.auditRow.findMany({ where: { requestId: 'audited' }, orderBy: { pk: 'asc' } })
    const headers = { 'x-request-id': 'audited' }
    await put(await named('ldap', 'audited'), { headers })
    await put(await named('ldap', 'audited', { app: { group: 'A group of its own' } }), { headers })
    await put(await named('ldap', 'audited', { app: { slug: 'no slug' } }), { headers })
    const admin = await there.db.user.findUniqueOrThrow({ where: { username: 'admin' } })
    const [first, second, ...more] = await rows()
    expect(more).toEqual([])
    expect(first).toMatchObject({
      action: 'apply',
      actorPk: admin.pk,
      actorName: 'admin',
      changes: [{ action: 'create' }, { action: 'create' }],
    })
    expect(second).toMatchObject({
      changes: [{ model: 'service_core.application', action: 'update', fields: ['group'] }],
    })
    expect(JSON.stringify([first?.changes, second?.changes])).not.toContain('A group of its own')
    expect(await there.db.run.count({ where: { id: { in: [String(first?.runId), String(second?.runId)] } } })).toBe(2)
  })

  describe('If-None-Match: *', () => {
    const createOnly = { ifNoneMatch: '*' }

    test('creates a missing application', async () => {
      expect(await put(await named('rac', 'only'), createOnly)).toMatchObject({ status: 200, json: { applied: true } })
    })

    test.each([
      ['slug', 'taken', 'free', 'application "taken"'],
      ['provider name', 'free', 'taken', 'provider rac "taken"'],
    ])('is 412 for a taken %s, and nothing is written', async (_, slug, name, what) => {
      await put(await named('rac', 'taken'))
      const before = await counts(there.db)
      const answer = await put(await named('rac', name, { app: { slug } }), createOnly)
      expect(answer).toMatchObject({
        status: 412,
        json: { code: 'precondition_failed', detail: expect.stringContaining(`${what} is there already`) },
      })
      expect(await counts(there.db)).toEqual(before)
    })

    test('is 412 for a provider name that another kind has', async () => {
      await put(await named('rac', 'of-rac'))
      expect(await put(await named('saml', 'of-rac', { app: { slug: 'of-saml' } }), createOnly)).toMatchObject({
        status: 412,
      })
    })

    test('of 40 at once, one is 200 and the others 412', async () => {
      const body = await named('rac', 'raced')
      const answers = await Promise.all(Array.from({ length: 40 }, () => put(body, createOnly)))
      const statuses = answers.map(({ status }) => status).sort()
      expect(statuses).toEqual([200, ...Array.from({ length: 39 }, () => 412)])
      expect(await there.db.provider.count({ where: { name: 'raced' } })).toBe(1)
    })
  })

  test('40 identical ones at once have one effect, and all of them report it as applied', async () => {
    const body = await named('radius', 'crowd')
    const answers = await Promise.all(Array.from({ length: 40 }, () => put(body)))
    expect(answers.map(({ status, json }) => [status, (json as { applied: boolean }).applied])).toEqual(
      answers.map(() => [200, true]),
    )
    expect(answers.filter(({ logs }) => logs[0]?.includes('created'))).toHaveLength(1)
    expect(answers.filter(({ logs }) => logs[0]?.includes('unchanged'))).toHaveLength(39)
  })

  test('nothing is left waiting, and no job failed', async () => {
    expect(await there.db.run.count({ where: { state: { not: 'done' } } })).toBe(0)
    const jobs = await until('the jobs to end', async () => {
      const found = await there.queue.getJobCounts('waiting', 'active', 'failed', 'completed')
      return found.active === 0 ? found : null
    })
    expect(jobs).toMatchObject({ waiting: 0, active: 0, failed: 0 })
    expect(jobs.completed).toBeGreaterThan(20)
  })
}

describe("with the queue on PostgreSQL's", () => claims('postgres'))
describe.runIf(needs('redis-server'))('with the queue on Redis', () => claims('redis'))
