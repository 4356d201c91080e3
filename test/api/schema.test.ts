import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type Answer, answered, applied, applyPath, example, installation, kinds, named } from '../support/kit.ts'
import { findIn, type Operation, readDescription } from '../support/openapi.ts'

const service = await installation()
const api = await readDescription(service.app)
/** Authenticated, without any permission. */
const plain = await service.make.user()

const find = findIn(api)

/** The path with values in the places of its parameters. */
const pathOf = ({ path }: Operation, values: readonly string[] = []) => {
  const left = [...values]
  return path.replace(/\{\w+\}/g, () => left.shift() ?? randomUUID())
}

type Sent = { body?: unknown; values?: string[]; query?: string; afterwards?: () => void }

const blueprint = {
  version: 1,
  metadata: { name: 'one group' },
  entries: [{ model: 'service_core.group', identifiers: { name: 'of a blueprint' } }],
}

/** The one operation that takes a form, and that callers without a token may use. Its own tests have its answers. */
const exchangeOf = 'auth_token_create'
const isOfUsers = ({ operationId }: Operation) => operationId !== exchangeOf

async function newIssuer(): Promise<string> {
  const [id, audience] = [randomUUID(), 'gatewright']
  const name = `issuer ${id}`
  const attrs = { issuer: `https://ci.example.com/${id}`, audience }
  const rules = [{ name: 'main', claims: { sub: 'repo:acme/shop:ref:refs/heads/main' }, user: 'admin' }]
  const entry = { model: 'service_rbac.trustedissuer', identifiers: { name }, attrs: { ...attrs, rules } }
  await applied(service.admin.apply([entry]))
  return name
}

/** Requests that succeed, by operation. Lists need nothing. */
const successes: Readonly<Record<string, () => Promise<Sent>>> = {
  blueprints_update: async () => ({ body: blueprint }),
  consumers_oauth2_consents_create: async () => ({
    body: { consents: [{ user: 'admin', client_id: 'unknown', permissions: 'openid' }] },
  }),
  consumers_self_update: async () => ({ body: { issuer: 'https://id.example.com' } }),
  consumers_users_partial_update: async () => ({
    body: { logins: [{ user: 'admin', last_login: '2026-01-01T00:00:00Z' }] },
  }),
  blueprints_stacks_retrieve: async () => ({ values: [(await newStack()).name] }),
  blueprints_stacks_members_destroy: async () => {
    const { name, key } = await newStack()
    return { values: [name, 'service_core.group', key] }
  },
  blueprints_runs_retrieve: async () => {
    const { headers } = await service.admin.put(applyPath, await example('ldap'))
    return { values: [headers['content-location']?.split('/').at(-2) ?? ''] }
  },
  blueprints_runs_apply_create: async () => {
    const { headers } = await service.admin.put(applyPath, await example('ldap'))
    return { values: [headers['content-location']?.split('/').at(-2) ?? ''] }
  },
  blueprints_runs_cancel_create: async () => {
    const release = service.hold()
    const headers = { prefer: 'respond-async' }
    const recorded = await service.admin.submit('ldap', `c-${randomUUID()}`, { headers })
    return { values: [recorded.headers.location?.split('/').at(-2) ?? ''], afterwards: release }
  },
  core_groups_retrieve: async () => ({ values: [(await service.make.group()).pk] }),
  core_groups_members_list: async () => ({ values: [(await service.make.group()).pk] }),
  core_groups_create: async () => {
    const [member, role] = [await service.make.user(), await service.make.role(['view_user'])]
    return { body: { name: randomUUID(), users: [member.pk], roles: [role.pk], attributes: { a: { b: [null, 1] } } } }
  },
  core_groups_partial_update: async () => ({ values: [(await service.make.group()).pk], body: { users: [plain.pk] } }),
  ...Object.fromEntries(
    kinds.map((kind) => [
      `providers_${kind}_retrieve`,
      async () => {
        const body = await example(kind)
        await service.admin.put(applyPath, body)
        return { values: [String(body.provider.name)] }
      },
    ]),
  ),
  providers_all_retrieve: async () => ({ values: ['jenkins-directory'] }),
  flows_instances_retrieve: async () => ({ values: ['default-authentication'] }),
  propertymappings_all_retrieve: async () => ({ values: ['OpenID%20scope%20openid'], query: '?kind=oauth2' }),
  crypto_certificatekeypairs_retrieve: async () => ({ values: ['Gatewright%20self-signed'] }),
  rbac_roles_retrieve: async () => ({ values: ['Application%20deployer'] }),
  rbac_trustedissuers_retrieve: async () => ({ values: [encodeURIComponent(await newIssuer())] }),
  core_tokens_retrieve: async () => ({ values: [await newToken()] }),
  core_applications_destroy: async () => {
    const body = await named('radius', `d-${randomUUID()}`)
    await service.admin.put(applyPath, body)
    return { values: [String(body.app.slug)] }
  },
  core_applications_retrieve: async () => ({ values: ['jenkins-directory'] }),
  core_applications_history_retrieve: async () => {
    const body = await named('ldap', `h-${randomUUID()}`)
    await service.admin.put(applyPath, body)
    return { values: [String(body.app.slug)] }
  },
  core_tokens_create: async () => ({ body: { identifier: randomUUID() } }),
  core_tokens_destroy: async () => ({ values: [await newToken()] }),
  core_tokens_partial_update: async () => ({ values: [await newToken()], body: { description: 'changed' } }),
  core_tokens_view_key_retrieve: async () => ({ values: [await newToken()] }),
  core_transactional_applications_update: async () => ({ body: await example('oauth2') }),
}

async function newStack(): Promise<{ name: string; key: string }> {
  const name = randomUUID()
  await applied(service.admin.apply([{ model: 'service_core.group', identifiers: { name } }], { stack: name }))
  return { name, key: (await service.db.group.findUniqueOrThrow({ where: { name } })).pk }
}

async function newToken(): Promise<string> {
  const identifier = randomUUID()
  await answered(201, send(find('core_tokens_create'), { body: { identifier } }))
  return identifier
}

const statusOf: Readonly<Record<string, number>> = { POST: 201, DELETE: 204 }
/** They answer with what becomes of a run, or with what is recorded, and make nothing that has a path. */
const answers = new Set([
  'blueprints_runs_apply_create',
  'blueprints_runs_cancel_create',
  'consumers_oauth2_consents_create',
])

const send = (operation: Operation, { body, values, query = '' }: Sent, as = service.admin): Promise<Answer> =>
  as.send({
    method: operation.method as 'GET',
    url: `${pathOf(operation, values)}${query}`,
    ...(body !== undefined && { payload: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })

describe('every answer is as described', () => {
  test('successes', async () => {
    for (const operation of api.operations.filter(isOfUsers)) {
      const { operationId, method, responses } = operation
      const sent = await successes[operationId]?.()
      const answer = await send(operation, sent ?? {})
      sent?.afterwards?.()
      expect
        .soft(answer.status, `${operationId}: ${answer.text}`)
        .toBe(answers.has(operationId) ? 200 : (statusOf[method] ?? 200))
      expect.soft(Object.keys(responses)[0], operationId).toBe(String(answer.status))
      // Where they are sent, they are described: `validate` compares.
      expect.soft(answer.headers, operationId).toMatchObject({
        ratelimit: expect.stringMatching(/^"user";/),
        'cache-control': expect.any(String),
      })
      expect.soft(api.validate(operation, answer), operationId).toEqual([])
    }
  })

  test('lists, with rows and without, with every include', async () => {
    const parent = await service.make.group({ superuser: true })
    const child = await service.make.group({ parent: parent.pk, roles: [(await service.make.role([])).pk] })
    await service.make.user({ groups: [child.pk] })
    await newStack()
    await newIssuer()
    for (const kind of ['saml', 'scim'] as const) await service.admin.submit(kind, `list-${kind}`)
    const [application] = await service.db.application.findMany({ where: { slug: 'list-saml' } })
    const entries = [
      { model: 'service_stages_totp.totpdevice', identifiers: { name: 'Phone', user: 1 } },
      {
        model: 'service_core.userconsent',
        identifiers: { user: 1, application: application?.pk, permissions: 'openid' },
      },
    ]
    await applied(send(find('blueprints_update'), { body: { ...blueprint, entries } }))
    for (const operation of api.operations.filter(({ operationId }) => operationId.endsWith('_list'))) {
      const values = operation.path.includes('{group_uuid}') ? [child.pk] : []
      const { json } = await send(operation, { values })
      expect.soft(json, operation.operationId).toHaveProperty(['results', '0'])
      const include = operation.parameters
        .filter(({ name }) => name.startsWith('include_'))
        .map(({ name }) => `&${name}=false`)
      for (const query of [
        '?page_size=1000',
        '?page_size=1',
        '?search=nothing-is-called-so',
        ...include.map((each) => `?page_size=7${each}`),
      ])
        expect
          .soft(api.validate(operation, await send(operation, { values, query })), `${operation.operationId}${query}`)
          .toEqual([])
    }
  })

  /** The status that a request gets of each operation that describes it. */
  const refusals: Readonly<Record<number, (operation: Operation) => Promise<Answer>>> = {
    400: (operation) => send(operation, { query: '?pgae=1&pgae=2', ...(operation.requestBody && { body: {} }) }),
    401: (operation) => send(operation, {}, service.as('gw_a_wrong')),
    404: (operation) =>
      send(operation, {
        query: operation.parameters.some(({ name }) => name === 'page') ? '?page=900000' : '',
        ...(operation.requestBody && { body: {} }),
      }),
    413: (operation) => send(operation, { body: { text: 'x'.repeat(8_400_000) } }),
    415: ({ method, ...rest }) =>
      service.admin.send({
        method: method as 'PUT',
        url: pathOf({ method, ...rest }),
        payload: 'a=b',
        headers: { 'content-type': 'text/plain' },
      }),
  }

  test.each(Object.entries(refusals))('%s', async (status, ask) => {
    const described = api.operations.filter((each) => isOfUsers(each) && each.responses[status] !== undefined)
    expect(described.length).toBeGreaterThan(1)
    for (const operation of described) {
      const answer = await ask(operation)
      expect.soft(answer.status, `${operation.operationId}: ${answer.text}`).toBe(Number(status))
      expect.soft(api.validate(operation, answer), operation.operationId).toEqual([])
    }
  })

  test('403, without the permission', async () => {
    for (const operation of api.operations.filter(isOfUsers)) {
      const isOpen = operation['x-permission'].includes('authenticated')
      const headers = isOpen ? { 'impersonate-user': 'admin' } : {}
      const { method } = operation
      const answer = await plain.send({ method: method as 'GET', url: pathOf(operation), headers })
      expect.soft(answer.status, operation.operationId).toBe(403)
      expect.soft(api.validate(operation, answer), operation.operationId).toEqual([])
    }
  })

  test('bodies with errors at every depth, and no body', async () => {
    const wrong = [
      { code: [1], parent: {}, users: ['x'], app: { slug: '!' }, provider: { redirect_uris: [{}] } },
      [],
      null,
      'text',
    ]
    for (const operation of api.operations.filter((each) => isOfUsers(each) && each.requestBody !== undefined)) {
      for (const body of wrong) {
        const answer = await send(operation, { body })
        expect.soft([400, 404], operation.operationId).toContain(answer.status)
        expect.soft(api.validate(operation, answer), operation.operationId).toEqual([])
      }
      const { method } = operation
      const headers = { 'content-type': 'application/json' }
      const empty = await service.admin.send({ method: method as 'PUT', url: pathOf(operation), headers, payload: '{' })
      expect.soft(api.validate(operation, empty), operation.operationId).toEqual([])
    }
  })

  test('412, a key that is gone, an unknown outcome and a cancelled run', async () => {
    const put = find('core_transactional_applications_update')
    const body = await named('radius', 'conditions')
    await service.admin.put(applyPath, body)
    const taken = await answered(412, service.admin.put(applyPath, body, { ifNoneMatch: '*' }))
    expect(api.validate(put, taken)).toEqual([])

    const identifier = await newToken()
    const view = find('core_tokens_view_key_retrieve')
    const [, gone] = [await send(view, { values: [identifier] }), await send(view, { values: [identifier] })]
    expect(gone.status).toBe(410)
    expect(api.validate(view, gone)).toEqual([])

    const unattended = await installation({ workers: 'none', applyWaitMs: 2_000 })
    const waited = await answered(503, unattended.admin.put(applyPath, body))
    expect(api.validate(put, waited)).toEqual([])
  })
})
