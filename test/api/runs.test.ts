import { describe, expect, test } from 'vitest'
import { keyring } from '../../src/db/seal.ts'
import { parse } from '../../src/document/yaml.ts'
import { type Answer, answered, applyPath, example, installation, kinds, named } from '../support/kit.ts'

const there = await installation()
const submitter = await there.make.user({
  permissions: ['add', 'change', 'view'].flatMap((verb) => [`${verb}_application`, `${verb}_oauth2provider`]),
})

/** Submits, and gives the path of the run. */
async function submitted(body: unknown, as = submitter): Promise<string> {
  const answer = await answered(200, as.put(applyPath, body))
  return answer.run
}

const seen = ({ json }: Answer) =>
  json as { generated: Record<string, Record<string, string>>; blueprint: string; [member: string]: unknown }
const withoutSecrets = (name: string) =>
  named('oauth2', name, { provider: { client_id: undefined, client_secret: undefined } })

test('a run is shown with every field', async () => {
  const run = await submitter.get(await submitted(await named('oauth2', 'all')))
  const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(run.json).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
    state: 'done',
    title: 'apply oauth2 all',
    applied: true,
    reason: null,
    ...{ cause: null, repaired: null, repaired_by: null, failed_attempts: [] },
    logs: [
      expect.stringContaining('provider oauth2 "all" created'),
      expect.stringContaining('application "all" created'),
    ],
    blueprint: expect.stringContaining('!KeyOf provider'),
    generated: {},
    generated_until: null,
    submitter: submitter.pk,
    request_id: expect.any(String),
    kind: 'oauth2',
    slug: 'all',
    submitter_name: submitter.username,
    attempts: 1,
    created_at: at,
    started_at: at,
    finished_at: at,
    owner: null,
    owners: [],
    message: null,
    unreadable: [],
    ...{ stack: null, errors: [], not_put_back: [], cancelled_by: null, former: null, pipeline: null },
    progress: null,
    allowed: [],
    mode: 'apply',
    changes: [
      expect.objectContaining({ key: { name: 'all' }, action: 'create' }),
      expect.objectContaining({ key: { slug: 'all' }, action: 'create' }),
    ],
    etag: null,
    queue_ms: expect.any(Number),
    work_ms: expect.any(Number),
  })
  const { created_at, started_at, finished_at, queue_ms, work_ms } = seen(run)
  expect(queue_ms).toBe(Date.parse(String(started_at)) - Date.parse(String(created_at)))
  expect(work_ms).toBe(Date.parse(String(finished_at)) - Date.parse(String(started_at)))
  expect(run.headers['cache-control']).toBe('no-store')
})

describe('who may read a run', () => {
  test('its submitter, superusers and holders of view_run; for others there is no such run', async () => {
    const path = await submitted(await named('oauth2', 'whose'))
    const stranger = await there.make.user({
      permissions: ['add_application', 'add_oauth2provider', 'view_application'],
    })
    expect((await submitter.get(path)).status).toBe(200)
    expect((await there.admin.get(path)).status).toBe(200)
    const auditor = await there.make.user({ permissions: ['view_run'] })
    expect((await auditor.get(path)).status).toBe(200)
    const none = await stranger.get('/api/v3/blueprints/runs/6f7e0000-0000-7000-8000-000000000000/')
    expect(await stranger.get(path)).toMatchObject({ status: 404, json: none.json })
    expect(none.json).toEqual({ detail: 'There is no such run.', code: 'not_found' })
    expect(await there.as('').get(path)).toMatchObject({ status: 401 })
  })

  test('a run of a deleted submitter is visible to superusers only', async () => {
    const leaver = await there.make.user({ permissions: ['add_application', 'add_oauth2provider'] })
    const path = await submitted(await named('oauth2', 'leaver'), leaver)
    await there.db.user.delete({ where: { pk: leaver.pk } })
    expect((await submitter.get(path)).status).toBe(404)
    expect((await there.admin.get(path)).json).toMatchObject({ submitter: null })
  })

  test.each([
    'x',
    '1',
    '6f7e0000',
    `${'a'.repeat(400)}`,
    '%00',
    "'",
    '6f7e0000-0000-7000-8000-00000000000g',
    '..%2f..',
    '%F0%9F%98%80',
  ])('a malformed key is 404: %s', async (key) => {
    const answer = await submitter.get(`/api/v3/blueprints/runs/${key}/`)
    expect({ status: answer.status, json: answer.json }).toEqual({
      status: 404,
      json: { detail: expect.any(String), code: 'not_found' },
    })
  })

  test('a key in capitals is the same key', async () => {
    const path = await submitted(await named('oauth2', 'capitals'))
    const capitals = path.replace(/[0-9a-f-]{36}/, (id) => id.toUpperCase())
    expect((await submitter.get(capitals)).status).toBe(200)
  })
})

describe('generated values', () => {
  test('are for the submitter and superusers', async () => {
    const path = await submitted(await withoutSecrets('made-up'))
    const own = seen(await submitter.get(path))
    const made = await there.db.provider.findUniqueOrThrow({ where: { name: 'made-up' } })
    expect(own.generated).toEqual({
      provider: { client_id: made.oauth2ClientId, client_secret: expect.stringMatching(/^\w{128}$/) },
    })
    for (const _ of ['once', 'once more']) expect(seen(await there.admin.get(path)).generated).toEqual(own.generated)
    const foreign = await (await there.make.user({ permissions: ['view_run'] })).get(path)
    expect([foreign.status, seen(foreign).generated]).toEqual([200, {}])
    expect(foreign.text).not.toContain(own.generated.provider?.client_secret)
  })

  test('are not for another user who impersonates the submitter', async () => {
    const path = await submitted(await withoutSecrets('made-up-for-the-submitter'))
    const supporter = await there.make.user({ permissions: ['impersonate'] })
    const acting = { headers: { 'impersonate-user': submitter.username } }
    const foreign = await supporter.get(path, acting)
    expect([foreign.status, seen(foreign).generated]).toEqual([200, {}])
    const submission = await supporter.put(applyPath, await withoutSecrets('made-up-by-a-supporter'), acting)
    const theirs = await supporter.get(submission.run, acting)
    expect(seen(theirs).generated).toMatchObject({ provider: { client_secret: expect.stringMatching(/^\w{128}$/) } })
    const other = await there.make.user({ permissions: ['impersonate'] })
    expect(seen(await other.get(submission.run, acting)).generated).toEqual({})
  })

  test('can be read twice, but not after they expired', async () => {
    const path = await submitted(await withoutSecrets('expiring'))
    const [first, second] = [await submitter.get(path), await submitter.get(path)]
    expect(seen(second).generated).toEqual(seen(first).generated)
    await there.db.run.updateMany({
      where: { title: 'apply oauth2 expiring' },
      data: { generatedUntil: new Date(Date.now() - 1) },
    })
    expect(seen(await submitter.get(path)).generated).toEqual({})
  })

  test('are made again on request, and masked everywhere else', async () => {
    const body = await withoutSecrets('rotated')
    const first = seen(await submitter.get(await submitted(body)))
    const asks = { ...body, provider: { ...body.provider, client_secret: { generate: true } } }
    const planned = await submitter.put(`${applyPath}?dry_run=true`, asks)
    const plan = seen(await submitter.get(planned.run))
    expect([plan.generated, plan.changes]).toMatchObject([{}, [{ fields: { client_secret: 'changed' } }, {}]])
    const run = seen(await submitter.get(await submitted(asks)))
    const { client_secret } = run.generated.provider ?? {}
    expect(Object.keys(run.generated.provider ?? {})).toEqual(['client_secret'])
    expect(client_secret).not.toBe(first.generated.provider?.client_secret)
    expect(JSON.stringify({ ...run, generated: {} })).not.toContain(client_secret)
    expect(run.changes).toEqual(plan.changes)
    expect(run.blueprint).toContain('generate: true')
  })

  test('a secret for a new object is masked, and stays as it is in a set and in a former run', async () => {
    const [first, second] = ['the first secret of this client', 'the second secret of this client']
    const body = await withoutSecrets('for-new')
    const sent = (client_secret: unknown) => ({ ...body, provider: { ...body.provider, client_secret } })
    const secretOf = async () =>
      Object((await there.db.provider.findUniqueOrThrow({ where: { name: 'for-new' } })).secrets).client_secret
    const path = await submitted(sent({ create: first }))
    const run = seen(await submitter.get(path))
    expect(run.blueprint).toMatch(/client_secret:\n +create:\n +set: true/)
    expect(JSON.stringify(run)).not.toContain(first)
    await submitted(sent(second))
    const rotated = await secretOf()
    const planned = await submitter.put(`${applyPath}?dry_run=true`, sent({ create: first }))
    const plan = seen(await submitter.get(planned.run))
    expect(plan.changes).toMatchObject([{ action: 'unchanged', fields: {} }, { action: 'unchanged' }])
    const again = [
      await submitter.put(applyPath, sent({ create: first })),
      await submitter.put('/api/v3/blueprints/', [sent({ create: first })]),
      await submitter.post(`${path}apply/`),
    ]
    for (const answer of again) expect(answer).toMatchObject({ status: 200, json: { applied: true } })
    expect(await secretOf()).toBe(rotated)
  })

  test('are kept for 24 hours', async () => {
    await submitted(await withoutSecrets('kept'))
    const run = await there.db.run.findFirstOrThrow({ where: { title: 'apply oauth2 kept' } })
    const hours = ((run.generatedUntil?.getTime() ?? 0) - run.createdAt.getTime()) / 3_600_000
    expect(hours).toBeCloseTo(24, 1)
    expect(run.generated).toMatch(/^v2\./)
  })

  test('are not generated again by the same PUT', async () => {
    const body = await withoutSecrets('again')
    await submitted(body)
    expect(seen(await submitter.get(await submitted(body))).generated).toEqual({})
  })
})

test.each(kinds)('the blueprint of %s is the document that was applied, its secrets masked', async (kind) => {
  const body = await example(kind)
  const answer = await there.admin.put(applyPath, body)
  const { blueprint } = seen(await there.admin.get(answer.run))
  const document = await parse(blueprint)
  expect(document.entries.map(({ model, id, identifiers }) => [model, id, identifiers])).toEqual([
    [body.provider_model, 'provider', { name: body.provider.name }],
    ['service_core.application', 'app', { slug: body.app.slug }],
  ])
  for (const secret of secretsIn(body.provider)) expect(blueprint).not.toContain(secret)
  const shown: Record<string, unknown> = { ...document.entries[0]?.attrs, name: body.provider.name }
  const masked = Object.keys(shown).filter((name) => Object(shown[name]).set === true)
  expect(shown).toEqual({ ...body.provider, ...Object.fromEntries(masked.map((name) => [name, { set: true }])) })
})

/** The secrets of the examples are only examples. */
const secretsIn = (provider: object): string[] => JSON.stringify(provider).match(/example-only[\w-]*/g) ?? []

test('a run that a worker has locked is running, and one that no worker took is queued', async () => {
  const release = there.hold()
  const answering = submitter.submit('oauth2', 'held', { headers: { 'x-request-id': 'held' } })
  await there.queued(1)
  const { id } = await there.db.run.findFirstOrThrow({ where: { requestId: 'held' } })
  const state = async () => seen(await submitter.get(`/api/v3/blueprints/runs/${id}/`)).state
  expect(await state()).toBe('queued')
  await there.db.$transaction(async (tx) => {
    await tx.$queryRaw`SELECT 1 FROM runs WHERE id = ${id}::uuid FOR UPDATE`
    expect(await state()).toBe('running')
  })
  release()
  expect((await answering).status).toBe(200)
  expect(await state()).toBe('done')
})

test('a run that was sealed under another SECRET_KEY is shown without its documents', async () => {
  const path = await submitted(await withoutSecrets('resealed'))
  const { id } = await there.db.run.findFirstOrThrow({ where: { slug: 'resealed' } })
  const other = keyring('another secret key, of 32 characters or more')
  const sealed = (column: 'blueprint' | 'generated') => other.seal('{}', { table: 'runs', row: id, column })
  const data = { blueprint: sealed('blueprint'), generated: sealed('generated') }
  await there.db.run.update({ where: { id }, data })
  const run = await answered(200, submitter.get(path))
  expect(run.json).toMatchObject({ id, state: 'done', applied: true, slug: 'resealed', generated: {} })
  expect(seen(run).blueprint).toMatch(/^# This document cannot be opened: /)
})
