import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Asker, applied, installation, name, type SubmitOptions } from '../support/kit.ts'

/** `was`: a name that changes, in a submission and in a blueprint. */

const there = await installation()

type Options = SubmitOptions & { by?: Asker }

/** Applies the application under this slug; its provider keeps its name. */
const put = (slug: string, { by = there.admin, app, ...options }: Options = {}) =>
  by.submit('oauth2', name, { ...options, app: { slug, ...app } })
const { apply, runOf } = there.admin
const { refused } = there
const keyOf = async (slug: string) => (await there.db.application.findUnique({ where: { slug } }))?.pk
const fresh = () => `${name}-new`
const rename = (options: Options = {}) => put(fresh(), { ...options, app: { was: name, ...options.app } })

describe('was', () => {
  test('renames the application, once', async () => {
    await put(name)
    const key = await keyOf(name)
    expect((await rename()).logs).toEqual([
      `provider oauth2 "${name}" unchanged`,
      `application "${fresh()}" updated: slug "${name}" -> "${fresh()}"`,
    ])
    expect([await keyOf(name), await keyOf(fresh())]).toEqual([undefined, key])
    expect((await rename()).logs).toEqual([`provider oauth2 "${name}" unchanged`, `application "${fresh()}" unchanged`])
  })

  test('renames and changes at once, with the provider', async () => {
    await put(name)
    const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    const answer = await rename({ app: { group: 'New' }, provider: { name: fresh(), was: name } })
    expect(answer.logs).toEqual([
      `provider oauth2 "${fresh()}" updated: name "${name}" -> "${fresh()}"`,
      `application "${fresh()}" updated: slug "${name}" -> "${fresh()}", group "Monitoring" -> "New"`,
    ])
    expect((await there.db.provider.findUniqueOrThrow({ where: { name: fresh() } })).pk).toBe(pk)
  })

  test('creates when neither is there', async () => {
    const { json } = await rename()
    expect(json).toMatchObject({
      applied: true,
      logs: [/created/, /created/].map((each) => expect.stringMatching(each)),
    })
  })

  test('changes only the case of letters, too', async () => {
    await put(name)
    const key = await keyOf(name)
    await put(name.toUpperCase(), { app: { was: name } })
    expect(await keyOf(name.toUpperCase())).toBe(key)
  })

  test('is planned, and applied as planned', async () => {
    await put(name)
    const planned = await there.untouched(() => rename({ query: 'dry_run=true' }))
    expect(planned.logs.at(-1)).toBe(`application "${fresh()}" would be updated: slug "${name}" -> "${fresh()}"`)
    const done = await applied(rename({ ifMatch: planned.etag }))
    expect((await runOf(done)).changes).toEqual((await runOf(planned)).changes)
  })

  test('keeps consents and backchannel providers', async () => {
    await put(name)
    const pk = (await keyOf(name)) ?? ''
    const user = await there.make.user()
    await there.db.userConsent.create({ data: { userPk: user.pk, applicationPk: pk } })
    await rename()
    expect(await there.db.userConsent.count({ where: { application: { slug: fresh() } } })).toBe(1)
  })

  test('renames a provider by a blueprint, as YAML, and a later entry refers to it', async () => {
    await put(name)
    const text = `version: 1
metadata: {name: renames}
entries:
  - {model: service_providers_oauth2.oauth2provider, id: p, was: ${name}, identifiers: {name: ${fresh()}}}
  - {model: service_core.application, was: ${name}, identifiers: {slug: ${fresh()}}, attrs: {provider: !KeyOf p}}
`
    expect((await apply(text)).logs).toEqual([
      `provider oauth2 "${fresh()}" updated: name "${name}" -> "${fresh()}"`,
      `application "${fresh()}" updated: slug "${name}" -> "${fresh()}"`,
    ])
  })

  test('renames other objects by a blueprint', async () => {
    const group = { model: 'service_core.group', identifiers: { name } }
    await apply([group])
    expect((await apply([{ ...group, identifiers: { name: fresh() }, was: name }])).logs).toEqual([
      `group "${fresh()}" updated: name "${name}" -> "${fresh()}"`,
    ])
  })
})

describe('a rename is refused', () => {
  test('when both are there, with both names', async () => {
    await put(name)
    await there.db.application.create({ data: { pk: randomUUID(), name: 'Two', slug: fresh() } })
    for (const query of ['', 'dry_run=true'])
      expect((await refused(409, () => rename({ query }))).detail).toBe(
        `application "${fresh()}" and application "${name}" both exist, so nothing can be renamed: remove \`was\`, or delete one of them.`,
      )
  })

  test('without the permission to change it', async () => {
    await put(name)
    const permissions = ['add_application', 'add_oauth2provider', 'change_oauth2provider']
    const by = await there.make.user({ permissions })
    expect((await refused(403, () => rename({ by }))).detail).toContain('the permission change_application is missing')
  })

  test('for what another owner manages', async () => {
    await put(name, { owner: 'team-a' })
    expect((await refused(409, () => rename({ owner: 'team-b' }))).detail).toContain(
      `application "${name}" belongs to owner`,
    )
  })

  test('under If-None-Match: *, because what is renamed is there', async () => {
    await put(name)
    await there.db.application.update({ where: { slug: name }, data: { providerPk: null } })
    const provider = { name: `${name}-p`, client_id: `${name}-p` }
    const answer = await refused(412, () => rename({ ifNoneMatch: '*', provider }))
    expect(answer.detail).toBe(`application "${name}" is there already, and If-None-Match: * allows only to create.`)
  })

  test('from a provider of another kind', async () => {
    await there.db.provider.create({ data: { uuid: randomUUID(), kind: 'saml', name: `${name}-saml` } })
    const answer = await refused(400, () => put(name, { provider: { name: fresh(), was: `${name}-saml` } }))
    expect(answer.text).toContain('is the name of a provider saml')
  })

  test.each([[7], [null], ['no slug'], [''], [{}]])('from %j', async (was) => {
    expect((await refused(400, () => put(name, { app: { was } }))).json).toMatchObject({
      app: { was: [expect.any(String)] },
    })
  })

  test.each([
    [{ state: 'absent', identifiers: { slug: 'a' } }, 'renames nothing'],
    [{ identifiers: { pk: randomUUID() } }, 'beside one identifier'],
  ])('in the entry %j', async (entry, why) => {
    const answer = await refused(400, () => apply([{ model: 'service_core.application', was: 'old', ...entry }]))
    expect(answer.text).toContain(why)
  })
})

test('two renames to one name at the same time: one wins, and the other one is refused', async () => {
  const [one, two] = [`${name}-1`, `${name}-2`]
  for (const slug of [one, two]) await there.db.application.create({ data: { pk: randomUUID(), name: slug, slug } })
  const application = { model: 'service_core.application', identifiers: { slug: fresh() } }
  const answers = await Promise.all([one, two].map((was) => apply([{ ...application, was }])))
  const applied = answers.filter(({ json }) => (json as { applied?: boolean }).applied === true)
  expect(applied).toHaveLength(1)
  expect(await there.db.application.count({ where: { slug: { in: [one, two, fresh()] } } })).toBe(2)
})
