import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { keyring } from '../../src/db/seal.ts'
import { type Asker, type AskOptions, answered, applied, applyPath, type SubmitOptions } from '../support/asker.ts'
import { installation, name, named, objects, renewName } from '../support/kit.ts'

/** POST /api/v3/blueprints/runs/{id}/apply/: the stored document of a former run, once more. */

const there = await installation()

const again = (path: string, { as = there.admin, query = '', ...options }: Sent = {}) =>
  as.post(`${path}apply/${query}`, undefined, options)
type Sent = AskOptions & { as?: Asker; query?: string }
const { apply, runOf } = there.admin
const put = (group: string, options?: SubmitOptions) =>
  there.admin.submit('oauth2', name, { ...options, app: { group } })
const groupOf = async () => (await there.db.application.findUniqueOrThrow({ where: { slug: name } })).group
const secretOf = async () => {
  const { uuid, secrets } = await there.db.provider.findUniqueOrThrow({ where: { name } })
  const place = { table: 'providers', row: uuid, column: 'secrets.client_secret' }
  return JSON.parse(there.engine.keyring.open(Object(secrets).client_secret, place))
}

describe('a roll back', () => {
  test('applies the document of the run before as a new run; the same again is unchanged', async () => {
    const first = await put('First')
    await put('Second')
    const back = await applied(again(first.run))
    expect(back.json).toMatchObject({ logs: [/unchanged$/, /updated: group "Second" -> "First"$/].map(matching) })
    expect(await groupOf()).toBe('First')
    const [former, run] = [await runOf(first), await runOf(back)]
    expect(run.id).not.toBe(former.id)
    expect(run).toMatchObject({ title: former.title, kind: 'oauth2', slug: name, mode: 'apply', state: 'done' })
    expect(run.blueprint).toBe(former.blueprint)
    const more = await again(first.run)
    expect(more.json).toMatchObject({ logs: [/unchanged$/, /unchanged$/].map(matching) })
  })

  test('sets the secrets of the document, and keeps those that the service generated', async () => {
    const sent = await put('First', { provider: { client_secret: 'the first secret of the client' } })
    await put('First', { provider: { client_secret: 'the second secret of the client' } })
    const back = await again(sent.run)
    expect(await secretOf()).toBe('the first secret of the client')
    for (const text of [back.text, (await there.admin.get(back.run)).text])
      expect(text).not.toContain('the first secret')

    renewName()
    const generated = await put('First', { provider: { client_secret: undefined } })
    await put('Second', { provider: { client_secret: 'the second secret of the client' } })
    await again(generated.run)
    expect([await groupOf(), await secretOf()]).toEqual(['First', 'the second secret of the client'])
  })

  test('puts fields back that the document does not name, to what they were', async () => {
    const validity = { access_token_validity: undefined, refresh_token_validity: 'days=7' }
    const provider = { ...validity, sub_mode: undefined, signing_key: undefined, client_secret: undefined }
    const first = await put('First', { provider })
    const was = (await there.db.provider.findUniqueOrThrow({ where: { name } })).settings as Record<string, unknown>
    const later = { access_token_validity: 'minutes=30', refresh_token_validity: 'days=1', sub_mode: 'user_email' }
    const client_secret = 'another secret of the client'
    await put('First', { provider: { ...later, client_secret } })
    await put('First', { provider: { access_token_validity: 'minutes=31', client_secret } })
    const plan = await again(first.run, { query: '?dry_run=true' })
    const back = await applied(again(first.run, { headers: { 'if-match': plan.headers.etag as string } }))
    const leftBy = async (run: unknown) =>
      ((await there.admin.get(String(run))).json as { not_put_back: string[] }).not_put_back
    const left = ['client_secret', 'signing_key'].map((field) => `provider oauth2 "${name}": ${field}`)
    expect([await leftBy(plan.headers['content-location']), await leftBy(back.run)]).toEqual([left, left])
    expect(await leftBy(first.run)).toEqual([])
    const { settings } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    const { access_token_validity, refresh_token_validity, sub_mode } = was
    expect([access_token_validity, refresh_token_validity, sub_mode]).toEqual(['hours=1', 'days=7', 'hashed_user_id'])
    expect(settings).toMatchObject({ access_token_validity, refresh_token_validity, sub_mode })
    // Those that nothing changed since are left alone, and so is a secret.
    expect(await secretOf()).toBe(client_secret)
    const more = await again(first.run)
    expect(more.json).toMatchObject({ logs: [/unchanged$/, /unchanged$/].map(matching) })
  })

  test('puts back what was changed since an apply, and not since a plan', async () => {
    const submit = async (app: Record<string, unknown>, query = '') =>
      there.admin.put(`${applyPath}${query}`, await named('oauth2', name, { app }))
    const publisher = async () =>
      (await there.db.application.findUniqueOrThrow({ where: { slug: name } })).metaPublisher
    const first = await submit({ meta_publisher: undefined })
    const plan = await submit({ meta_publisher: undefined }, '?dry_run=true')
    await submit({ meta_publisher: 'of later' })
    await applied(again(plan.headers['content-location'] as string))
    expect(await publisher()).toBe('of later')
    await applied(again(first.headers['content-location'] as string))
    expect(await publisher()).toBe('')
  })

  test('of a blueprint', async () => {
    const costs = (cost: number) =>
      apply([{ model: 'service_core.group', identifiers: { name }, attrs: { attributes: { cost } } }])
    const first = await costs(1)
    await costs(2)
    expect((await again(first.run)).json).toMatchObject({ applied: true })
    expect(await there.db.group.findUnique({ where: { name } })).toMatchObject({ attributes: { cost: 1 } })
  })
})

const matching = (pattern: RegExp) => expect.stringMatching(pattern)

describe('a run of a plan', () => {
  const planned = async () => {
    await put('First')
    return there.admin.submit('oauth2', name, { app: { group: 'Second' }, query: 'dry_run=true' })
  }

  test('is applied, as it was reviewed', async () => {
    const plan = await planned()
    const done = await applied(again(plan.run, { ifMatch: plan.etag }))
    expect((await runOf(done)).changes).toEqual((await runOf(plan)).changes)
    expect((await runOf(done)).title).toBe(`apply oauth2 ${name}`)
    expect(await groupOf()).toBe('Second')
  })

  test('is refused when something changed since', async () => {
    const plan = await planned()
    await put('Third')
    await answered(412, again(plan.run, { ifMatch: plan.etag }), { code: 'precondition_failed' })
    expect(await groupOf()).toBe('Third')
  })
})

describe('what was asked with the PUT is asked here', () => {
  test('dry_run changes nothing, and its tag is of this document', async () => {
    const first = await put('First')
    await put('Second')
    const before = await objects(there.db)
    const plan = await again(first.run, { query: '?dry_run=true' })
    expect(plan.json).toMatchObject({ applied: false, logs: [/unchanged$/, /would be updated: group/].map(matching) })
    expect(await objects(there.db)).toEqual(before)
    expect((await runOf(plan)).title).toBe(`plan oauth2 ${name}`)
    await applied(again(first.run, { ifMatch: plan.etag }))
  })

  test('replace_provider deletes the provider that the application loses', async () => {
    const first = await put('First')
    const body = await named('radius', name)
    await there.admin.put(applyPath, { ...body, provider: { ...body.provider, name: `${name}-radius` } })
    await applied(again(first.run, { query: '?replace_provider=true' }))
    expect(await there.db.provider.count({ where: { name: `${name}-radius` } })).toBe(0)
  })

  test('the owner is that of the run, unless it is sent', async () => {
    const first = await put('First', { owner: 'team-a' })
    await put('Second', { owner: 'team-a' })
    expect(await again(first.run, { owner: 'team-b' })).toMatchObject({ status: 409 })
    expect((await again(first.run)).json).toMatchObject({ applied: true })
    expect((await again(first.run, { owner: 'team-b', allow: 'takeover' })).json).toMatchObject({ applied: true })
    expect(await there.db.application.findUnique({ where: { slug: name } })).toMatchObject({ owner: 'team-b' })
    // Now the owner of the run is another one.
    expect(await again(first.run)).toMatchObject({ status: 409 })
  })

  test('a document with prune is of the stack of the run, with its owner', async () => {
    const body = {
      version: 1,
      metadata: { name },
      prune: true,
      entries: [{ model: 'service_core.group', identifiers: { name } }],
    }
    const owner = { 'gatewright-owner': `team-${name}` }
    const first = await applied(there.admin.put('/api/v3/blueprints/', body, { headers: owner }))
    const application = { model: 'service_core.application', identifiers: { slug: name }, attrs: { name } }
    const more = { ...body, entries: [...body.entries, application] }
    await applied(there.admin.put('/api/v3/blueprints/', more, { headers: owner }))
    await answered(409, again(first.run, { allow: 'deletes=2' }), { detail: matching(/^1 left over, and not 2: /) })
    await applied(again(first.run, { allow: 'deletes=1' }))
    expect(await there.db.application.count({ where: { slug: name } })).toBe(0)
  })

  test('Idempotency-Key, Prefer and If-None-Match', async () => {
    const first = await put('First')
    const headers = { 'idempotency-key': randomUUID() }
    const [one, other] = [await again(first.run, { headers }), await again(first.run, { headers })]
    expect(one.run).toBe(other.run)
    expect(await again(first.run, { headers: { prefer: 'respond-async' } })).toMatchObject({ status: 202 })
    expect(await again(first.run, { ifNoneMatch: '*' })).toMatchObject({ status: 412 })
  })

  test('errors have the paths of the PUT', async () => {
    const first = await put('First')
    await there.db.flow.create({
      data: { pk: randomUUID(), name, slug: name, designation: 'authorization' },
    })
    const second = await applied(put('Second', { provider: { authorization_flow: name } }))
    await again(first.run)
    await there.db.flow.delete({ where: { slug: name } })
    expect(await again(second.run)).toMatchObject({
      status: 400,
      json: { provider: { authorization_flow: [matching(/^No flow is called/)] }, code: 'invalid' },
    })
  })
})

describe('is refused', () => {
  test('for others than the submitter without roll_back_run, whether they may see it or not', async () => {
    const first = await put('First')
    const rights = ['change_application', 'change_oauth2provider'] as const
    const blind = await there.make.user({ permissions: [...rights] })
    const seeing = await there.make.user({ permissions: [...rights, 'view_run'] })
    expect(await again(first.run, { as: blind })).toMatchObject({ status: 404, json: { code: 'not_found' } })
    await answered(403, again(first.run, { as: seeing }), {
      detail: "To apply another user's run again you need the permission roll_back_run.",
    })
  })

  test('and not with roll_back_run, which needs what the document needs', async () => {
    const first = await put('First')
    await put('Second')
    const operator = await there.make.user({ permissions: ['view_run', 'roll_back_run'] })
    expect(await again(first.run, { as: operator })).toMatchObject({ status: 403 })
    const able = ['view_run', 'roll_back_run', 'change_application', 'change_oauth2provider'] as const
    const allowed = await there.make.user({ permissions: [...able] })
    await answered(409, again(first.run, { as: allowed }), {
      detail: matching(/^The document of this run is of another user: plan it/),
    })
    const plan = await again(first.run, { as: allowed, query: '?dry_run=true' })
    const headers = { 'if-match': plan.headers.etag ?? '' }
    expect((await again(first.run, { as: allowed, headers })).json).toMatchObject({ applied: true })
    expect(await there.db.application.findUnique({ where: { slug: name } })).toMatchObject({ group: 'First' })
  })

  test('by the rights that its submitter has now, and of what it would do now', async () => {
    const user = await there.make.user({ permissions: ['add_application', 'add_oauth2provider'] })
    const first = await applied(user.submit('oauth2', name))
    // Creating it is not changing it.
    expect(await again(first.run, { as: user })).toMatchObject({ status: 403 })
    await there.db.application.delete({ where: { slug: name } })
    await there.db.provider.delete({ where: { name } })
    expect((await again(first.run, { as: user })).json).toMatchObject({ applied: true })
    await there.db.membership.deleteMany({ where: { userPk: user.pk } })
    expect(await again(first.run, { as: user })).toMatchObject({ status: 403 })
  })

  test('of a blueprint for a submitter who lacks what an entry needs now', async () => {
    const user = await there.make.user({ superuser: true })
    const entries = [{ model: 'service_core.group', identifiers: { name } }]
    const first = await user.put('/api/v3/blueprints/', { version: 1, metadata: { name }, entries })
    expect((await again(first.run, { as: user })).json).toMatchObject({ applied: true })
    await there.db.membership.deleteMany({ where: { userPk: user.pk } })
    expect(await again(first.run, { as: user })).toMatchObject({ status: 403 })
  })

  test('while it has not ended', async () => {
    const release = there.hold()
    const waiting = await answered(202, put('First', { prefer: 'respond-async' }))
    expect(await again(waiting.headers.location ?? '')).toMatchObject({
      status: 409,
      json: { code: 'conflict', detail: 'This run has not ended: wait for its outcome.' },
    })
    release()
  })

  test('when its document is gone, or sealed under another key', async () => {
    const first = await put('First')
    const { id } = await runOf(first)
    const { blueprint } = await there.db.run.findUniqueOrThrow({ where: { id } })
    const foreign = keyring('another secret key for tests, 32 or more')
    const sealed = foreign.seal('version: 1', { table: 'runs', row: id, column: 'blueprint' })
    for (const [text, detail] of [
      [null, /^The document of this run is no longer stored: send it again\.$/],
      [sealed, /^The document of this run cannot be opened: .* Send it again\.$/],
    ] as const) {
      await there.db.run.update({ where: { id }, data: { blueprint: text } })
      await answered(409, again(first.run), { code: 'conflict', detail: matching(detail) })
    }
    await there.db.run.update({ where: { id }, data: { blueprint } })
    expect((await again(first.run)).json).toMatchObject({ applied: true })
  })

  test('when a later run holds the document, it is read there', async () => {
    const first = await put('First')
    await put('First')
    const { id } = await runOf(first)
    expect((await there.db.run.findUniqueOrThrow({ where: { id } })).blueprint).toBeNull()
    await put('Second')
    expect((await again(first.run)).json).toMatchObject({ applied: true })
    expect(await groupOf()).toBe('First')
  })

  test('with a body', async () => {
    const first = await put('First')
    const answer = await there.admin.send({
      method: 'POST',
      url: `${first.run}apply/`,
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(await named('oauth2', name)),
    })
    expect(answer).toMatchObject({
      status: 400,
      json: { non_field_errors: ['This request takes no body: leave it out.'] },
    })
  })
})
