import { describe, expect, test } from 'vitest'
import { answered, applied, applyPath, type Entry } from '../support/asker.ts'
import { aGroup, anApplication, aProvider, installation, name, named } from '../support/kit.ts'

/** A roll back puts the recorded state of objects back, also of those that were deleted, created anew, or changed outside. */

const there = await installation()
const { admin, db } = there

const put = async (changes: Parameters<typeof named>[2] = {}) =>
  applied(admin.put(applyPath, await named('oauth2', name, changes)))
const set = (entries: readonly Entry[]) => applied(admin.apply(entries))
const gone = ({ model, identifiers }: Entry) => ({ model, identifiers, state: 'absent' }) as const
/** @returns what is not put back */
const rollBack = async ({ run }: { readonly run: string }, as = admin) => {
  const plan = await answered(200, as.post(`${run}apply/?dry_run=true`, undefined))
  const headers = { 'if-match': plan.headers.etag as string }
  const back = await applied(as.post(`${run}apply/`, undefined, { headers }))
  const { json } = await admin.get(back.run)
  return (json as { not_put_back: string[] }).not_put_back
}
const application = () => db.application.findUniqueOrThrow({ where: { slug: name }, include: { provider: true } })
const unnamed = { app: { group: undefined, meta_description: undefined } }
const unnamedOfProvider = { access_token_validity: undefined, client_id: undefined, client_secret: undefined }

/** @returns the run of a document that names neither the group nor the description, nor some fields of the provider */
async function setUp() {
  await put({
    app: { group: 'g0', meta_description: 'first' },
    provider: { access_token_validity: 'minutes=44', client_id: undefined, client_secret: undefined },
  })
  return put({ ...unnamed, app: { ...unnamed.app, meta_publisher: 'A' }, provider: unnamedOfProvider })
}
const generated = () => ['client_id', 'client_secret'].map((field) => `provider oauth2 "${name}": ${field}`)

describe('past a deletion', () => {
  const absent = () => [gone(anApplication(name)), gone(aProvider('oauth2', name))]

  test('by a document, fields have the values that they had', async () => {
    const run = await setUp()
    await set(absent())
    const left = await rollBack(run)
    expect(await application()).toMatchObject({
      ...{ group: 'g0', metaDescription: 'first', metaPublisher: 'A' },
      provider: { settings: { access_token_validity: 'minutes=44' } },
    })
    expect(left).toEqual(generated())
  })

  test('by SQL, too', async () => {
    const run = await setUp()
    await db.application.delete({ where: { slug: name } })
    expect(await rollBack(run)).toEqual([])
    expect(await application()).toMatchObject({ group: 'g0', metaDescription: 'first' })
  })

  test('and another object of the name', async () => {
    const run = await setUp()
    await set(absent())
    await put({
      app: { group: 'other', meta_description: undefined },
      provider: { ...unnamedOfProvider, access_token_validity: 'minutes=1' },
    })
    expect(await rollBack(run)).toEqual(generated())
    expect(await application()).toMatchObject({
      ...{ group: 'g0', metaDescription: 'first', metaPublisher: 'A' },
      provider: { settings: { access_token_validity: 'minutes=44' } },
    })
  })

  test('by a request, and another object of the name', async () => {
    const run = await setUp()
    await answered(204, admin.delete(`/api/v3/core/applications/${name}/`))
    await put({ app: { group: 'other' } })
    await rollBack(run)
    expect(await application()).toMatchObject({ group: 'g0', metaDescription: 'first' })
  })

  test('of an object of a set', async () => {
    const [one, other] = [`${name}-1`, `${name}-2`]
    const of = (group: string, attrs: object) => ({ ...anApplication(group), attrs: { name: group, ...attrs } })
    await set([of(one, { group: 'one', policy_engine_mode: 'all' }), of(other, {})])
    const run = await set([of(one, { meta_publisher: 'A' }), of(other, {})])
    await set([gone(anApplication(one))])
    await set([of(one, { group: 'two', policy_engine_mode: 'any' })])
    expect(await rollBack(run)).toEqual([])
    const found = await db.application.findUniqueOrThrow({ where: { slug: one } })
    expect(found).toMatchObject({ group: 'one', policyEngineMode: 'all', metaPublisher: 'A' })
  })

  test('before the run, what the deleted object had does not count', async () => {
    await put({ app: { group: 'of the deleted one' } })
    await set(absent())
    const run = await put({ app: { group: undefined }, provider: unnamedOfProvider })
    await put({ app: { group: 'later' }, provider: unnamedOfProvider })
    await rollBack(run)
    expect(await application()).toMatchObject({ group: '' })
  })
})

describe('what was changed outside', () => {
  test('goes back to what was recorded', async () => {
    const run = await setUp()
    await db.application.update({ where: { slug: name }, data: { group: 'by SQL' } })
    const { settings } = await db.provider.findUniqueOrThrow({ where: { name } })
    await db.provider.update({
      where: { name },
      data: { settings: { ...Object(settings), access_token_validity: 'days=9' }, authenticationFlowPk: null },
    })
    expect(await rollBack(run)).toEqual([])
    expect(await application()).toMatchObject({
      ...{ group: 'g0' },
      provider: { settings: { access_token_validity: 'minutes=44' } },
    })
  })

  test('a reference is listed', async () => {
    await put({ provider: { signing_key: 'Gatewright self-signed' } })
    const run = await put({ provider: { signing_key: undefined } })
    const { settings } = await db.provider.findUniqueOrThrow({ where: { name } })
    await db.provider.update({ where: { name }, data: { settings: { ...Object(settings), signing_key: null } } })
    expect(await rollBack(run)).toEqual([`provider oauth2 "${name}": signing_key`])
  })

  test('before a later change does not count', async () => {
    const run = await setUp()
    await db.application.update({ where: { slug: name }, data: { group: 'by SQL' } })
    await put({ app: { group: 'later' } })
    await rollBack(run)
    expect(await application()).toMatchObject({ group: 'g0' })
  })

  test('stays where the run of an earlier change is no longer kept', async () => {
    const run = await setUp()
    const { json } = await admin.get(run.run)
    await db.run.deleteMany({ where: { slug: name, id: { not: (json as { id: string }).id } } })
    await db.application.update({ where: { slug: name }, data: { group: 'by SQL' } })
    await rollBack(run)
    expect(await application()).toMatchObject({ group: 'by SQL' })
  })
})

test('an object that has another name by now is another object', async () => {
  const later = `${name}-later`
  const of = (slug: string, attrs: object) => ({ ...anApplication(slug), attrs: { name, ...attrs } })
  const run = await set([of(name, { group: 'g0' })])
  await set([{ ...of(later, { group: 'later' }), was: name }])
  expect(await rollBack(await set([of(later, {})]))).toEqual([])
  await set([{ ...of(name, { group: 'of another' }) }])
  await rollBack(run)
  const groupOf = async (slug: string) => (await db.application.findUniqueOrThrow({ where: { slug } })).group
  expect([await groupOf(name), await groupOf(later)]).toEqual(['g0', 'later'])
})

test('a caller gets no values of objects that it may not view', async () => {
  const run = await setUp()
  await set([gone(anApplication(name))])
  const rights = [
    'view_run',
    'roll_back_run',
    'add_application',
    'add_oauth2provider',
    'change_oauth2provider',
  ] as const
  const blind = await there.make.user({ permissions: [...rights] })
  const plan = await answered(200, blind.post(`${run.run}apply/?dry_run=true`, undefined))
  const { json, text } = await blind.get(plan.headers['content-location'] as string)
  expect((json as { not_put_back: string[] }).not_put_back).toEqual([])
  expect(text).not.toContain('g0')
  const seeing = await there.make.user({ permissions: [...rights, 'view_application'] })
  const seen = await answered(200, seeing.post(`${run.run}apply/?dry_run=true`, undefined))
  expect((await seeing.get(seen.headers['content-location'] as string)).text).toContain('g0')
})

test('a caller whose rights are bound to owners gets no values from the time of another one', async () => {
  const permissions = ['view_application', 'add_application', 'change_application'] as const
  const roles = await Promise.all([there.make.role([...permissions]), there.make.role([...permissions], ['team-a'])])
  const groups = await Promise.all(roles.map(({ pk }) => there.make.group({ roles: [pk] })))
  const caller = await there.make.user({ groups: groups.map(({ pk }) => pk) })
  const write = (as: typeof admin, attrs: object, headers = {}) =>
    applied(as.apply([{ ...anApplication(name), attrs: { name, ...attrs } }], { headers }))
  await write(caller, { group: 'of none' })
  const run = await write(caller, {})
  await write(admin, { group: 'again' }, { 'gatewright-owner': 'team-a', 'gatewright-allow': 'takeover' })
  await db.membership.deleteMany({ where: { userPk: caller.pk, groupPk: groups[0]?.pk ?? '' } })
  const headers = { 'gatewright-owner': 'team-a' }
  const plan = await answered(200, caller.post(`${run.run}apply/?dry_run=true`, undefined, { headers }))
  const { json, text } = await admin.get(plan.headers['content-location'] as string)
  expect(json).toMatchObject({ not_put_back: [`application "${name}": group`] })
  expect(text).not.toContain('of none')
})

test('of a set of very many objects', async () => {
  const names = Array.from({ length: 1_100 }, (_, index) => `${name}-${index}`)
  const costs = (cost: number) => names.map((each) => aGroup(each, { attributes: { cost } }))
  await set(costs(1))
  const run = await set(names.map((each) => aGroup(each, { is_superuser: false })))
  await set(costs(2))
  expect(await rollBack(run)).toEqual([])
  const groups = await db.group.findMany({ where: { name: { in: names } }, select: { attributes: true } })
  expect(groups.filter(({ attributes }) => Object(attributes).cost !== 1)).toEqual([])
})
