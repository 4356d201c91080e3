import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import pg from 'pg'
import { expect, test } from 'vitest'
import { pipelinedTransaction } from '../../src/db/pipeline.ts'
import { atEnd, freshDatabase, recordStatements, until } from '../support/kit.ts'
import { startStack } from './stack.ts'

/** Every statement of the API goes through Prisma, and each operation sends few of them. */

const { url } = await freshDatabase()
const recorder = await recordStatements()
const stack = await startStack({ databaseUrl: url, redisUrl: null })
const worker = await stack.startWorker()
atEnd(async () => void (await worker.stop()))

const name = `one of ${randomUUID()}`
const identifier = randomUUID()
const members = { name, is_superuser: false, attributes: {} }
const made = { group: '' }
const example = async () => JSON.parse(await readFile(new URL('../../examples/oauth2.json', import.meta.url), 'utf8'))

const byNames = {
  app: { name: 'By name', slug: 'by-name' },
  provider_model: 'service_providers_oauth2.oauth2provider',
  provider: {
    name: 'by-name',
    authorization_flow: 'default-authorization-explicit',
    property_mappings: ['OpenID scope openid', 'gatewright/oauth2/scope-email'],
    signing_key: 'Gatewright self-signed',
  },
}

/** Waits until no statement is under way that an earlier request has caused. */
async function quiet(): Promise<void> {
  let known = -1
  await until(
    'statements of earlier requests to end',
    () => {
      const isSame = recorder.sent.length === known
      known = recorder.sent.length
      return isSame
    },
    { everyMs: 50 },
  )
}

/** Each operation with the most statements that it may send, authentication included. */
test.each<[string, string, string | (() => string), number, number, (() => unknown)?]>([
  ['own devices', 'GET', '/authenticators/totp/', 200, 5],
  ['devices', 'GET', '/authenticators/admin/totp/', 200, 5],
  ['consents', 'GET', '/core/user_consent/', 200, 14],
  ['me', 'GET', '/core/users/me/', 200, 3],
  ['users', 'GET', '/core/users/', 200, 8],
  ['groups', 'GET', '/core/groups/', 200, 9],
  ['a new group', 'POST', '/core/groups/', 201, 16, () => members],
  ['a changed group', 'PATCH', () => `/core/groups/${made.group}/`, 200, 16, () => ({ name: `${name}, later` })],
  ['members of a group', 'GET', () => `/core/groups/${made.group}/members/`, 200, 4],
  ['a new token', 'POST', '/core/tokens/', 201, 12, () => ({ identifier })],
  ['a changed token', 'PATCH', `/core/tokens/${identifier}/`, 200, 13, () => ({ description: 'later' })],
  ['tokens', 'GET', '/core/tokens/', 200, 8],
  ['a token', 'GET', `/core/tokens/${identifier}/`, 200, 6],
  ['a deleted token', 'DELETE', `/core/tokens/${identifier}/`, 204, 11],
  ['an apply', 'PUT', '/core/transactional/applications/', 200, 12, example],
  // One statement more, for all names together.
  ['an apply by names', 'PUT', '/core/transactional/applications/', 200, 13, () => byNames],
  ['applications', 'GET', '/core/applications/', 200, 4],
  ['an application', 'GET', '/core/applications/grafana/', 200, 4],
  ['providers', 'GET', '/providers/all/', 200, 4],
  ['providers of a kind', 'GET', '/providers/oauth2/', 200, 4],
  ['a provider', 'GET', '/providers/oauth2/grafana/', 200, 4],
  ['flows', 'GET', '/flows/instances/', 200, 3],
  ['a flow', 'GET', '/flows/instances/default-authentication/', 200, 3],
  ['property mappings', 'GET', '/propertymappings/all/', 200, 3],
  ['a property mapping', 'GET', '/propertymappings/all/SCIM%20user/', 200, 3],
  ['key pairs', 'GET', '/crypto/certificatekeypairs/', 200, 3],
  ['a key pair', 'GET', '/crypto/certificatekeypairs/Gatewright%20self-signed/', 200, 3],
  ['the audit', 'GET', '/core/audit/', 200, 4],
  ['roles', 'GET', '/rbac/roles/', 200, 3],
  ['a role', 'GET', '/rbac/roles/Application%20deployer/', 200, 3],
  ['trusted issuers', 'GET', '/rbac/trustedissuers/', 200, 3],
  ['the token of the request', 'GET', '/auth/token/', 200, 2],
])('%s: %s %s', async (_operation, method, path, status, most, body) => {
  // The run of the last apply may be read once more after its answer.
  await quiet()
  const before = recorder.sent.length
  const answer = await stack.send(method, `/api/v3${typeof path === 'string' ? path : path()}`, await body?.())
  expect(answer, answer.text).toMatchObject({ status })
  if (status === 201) made.group ||= (answer.json as { pk: string }).pk
  expect(recorder.past()).toEqual([])
  // The server reports every 2 s that it is there, beside all requests.
  const sent = recorder.sent.slice(before).filter((text) => !text.includes('INTO servers '))
  // Two at least, authentication and the work: fewer would mean that they were not recorded.
  expect(sent.length).toBeGreaterThanOrEqual(2)
  expect(sent.length, sent.join('\n')).toBeLessThanOrEqual(most)
})

test('health and metrics send all statements through Prisma too', async () => {
  expect((await stack.get('/-/health/ready/')).status).toBe(200)
  expect((await stack.get('/-/metrics/')).status).toBe(200)
  expect(recorder.past()).toEqual([])
})

test('a statement that bypasses Prisma would be found', async () => {
  const pool = new pg.Pool({ connectionString: url, application_name: 'gatewright-api', max: 1, pipeline: true })
  await pool.query('SELECT 1 AS past')
  const statement = { text: 'SELECT 2 AS past', values: [] }
  await pipelinedTransaction(pool)(async (tx) => tx.send(statement))
  await pool.end()
  expect(recorder.past()).toEqual(expect.arrayContaining(['SELECT 1 AS past', 'SELECT 2 AS past']))
})
