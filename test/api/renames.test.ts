import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type Asker, applyPath } from '../support/asker.ts'
import { objects } from '../support/contents.ts'
import { installation, named } from '../support/installation.ts'
import { refusedBy } from '../support/refused.ts'

/** `was`: a name that changes, in a submission and in a blueprint. */

let name: string
const there = await installation()
beforeEach(() => {
  name = `r-${randomUUID().slice(0, 8)}`
})

type Options = { by?: Asker; query?: string; headers?: Record<string, string>; app?: object; provider?: object }

/** Applies the application under this slug; its provider keeps its name. */
const put = async (slug: string, { by = there.admin, query = '', headers = {}, app, provider }: Options = {}) =>
  by.put(`${applyPath}${query}`, await named('oauth2', name, { app: { slug, ...app }, provider: { ...provider } }), {
    headers,
  })
const blueprint = (entries: readonly object[], query = '') =>
  there.admin.put(`/api/v3/blueprints/${query}`, { version: 1, metadata: { name: 'renames' }, entries })
const logsOf = ({ json }: Answer): string[] => (json as { logs?: string[] }).logs ?? []
const keyOf = async (slug: string) => (await there.db.application.findUnique({ where: { slug } }))?.pk
const detailOf = ({ json }: Answer) => (json as { detail: string }).detail
const fresh = () => `${name}-new`
const rename = (options: Options = {}) => put(fresh(), { ...options, app: { was: name, ...options.app } })

const refused = (status: number, ask: () => Promise<Answer>) => refusedBy(there, status, ask)

describe('was', () => {
  test('renames the application, once', async () => {
    await put(name)
    const key = await keyOf(name)
    expect(logsOf(await rename())).toEqual([
      `provider oauth2 "${name}" unchanged`,
      `application "${fresh()}" updated: slug "${name}" -> "${fresh()}"`,
    ])
    expect([await keyOf(name), await keyOf(fresh())]).toEqual([undefined, key])
    expect(logsOf(await rename())).toEqual([
      `provider oauth2 "${name}" unchanged`,
      `application "${fresh()}" unchanged`,
    ])
  })

  test('renames and changes at once, with the provider', async () => {
    await put(name)
    const { pk } = await there.db.provider.findUniqueOrThrow({ where: { name } })
    const answer = await rename({ app: { group: 'New' }, provider: { name: fresh(), was: name } })
    expect(logsOf(answer)).toEqual([
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
    const before = await objects(there.db)
    const planned = await rename({ query: '?dry_run=true' })
    expect(logsOf(planned).at(-1)).toBe(`application "${fresh()}" would be updated: slug "${name}" -> "${fresh()}"`)
    expect(await objects(there.db)).toEqual(before)
    const applied = await rename({ headers: { 'if-match': planned.headers.etag ?? '' } })
    expect(applied).toMatchObject({ status: 200, json: { applied: true } })
    const [one, two] = (await Promise.all(
      [planned, applied].map(({ headers }) => there.admin.get(headers['content-location'] ?? '')),
    )) as [Answer, Answer]
    expect(two.json).toMatchObject({ changes: (one.json as { changes: unknown[] }).changes })
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
    const headers = { 'content-type': 'application/yaml' }
    const answer = await there.admin.put('/api/v3/blueprints/', text, { headers })
    expect(logsOf(answer)).toEqual([
      `provider oauth2 "${fresh()}" updated: name "${name}" -> "${fresh()}"`,
      `application "${fresh()}" updated: slug "${name}" -> "${fresh()}"`,
    ])
  })

  test('renames other objects by a blueprint', async () => {
    const group = { model: 'service_core.group', identifiers: { name } }
    await blueprint([group])
    expect(logsOf(await blueprint([{ ...group, identifiers: { name: fresh() }, was: name }]))).toEqual([
      `group "${fresh()}" updated: name "${name}" -> "${fresh()}"`,
    ])
  })
})

describe('a rename is refused', () => {
  test('when both are there, with both names', async () => {
    await put(name)
    await there.db.application.create({ data: { pk: randomUUID(), name: 'Two', slug: fresh() } })
    for (const query of ['', '?dry_run=true'])
      expect(detailOf(await refused(409, () => rename({ query })))).toBe(
        `application "${fresh()}" and application "${name}" both exist, so nothing can be renamed: remove \`was\`, or delete one of them.`,
      )
  })

  test('without the permission to change it', async () => {
    await put(name)
    const permissions = ['add_application', 'add_oauth2provider', 'change_oauth2provider']
    const by = await there.make.user({ permissions })
    expect(detailOf(await refused(403, () => rename({ by })))).toContain('the permission change_application is missing')
  })

  test('for what another owner manages', async () => {
    await put(name, { headers: { 'gatewright-owner': 'team-a' } })
    const headers = { 'gatewright-owner': 'team-b' }
    expect(detailOf(await refused(409, () => rename({ headers })))).toContain(`application "${name}" belongs to owner`)
  })

  test('under If-None-Match: *, because what is renamed is there', async () => {
    await put(name)
    await there.db.application.update({ where: { slug: name }, data: { providerPk: null } })
    const provider = { name: `${name}-p`, client_id: `${name}-p` }
    const answer = await refused(412, () => rename({ headers: { 'if-none-match': '*' }, provider }))
    expect(detailOf(answer)).toBe(`application "${name}" is there already, and If-None-Match: * allows only to create.`)
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
    const answer = await refused(400, () => blueprint([{ model: 'service_core.application', was: 'old', ...entry }]))
    expect(answer.text).toContain(why)
  })
})

test('two renames to one name at the same time: one wins, and the other one is refused', async () => {
  const [one, two] = [`${name}-1`, `${name}-2`]
  for (const slug of [one, two]) await there.db.application.create({ data: { pk: randomUUID(), name: slug, slug } })
  const application = { model: 'service_core.application', identifiers: { slug: fresh() } }
  const answers = await Promise.all([one, two].map((was) => blueprint([{ ...application, was }])))
  const applied = answers.filter(({ json }) => (json as { applied?: boolean }).applied === true)
  expect(applied).toHaveLength(1)
  expect(await there.db.application.count({ where: { slug: { in: [one, two, fresh()] } } })).toBe(2)
})
