import { generateKeyPairSync, sign } from 'node:crypto'
import createClient from 'openapi-fetch'
import type { components, paths } from './api.ts'

/**
 * `drive URL TOKEN`: a client with the generated types. It calls every operation and prints the method, path
 * and status of each answer. The compiler checks what it sends and reads.
 */

type Schemas = components['schemas']

const [baseUrl = '', token = ''] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } })
const calls: string[] = []
client.use({
  onResponse: ({ request, response, schemaPath }) => {
    calls.push(`${request.method} ${schemaPath} ${response.status}`)
  },
})

type Result<Body> = { data?: Body; error?: unknown; response: Response }

async function must<Body>(call: Promise<Result<Body>>): Promise<Body> {
  const { data, error, response } = await call
  if (data === undefined) throw new Error(`${response.url} answered ${response.status}: ${JSON.stringify(error)}`)
  return data
}

function hold(what: string, is: boolean): void {
  if (!is) throw new Error(`Not so: ${what}`)
}

const suffix = Date.now().toString(36)

async function groupsAndUsers(): Promise<void> {
  const { user } = await must(client.GET('/api/v3/core/users/me/'))
  hold('the first admin is a superuser', user.is_superuser && user.system_permissions.includes('add_group'))
  const parent = await must(client.POST('/api/v3/core/groups/', { body: { name: `parent ${suffix}` } }))
  const made: Schemas['Group'] = await must(
    client.POST('/api/v3/core/groups/', { body: { name: `child ${suffix}`, parent: parent.pk, attributes: { a: 1 } } }),
  )
  hold('a parent has its name', made.parent_name === parent.name && made.users_obj?.length === 0)
  const path = { group_uuid: made.pk }
  const changed = await must(
    client.PATCH('/api/v3/core/groups/{group_uuid}/', { params: { path }, body: { users: [user.pk] } }),
  )
  hold('its member is in the answer', changed.users_obj?.[0]?.username === user.username && changed.attributes.a === 1)
  const query = { members_by_pk: [user.pk], include_users: false, page_size: 5 }
  const read = await must(client.GET('/api/v3/core/groups/{group_uuid}/', { params: { path } }))
  const members = await must(client.GET('/api/v3/core/groups/{group_uuid}/members/', { params: { path } }))
  hold('its members have a page', members.next === null && members.results[0]?.user === user.pk)
  hold('a group is read by its key', read.pk === made.pk && read.parent === parent.pk)
  const ordering: Schemas['GroupOrdering'][] = ['-name', 'pk']
  const groups = await must(client.GET('/api/v3/core/groups/', { params: { query: { ...query, ordering } } }))
  hold(
    'the list has the member',
    groups.results.some(({ pk, users_obj }) => pk === made.pk && users_obj === null),
  )
  const users = await must(
    client.GET('/api/v3/core/users/', {
      params: { query: { groups_by_pk: [made.pk], type: ['internal'], is_active: true } },
    }),
  )
  hold(
    'one user is in it',
    users.pagination.count === 1 && users.results[0]?.groups_obj?.some(({ pk }) => pk === made.pk) === true,
  )
}

async function tokens(): Promise<void> {
  const identifier = `token-${suffix}`
  const made = await must(client.POST('/api/v3/core/tokens/', { body: { identifier, description: 'first' } }))
  hold('it is for the interface', made.intent === 'api' && made.user_obj.pk === made.user && made.expires !== null)
  const params = { path: { identifier } }
  const changed = await must(
    client.PATCH('/api/v3/core/tokens/{identifier}/', { params, body: { description: 'second' } }),
  )
  hold('only what was sent has changed', changed.description === 'second' && changed.expires === made.expires)
  const { key } = await must(client.GET('/api/v3/core/tokens/{identifier}/view_key/', { params }))
  hold('a key is a text', key.startsWith('gw_a_'))
  const { error } = await client.GET('/api/v3/core/tokens/{identifier}/view_key/', { params })
  hold('it is readable once', error !== undefined && error.code === 'key_gone')
  const query = { identifier }
  const listed = await must(client.GET('/api/v3/core/tokens/', { params: { query } }))
  hold('it is listed', listed.results[0]?.pk === made.pk && listed.pagination.count === 1)
  const read = await must(client.GET('/api/v3/core/tokens/{identifier}/', { params }))
  hold('it is read as it is listed', read.pk === made.pk && read.description === 'second')
  const { response } = await client.DELETE('/api/v3/core/tokens/{identifier}/', { params })
  hold('it is deleted', response.status === 204)
  const gone = await must(client.GET('/api/v3/core/tokens/', { params: { query } }))
  hold('it is gone', gone.pagination.count === 0)
}

async function applications(): Promise<string> {
  const slug = `wiki-${suffix}`
  const body: Schemas['Oauth2Submission'] = {
    app: { name: 'Wiki', slug },
    provider_model: 'service_providers_oauth2.oauth2provider',
    provider: {
      name: slug,
      authorization_flow: '6f7e0000-0000-4000-8000-000000000102',
      redirect_uris: [{ matching_mode: 'strict', url: 'https://wiki.example.com/callback' }],
    },
  }
  const put = '/api/v3/core/transactional/applications/'
  const { data, response } = await client.PUT(put, { body })
  hold('it was applied', data !== undefined && 'applied' in data && data.applied && data.logs.length === 2)
  const again = await client.PUT(put, { body, params: { header: { 'If-None-Match': '*' } } })
  hold('it is created once', again.error !== undefined && again.error.code === 'precondition_failed')
  const [id = ''] = response.headers.get('Content-Location')?.match(/[-0-9a-f]{36}/) ?? []
  const run = await must(client.GET('/api/v3/blueprints/runs/{id}/', { params: { path: { id } } }))
  hold(
    'its run is done, with the generated values',
    run.state === 'done' && 'client_secret' in (run.generated.provider ?? {}),
  )
  const query = { slug, state: ['done' as const], created_after: run.created_at }
  const runs = await must(client.GET('/api/v3/blueprints/runs/', { params: { query } }))
  const [last]: Schemas['RunSummary'][] = runs.results
  hold('the list has the run, with its submitter', last?.id === id && last.submitter_name === run.submitter_name)
  const seen = await client.GET('/api/v3/blueprints/runs/{id}/', { params: { path: { id } } })
  const header = { 'If-None-Match': seen.response.headers.get('ETag') ?? '', Prefer: 'wait=1' }
  const same = await client.GET('/api/v3/blueprints/runs/{id}/', { params: { path: { id }, header } })
  hold('a run that has ended is the same after a wait', same.response.status === 304)
  const path = '/api/v3/blueprints/runs/{id}/apply/'
  const applied = await must(client.POST(path, { params: { path: { id }, query: { dry_run: true } } }))
  hold('the document of the run changes nothing', 'applied' in applied && applied.logs.length === 2)
  const toCancel = await client.POST('/api/v3/blueprints/runs/{id}/cancel/', { params: { path: { id } } })
  hold('a run that has ended is not cancelled', toCancel.error !== undefined && toCancel.error.code === 'conflict')
  const { name, authorization_flow } = body.provider
  const minimal = await must(client.PUT(put, { body: { ...body, provider: { name, authorization_flow } } }))
  hold(
    'a minimal second PUT changes nothing',
    'logs' in minimal && minimal.logs.length === 2 && minimal.logs.every((text) => text.endsWith(' unchanged')),
  )
  const { error } = await client.PUT(put, { body: { ...body, app: { name: '', slug: '!' } } })
  hold('errors are reported', error !== undefined && 'app' in error && error.code === 'invalid')
  return slug
}

async function devicesAndConsents(slug: string): Promise<void> {
  const { user } = await must(client.GET('/api/v3/core/users/me/'))
  const answer = await must(
    client.PUT('/api/v3/blueprints/', {
      body: {
        version: 1,
        metadata: { name: 'a device' },
        entries: [
          { model: 'service_stages_totp.totpdevice', identifiers: { name: `phone ${suffix}`, user: user.pk } },
          { model: 'service_core.application', id: 'wiki', identifiers: { slug } },
        ],
      },
    }),
  )
  hold('the device is there', 'applied' in answer && answer.applied)
  const query = { name: `phone ${suffix}` }
  for (const path of ['/api/v3/authenticators/totp/', '/api/v3/authenticators/admin/totp/'] as const) {
    const { results } = await must(client.GET(path, { params: { query } }))
    hold(`${path} shows it`, results.length === 1 && results[0]?.name === query.name)
  }
  const consents = await must(client.GET('/api/v3/core/user_consent/', { params: { query: { user: user.pk } } }))
  hold(
    'no user has consented to it',
    consents.results.every(({ application }) => application.slug !== slug),
  )
  const { client_id = '' } = await must(
    client.GET('/api/v3/providers/oauth2/{name}/', { params: { path: { name: slug } } }),
  )
  const told = await must(
    client.POST('/api/v3/consumers/oauth2/consents/', {
      body: { consents: [{ user: user.username, client_id, permissions: 'openid' }] },
    }),
  )
  const users = [
    { user: user.pk, last_login: '2026-01-01T00:00:00Z' },
    { user: `no-${suffix}`, last_login: '2026-01-01T00:00:00Z' },
  ]
  const logins = await must(client.PATCH('/api/v3/consumers/users/', { body: { logins: users } }))
  const self = await must(client.PUT('/api/v3/consumers/self/', { body: { issuer: 'https://id.example.com' } }))
  hold('it has an issuer', self.kind === 'oauth2')
  hold('a consent and a login are recorded', told.recorded === 1 && logins.unknown[0] === 1)
}

async function shipped(): Promise<void> {
  const flows = await must(client.GET('/api/v3/flows/instances/', { params: { query: { designation: ['recovery'] } } }))
  const path = { slug: flows.results[0]?.slug ?? '' }
  const read: Schemas['ReadFlow'] = await must(client.GET('/api/v3/flows/instances/{slug}/', { params: { path } }))
  hold('a flow is listed as it is read', read.pk === flows.results[0]?.pk && read.designation === 'recovery')

  const query = { managed: 'gatewright/oauth2/scope-openid' }
  const mappings = await must(client.GET('/api/v3/propertymappings/all/', { params: { query } }))
  const [first]: Schemas['ReadPropertymapping'][] = mappings.results
  const { name, kind } = first ?? { name: '', kind: '' }
  const mapping = await must(
    client.GET('/api/v3/propertymappings/all/{name}/', { params: { path: { name }, query: { kind } } }),
  )
  hold('a mapping is found by name and kind', mapping.managed === query.managed)

  const { results: keyPairs } = await must(client.GET('/api/v3/crypto/certificatekeypairs/'))
  const keyPair: Schemas['ReadCertificatekeypair'] = await must(
    client.GET('/api/v3/crypto/certificatekeypairs/{name}/', { params: { path: { name: keyPairs[0]?.name ?? '' } } }),
  )
  hold('a private key is masked', keyPair.key_data?.set === true && keyPair.certificate_data.includes('CERTIFICATE'))

  const { results: roles } = await must(client.GET('/api/v3/rbac/roles/'))
  const role: Schemas['ReadRole'] = await must(
    client.GET('/api/v3/rbac/roles/{name}/', { params: { path: { name: roles[0]?.name ?? '' } } }),
  )
  hold('a role has permissions', role.permissions.length > 0)
}

async function jobs(): Promise<void> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { user } = await must(client.GET('/api/v3/core/users/me/'))
  const [name, issuer, audience] = [`ci ${suffix}`, `https://ci.example.com/${suffix}`, 'https://iam.example.com']
  const rules = [{ name: 'shop', claims: { repository: 'acme/shop', ref: 'refs/heads/main' }, user: user.username }]
  const attrs = { issuer, audience, jwks: { keys: [{ ...publicKey.export({ format: 'jwk' }) }] }, rules }
  const model = 'service_rbac.trustedissuer' as const
  const entries = [{ model, identifiers: { name }, attrs }]
  const body = { version: 1 as const, metadata: { name: 'jobs' }, entries }
  const answer = await must(client.PUT('/api/v3/blueprints/', { body }))
  hold('the issuer is trusted', 'applied' in answer && answer.applied)
  const { results } = await must(client.GET('/api/v3/rbac/trustedissuers/', { params: { query: { issuer } } }))
  const read: Schemas['ReadTrustedissuer'] = await must(
    client.GET('/api/v3/rbac/trustedissuers/{name}/', { params: { path: { name } } }),
  )
  hold('it is listed as it is read', results[0]?.pk === read.pk && read.rules[0]?.user === user.username)

  const now = Math.floor(Date.now() / 1_000)
  const claims = { iss: issuer, aud: audience, sub: 'job', iat: now, exp: now + 300, ...rules[0]?.claims }
  const signed = [{ alg: 'ES256' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  const signature = sign('sha256', Buffer.from(signed.join('.')), { key: privateKey, dsaEncoding: 'ieee-p1363' })
  const exchanged = await must(
    client.POST('/api/v3/auth/token/', {
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: [...signed, signature.toString('base64url')].join('.'),
        subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      },
    }),
  )
  const headers = { Authorization: `Bearer ${exchanged.access_token}` }
  const { pipeline } = await must(client.GET('/api/v3/auth/token/', { headers }))
  hold('the token has its job', pipeline?.issuer === name && pipeline.repository === 'acme/shop')
}

const flow = '6f7e0000-0000-4000-8000-000000000102'

/** What a new provider of each kind needs. */
const needed = {
  directory_sync_b: { client_id: 'id', client_secret: 'secret', tenant_id: 'tenant' },
  ldap: { authorization_flow: flow },
  oauth2: { authorization_flow: flow },
  proxy: { authorization_flow: flow, external_host: 'https://a.example.com', internal_host: 'http://a.internal' },
  rac: { authorization_flow: flow },
  radius: { authorization_flow: flow },
  saml: { authorization_flow: flow, acs_url: 'https://a.example.com/acs' },
  scim: { url: 'https://a.example.com/scim', token: 'token' },
  workspace_sync_a: { delegated_subject: 'a@example.com', credentials: {}, default_group_email_domain: 'example.com' },
} as const

const kindsOf = Object.keys(needed) as (keyof typeof needed)[]

async function providers(slug: string): Promise<void> {
  const entries = kindsOf.map((kind) => ({
    model: `service_providers_${kind}.${kind}provider` as Schemas['Blueprint']['entries'][number]['model'],
    identifiers: { name: `${kind}/${suffix}` },
    attrs: { ...needed[kind] },
  }))
  const body = { version: 1 as const, metadata: { name: 'providers' }, entries }
  const answer = await must(client.PUT('/api/v3/blueprints/', { body }))
  hold('a provider of each kind is there', 'applied' in answer && answer.applied)

  const app: Schemas['ReadApplication'] = await must(
    client.GET('/api/v3/core/applications/{slug}/', { params: { path: { slug } } }),
  )
  const query = { slug }
  const apps = await must(client.GET('/api/v3/core/applications/', { params: { query } }))
  hold('the application is listed', apps.results[0]?.pk === app.pk && app.provider_obj?.name === slug)
  const history = await must(
    client.GET('/api/v3/core/applications/{slug}/history/', { params: { path: { slug }, query: { page_size: 1 } } }),
  )
  const audit = await must(
    client.GET('/api/v3/core/audit/', { params: { query: { run: history.results[0]?.run ?? '' } } }),
  )
  hold(
    'the audit has the run that created it',
    audit.results[0]?.changes.some(({ action }) => action === 'create') === true,
  )
  hold('its history has its creation', history.results.length === 1 && history.results[0]?.run !== undefined)
  const oauth2: Schemas['ReadOauth2Provider'] = await must(
    client.GET('/api/v3/providers/oauth2/{name}/', { params: { path: { name: slug } } }),
  )
  hold('its secret is masked', oauth2.client_secret?.set === true && oauth2.redirect_uris.length === 1)
  const any = await must(client.GET('/api/v3/providers/all/{name}/', { params: { path: { name: slug } } }))
  hold(
    'it is the same among all kinds',
    any.meta_model_name === 'service_providers_oauth2.oauth2provider' && any.client_id === oauth2.client_id,
  )
  const all = await must(client.GET('/api/v3/providers/all/', { params: { query: { search: suffix } } }))
  hold('all are listed', all.pagination.count === entries.length + 1)
  for (const kind of kindsOf) {
    const name = `${kind}/${suffix}`
    const listed = await must(client.GET(`/api/v3/providers/${kind}/`, { params: { query: { name } } }))
    const one = await must(client.GET(`/api/v3/providers/${kind}/{name}/`, { params: { path: { name } } }))
    const { data } = await client.GET(`/api/v3/consumers/${kind}/`, { params: { query: { name } } })
    hold(`${kind} is read by servers`, data !== undefined && 'results' in data && data.results[0]?.pk === one.pk)
    hold(`${kind} is listed as it is read`, listed.results[0]?.pk === one.pk && one.name === name)
  }
}

async function stacks(): Promise<void> {
  const name = `stack-${suffix}`
  const model = 'service_core.group' as const
  const entries = [{ model, identifiers: { name: `kept ${suffix}` } }]
  const body = { version: 1 as const, metadata: { name: 'a stack' }, entries }
  const answer = await must(
    client.PUT('/api/v3/blueprints/', { body, params: { header: { 'Gatewright-Stack': name } } }),
  )
  hold('the stack is there', 'applied' in answer && answer.applied)
  const { results } = await must(client.GET('/api/v3/blueprints/stacks/', { params: { query: { search: suffix } } }))
  hold(
    'it is listed',
    results.some((stack) => stack.name === name && stack.size === 1),
  )
  const { members } = await must(client.GET('/api/v3/blueprints/stacks/{name}/', { params: { path: { name } } }))
  const [{ name: member } = { name: '' }] = members
  const path = '/api/v3/blueprints/stacks/{name}/members/{model}/{member}/'
  const { response } = await client.DELETE(path, { params: { path: { name, model, member } } })
  hold('its member stays without it', response.status === 204)
}

async function deletion(slug: string): Promise<void> {
  const path = '/api/v3/core/applications/{slug}/'
  const { response } = await client.DELETE(path, { params: { path: { slug }, query: { with_provider: true } } })
  hold('it is deleted', response.status === 204)
  const { error } = await client.GET(path, { params: { path: { slug } } })
  hold('it is gone', error !== undefined && error.code === 'not_found')
}

await groupsAndUsers()
await tokens()
const slug = await applications()
await shipped()
await devicesAndConsents(slug)
await stacks()
await jobs()
await providers(slug)
await deletion(slug)
process.stdout.write(`${JSON.stringify(calls)}\n`)
