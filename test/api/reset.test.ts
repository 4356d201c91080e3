import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { loadRegistry } from '../../src/models/registry.ts'
import { isConfiguration } from '../../src/plan/reset.ts'
import { aGroup, anApplication, aToken, aUser } from '../support/entries.ts'
import { answered, applied, applyPath, type Entry, installation, named } from '../support/kit.ts'

/** `reset=true`: fields that a document does not name go back to their defaults. */

const on = await installation()
const { apply, plan, runOf } = on.admin
const reset = { query: 'reset=true' }

const fresh = () => `reset-${randomUUID().slice(0, 8)}`
const application = (slug: string, attrs: object = {}): Entry => anApplication(slug, { name: 'A', ...attrs })
const rowOf = (slug: string) => on.db.application.findUniqueOrThrow({ where: { slug } })

const byHand = { meta_description: 'by hand', open_in_new_tab: true, group: 'Kept' }

test('an application by its defaults, as the plan with reset said; without reset nothing changes', async () => {
  const slug = fresh()
  await apply([application(slug, byHand)])
  const file = [application(slug, { group: 'Kept' })]
  const before = await rowOf(slug)
  expect(await apply(file)).toMatchObject({ json: { logs: [`application "${slug}" unchanged`] } })
  const planned = await plan(file, reset)
  expect(await rowOf(slug)).toEqual(before)
  const applied = await apply(file, { ...reset, ifMatch: planned.etag })
  expect(applied).toMatchObject({
    json: {
      applied: true,
      logs: [`application "${slug}" updated: open_in_new_tab true -> false, meta_description "by hand" -> ""`],
    },
  })
  expect((await runOf(applied)).changes).toEqual((await runOf(planned)).changes)
  expect(await rowOf(slug)).toMatchObject({ metaDescription: '', openInNewTab: false, group: 'Kept' })
  expect(await apply(file, reset)).toMatchObject({ json: { logs: [`application "${slug}" unchanged`] } })
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
  const answer = await applied(on.admin.put(`${applyPath}?reset=true`, short))
  expect(JSON.stringify(answer.json)).toContain('sub_mode \\"user_email\\" -> \\"hashed_user_id\\"')
  expect(await secrets()).toEqual(before)
  // The application still has the provider of the submission.
  expect((await rowOf(name)).providerPk).not.toBeNull()
})

test('fields that another entry of the row names, by any of its names, are kept', async () => {
  const slug = fresh()
  await apply([application(slug, byHand)])
  const { pk } = await rowOf(slug)
  const byKey = { model: 'service_core.application', identifiers: { pk } }
  const parts = [application(slug, { meta_description: 'by hand' }), { ...byKey, attrs: { open_in_new_tab: true } }]
  for (const entries of [parts, parts.toReversed()]) {
    await applied(apply(entries, reset))
    expect(await rowOf(slug)).toMatchObject({ metaDescription: 'by hand', openInNewTab: true, group: '' })
    await apply([application(slug, byHand)])
  }
  const conditional = { ...application(slug, byHand), conditions: [true] }
  expect(await apply([application(slug), conditional], reset)).toMatchObject({ status: 200 })
  expect(await rowOf(slug)).toMatchObject({ metaDescription: 'by hand', openInNewTab: true, group: 'Kept' })
})

test('an entry that creates only, and one that is absent, reset nothing', async () => {
  const slug = fresh()
  await apply([application(slug, byHand)])
  const answer = await apply(
    [
      { ...application(slug), state: 'created' },
      { ...application(fresh()), attrs: {}, state: 'absent' },
    ],
    reset,
  )
  expect(answer).toMatchObject({ status: 200 })
  expect(await rowOf(slug)).toMatchObject({ metaDescription: 'by hand', openInNewTab: true })
})

test('users, what belongs to them, and the members of groups stay as they are', async () => {
  const [username, name] = [fresh(), fresh()]
  const user = aUser(username)
  const token = aToken(name, { user: username })
  const group = aGroup(name)
  const { attributes, ...others } = { attributes: { floor: 3 }, path: 'people', email: 'a@example.com' }
  await apply([
    { ...group, attrs: { attributes } },
    { ...user, attrs: { ...others, groups: [name] } },
    { ...token, attrs: { ...token.attrs, description: 'kept' } },
  ])
  const answer = await apply([group, user, token], reset)
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
    new Set([
      'flow',
      'propertymapping',
      'certificatekeypair',
      'role',
      'trustedissuer',
      'group',
      'provider',
      'application',
    ]),
  )
})

test('a plan of a caller without the permission is refused as for a sent field', async () => {
  const name = fresh()
  const caller = await on.make.user({ permissions: ['change_group', 'view_group'] })
  await apply([aGroup(name, { is_superuser: true })])
  const entries = [aGroup(name)]
  expect(await caller.plan(entries)).toMatchObject({ status: 200 })
  expect(await caller.plan(entries, reset)).toMatchObject({ status: 403 })
})

describe('a reviewed plan', () => {
  test.each([
    ['with reset', 'reset=true', '', 'the plan was made with reset=true'],
    ['without reset', '', 'reset=true', 'the plan was made without reset=true'],
  ])('%s is not one of the other kind, also where both say the same', async (_, planned, applied, why) => {
    const slug = fresh()
    const file = [application(slug)]
    await apply(file)
    const { etag } = await plan(file, { query: planned })
    await answered(412, apply(file, { query: applied, ifMatch: etag }), { detail: expect.stringContaining(why) })
  })
})

test('a former run is applied again with reset', async () => {
  const slug = fresh()
  const first = await apply([application(slug)])
  await apply([application(slug, byHand)])
  await applied(on.admin.post(`${first.run}apply/?reset=true`))
  expect(await rowOf(slug)).toMatchObject({ metaDescription: '', group: '' })
})

test('another reset under an Idempotency-Key is something else; a run says that it reset', async () => {
  const slug = fresh()
  const headers = { 'idempotency-key': slug }
  const send = (options: object) => apply([application(slug)], { headers, ...options })
  expect(await send({ query: 'reset=true' })).toMatchObject({ status: 200 })
  expect(await send({ query: 'reset=true' })).toMatchObject({ status: 200 })
  expect(await send({})).toMatchObject({ status: 422 })
  const runs = await on.db.run.findMany({ where: { title: 'apply blueprint test' }, select: { options: true } })
  const said = runs.filter(({ options }) => JSON.stringify(options).includes('reset'))
  expect(said.length).toBeGreaterThan(0)
  expect(said.length).toBeLessThan(runs.length)
})
