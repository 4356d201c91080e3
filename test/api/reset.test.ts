import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { loadRegistry } from '../../src/models/registry.ts'
import { isConfiguration } from '../../src/plan/reset.ts'
import { type Answer, applyPath } from '../support/asker.ts'
import { installation, named } from '../support/installation.ts'

/** `reset=true`: fields that a document does not name go back to their defaults. */

const blueprints = '/api/v3/blueprints/'

const on = await installation()

const fresh = () => `reset-${randomUUID().slice(0, 8)}`
type Entry = { model: string; id?: string; state?: string; identifiers: object; attrs?: object; conditions?: unknown[] }
const send = (entries: readonly Entry[], query = '', headers: Record<string, string> = {}) =>
  on.admin.put(`${blueprints}${query}`, { version: 1, metadata: { name: 'reset' }, entries }, { headers })
const application = (slug: string, attrs: object = {}): Entry => ({
  ...{ model: 'service_core.application', identifiers: { slug }, attrs: { name: 'A', ...attrs } },
})
const rowOf = (slug: string) => on.db.application.findUniqueOrThrow({ where: { slug } })
const changesOf = async ({ headers }: Answer) =>
  ((await on.admin.get(headers['content-location'] ?? '')).json as { changes: { fields: object }[] }).changes

const byHand = { meta_description: 'by hand', open_in_new_tab: true, group: 'Kept' }

test('an application by its defaults, as the plan with reset said; without reset nothing changes', async () => {
  const slug = fresh()
  await send([application(slug, byHand)])
  const file = [application(slug, { group: 'Kept' })]
  const before = await rowOf(slug)
  expect(await send(file)).toMatchObject({ json: { logs: [`application "${slug}" unchanged`] } })
  const plan = await send(file, '?dry_run=true&reset=true')
  expect(await rowOf(slug)).toEqual(before)
  const tag = plan.headers.etag ?? ''
  const applied = await send(file, '?reset=true', { 'if-match': tag })
  expect(applied).toMatchObject({
    json: {
      applied: true,
      logs: [`application "${slug}" updated: open_in_new_tab true -> false, meta_description "by hand" -> ""`],
    },
  })
  expect(await changesOf(applied)).toEqual(await changesOf(plan))
  expect(await rowOf(slug)).toMatchObject({ metaDescription: '', openInNewTab: false, group: 'Kept' })
  expect(await send(file, '?reset=true')).toMatchObject({ json: { logs: [`application "${slug}" unchanged`] } })
})

test('a submission: its provider keeps secrets and generated values', async () => {
  const name = fresh()
  const body = await named('oauth2', name, { provider: { sub_mode: 'user_email', client_secret: 'x'.repeat(40) } })
  await on.admin.put(applyPath, body)
  const { authorization_flow } = body.provider
  const short = { ...body, app: { slug: name, name: 'A' }, provider: { name, authorization_flow } }
  const secrets = async () => {
    const { secrets, oauth2ClientId } = await on.db.provider.findUniqueOrThrow({ where: { name } })
    return { secrets, oauth2ClientId }
  }
  const before = await secrets()
  const answer = await on.admin.put(`${applyPath}?reset=true`, short)
  expect(answer).toMatchObject({ status: 200, json: { applied: true } })
  expect(JSON.stringify(answer.json)).toContain('sub_mode \\"user_email\\" -> \\"hashed_user_id\\"')
  expect(await secrets()).toEqual(before)
  // The application still has the provider of the submission.
  expect((await rowOf(name)).providerPk).not.toBeNull()
})

test('fields that another entry of the row names, by any of its names, are kept', async () => {
  const slug = fresh()
  await send([application(slug, byHand)])
  const { pk } = await rowOf(slug)
  const byKey = { model: 'service_core.application', identifiers: { pk } }
  const parts = [application(slug, { meta_description: 'by hand' }), { ...byKey, attrs: { open_in_new_tab: true } }]
  for (const entries of [parts, parts.toReversed()]) {
    const answer = await send(entries, '?reset=true')
    expect(answer).toMatchObject({ status: 200, json: { applied: true } })
    expect(await rowOf(slug)).toMatchObject({ metaDescription: 'by hand', openInNewTab: true, group: '' })
    await send([application(slug, byHand)])
  }
  const conditional = { ...application(slug, byHand), conditions: [true] }
  expect(await send([application(slug), conditional], '?reset=true')).toMatchObject({ status: 200 })
  expect(await rowOf(slug)).toMatchObject({ metaDescription: 'by hand', openInNewTab: true, group: 'Kept' })
})

test('an entry that creates only, and one that is absent, reset nothing', async () => {
  const slug = fresh()
  await send([application(slug, byHand)])
  const answer = await send(
    [
      { ...application(slug), state: 'created' },
      { ...application(fresh()), attrs: {}, state: 'absent' },
    ],
    '?reset=true',
  )
  expect(answer).toMatchObject({ status: 200 })
  expect(await rowOf(slug)).toMatchObject({ metaDescription: 'by hand', openInNewTab: true })
})

test('users, what belongs to them, and the members of groups stay as they are', async () => {
  const [username, name] = [fresh(), fresh()]
  const user = { model: 'service_core.user', identifiers: { username } }
  const token = { model: 'service_core.token', identifiers: { identifier: name }, attrs: { user: username } }
  const group = { model: 'service_core.group', identifiers: { name } }
  const { attributes, ...others } = { attributes: { floor: 3 }, path: 'people', email: 'a@example.com' }
  await send([
    { ...group, attrs: { attributes } },
    { ...user, attrs: { ...others, groups: [name] } },
    { ...token, attrs: { ...token.attrs, description: 'kept' } },
  ])
  const answer = await send([group, user, token], '?reset=true')
  expect(answer).toMatchObject({
    json: {
      logs: [
        `group "${name}" updated: attributes.floor - 3`,
        `user "${username}" unchanged`,
        `token "${name}" unchanged`,
      ],
    },
  })
})

test('configuration is what an export writes', async () => {
  const { models } = await loadRegistry()
  expect(new Set(models.filter(isConfiguration).map(({ target }) => target))).toEqual(
    new Set(['flow', 'propertymapping', 'certificatekeypair', 'role', 'group', 'provider', 'application']),
  )
})

test('a plan of a caller without the permission is refused as for a sent field', async () => {
  const name = fresh()
  const caller = await on.make.user({ permissions: ['change_group', 'view_group'] })
  await send([{ model: 'service_core.group', identifiers: { name }, attrs: { is_superuser: true } }])
  const entries = [{ model: 'service_core.group', identifiers: { name } }]
  const body = { version: 1, metadata: { name: 'reset' }, entries }
  expect(await caller.put(`${blueprints}?dry_run=true`, body)).toMatchObject({ status: 200 })
  expect(await caller.put(`${blueprints}?dry_run=true&reset=true`, body)).toMatchObject({ status: 403 })
})

describe('a reviewed plan', () => {
  test.each([
    ['with reset', '&reset=true', '', 'the plan was made with reset=true'],
    ['without reset', '', '?reset=true', 'the plan was made without reset=true'],
  ])('%s is not one of the other kind, also where both say the same', async (_, planned, applied, why) => {
    const slug = fresh()
    const file = [application(slug)]
    await send(file)
    const { headers } = await send(file, `?dry_run=true${planned}`)
    const answer = await send(file, applied, { 'if-match': headers.etag ?? '' })
    expect(answer).toMatchObject({ status: 412, json: { detail: expect.stringContaining(why) } })
  })
})

test('a former run is applied again with reset', async () => {
  const slug = fresh()
  const first = await send([application(slug)])
  await send([application(slug, byHand)])
  const url = `${first.headers['content-location']}apply/?reset=true`
  const answer = await on.admin.send({ method: 'POST', url })
  expect(answer).toMatchObject({ status: 200, json: { applied: true } })
  expect(await rowOf(slug)).toMatchObject({ metaDescription: '', group: '' })
})

test('another reset under an Idempotency-Key is something else; a run says that it reset', async () => {
  const slug = fresh()
  const headers = { 'idempotency-key': slug }
  expect(await send([application(slug)], '?reset=true', headers)).toMatchObject({ status: 200 })
  expect(await send([application(slug)], '?reset=true', headers)).toMatchObject({ status: 200 })
  expect(await send([application(slug)], '', headers)).toMatchObject({ status: 422 })
  const runs = await on.db.run.findMany({ where: { title: 'apply blueprint reset' }, select: { options: true } })
  const said = runs.filter(({ options }) => JSON.stringify(options).includes('reset'))
  expect(said.length).toBeGreaterThan(0)
  expect(said.length).toBeLessThan(runs.length)
})
