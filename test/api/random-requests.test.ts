import fc from 'fast-check'
import type { InjectOptions } from 'fastify'
import { expect, test } from 'vitest'
import type { Known } from '../support/arbitrary.ts'
import { applied, applyPath, type Body, example, installation, kinds, onCi } from '../support/kit.ts'
import { type Operation, readDescription } from '../support/openapi.ts'
import { randomRequests, type Tokens } from '../support/random-request.ts'

/** The least requests of each operation, and how many at a time. */
const requests = onCi ? 200 : 500
const atOnce = 12

/** A property mapping, a key pair and a role that every installation has, and a trusted issuer. */
const shipped = ['SCIM user', 'Gatewright self-signed', 'Application deployer', 'ci']

/** The values of the shipped submissions by name. */
function membersOf(examples: readonly Body[]): Map<string, unknown[]> {
  const found = new Map<string, unknown[]>()
  for (const [name, value] of examples.flatMap(({ app, provider }) => [app, provider]).flatMap(Object.entries))
    if (name !== 'name') found.set(name, [...(found.get(name) ?? []), value])
  return found
}

/** Applications that no random body names: a deletion of one is not refused for what the other requests left behind. */
const unused = Array.from({ length: 20 }, (_, index) => `unused-${index}`)

const identifiers = Array.from({ length: 20 }, (_, index) => `token-${index}`)

const service = await installation({ waits: { everyMs: 20 } })
const api = await readDescription(service.app)
const examples = await Promise.all(kinds.map((kind) => example(kind)))
const [group, role] = [await service.make.group(), await service.make.role(['view_user'])]
const user = await service.make.user({ permissions: ['view_group'], groups: [group.pk] })
for (const each of examples) await service.admin.put(applyPath, each)
const shape = await example('proxy')
for (const slug of unused) {
  const app = { ...shape.app, name: slug, slug }
  await service.admin.put(applyPath, { ...shape, app, provider: { ...shape.provider, name: slug } })
}
const stack = 'a stack'
const stacked = [{ model: 'service_rbac.role', identifiers: { name: 'stacked' } }]
await applied(service.admin.apply(stacked, { stack }))
const issuer = { issuer: 'https://ci.example.com', audience: 'gatewright' }
await applied(
  service.admin.apply([{ model: 'service_rbac.trustedissuer', identifiers: { name: 'ci' }, attrs: issuer }]),
)
const [run] = await service.db.run.findMany()
const tokens: Tokens = { admin: await service.make.token(1), other: user.token }
const known: Known = new Map<string, unknown[]>([
  ...membersOf(examples),
  ...Object.entries({
    id: [run?.id],
    '{name}': [...examples.map(({ provider }) => provider.name), ...shipped, ...Array<string>(5).fill(stack)],
    '{slug}': [...examples.map(({ app }) => app.slug), 'default-authentication', ...unused],
    group_uuid: [group.pk],
    groups_by_pk: [group.pk],
    identifier: [...identifiers, 'another'],
    'Impersonate-User': [user.username],
    stacks: [[]],
    members_by_pk: [[1, user.pk], 1],
    ordering: ['name,-pk', '-pk', 'pk'],
    page: [1, 2],
    parent: [null, group.pk],
    provider: [null],
    roles: [[], [role.pk]],
    user: [1],
    users: [[], [user.pk]],
    expires: ['2099-01-01T00:00:00Z', null],
    last_login: ['2026-01-01T00:00:00Z'],
    attributes: [{ a: { b: 1 } }, '{"a": {"b": 1}}'],
    managed: [null],
    backchannel_providers: [[]],
  }),
])

/** Creates those of the tokens that are not there: requests rename and delete them. */
async function createTokens(): Promise<void> {
  const headers = { 'content-type': 'application/json' }
  for (const identifier of identifiers)
    await service.admin.send({ method: 'POST', url: '/api/v3/core/tokens/', headers, payload: { identifier } })
}

test('any request to any operation gets an answer as described, and no server error', {
  timeout: 1_200_000,
}, async () => {
  const requestOf = randomRequests(api, known, tokens)
  const tally = new Map<string, Map<number, number>>()

  /** @returns the errors of the answer */
  async function ask(operation: Operation, request: InjectOptions): Promise<unknown[]> {
    const { statusCode: status, headers, body } = await service.app.inject(request)
    const counts = tally.get(operation.operationId) ?? new Map<number, number>()
    tally.set(operation.operationId, counts.set(status, (counts.get(status) ?? 0) + 1))
    const errors = api.validate(operation, { status, headers, text: body })
    return status >= 500 || errors.length > 0 ? [{ request, status, errors, body }] : []
  }

  // They use up rows that the others read, so they come last. A deletion succeeds once for each row; a former run is mostly
  // one that has not ended, or one of another owner (test/api/run-apply.test.ts has those that succeed), and one to cancel is
  // mostly over. No random text is a signed identity token.
  const leastServed = new Map([
    ['auth_token_create', 0],
    ['core_applications_destroy', 5],
    ['blueprints_runs_apply_create', 0],
    ['blueprints_stacks_members_destroy', 0],
    ['blueprints_runs_cancel_create', 0],
  ])
  const isLast = ({ operationId }: { operationId: string }) => Number(leastServed.has(operationId))
  for (const operation of api.operations.toSorted((one, other) => isLast(one) - isLast(other))) {
    const some = fc.array(requestOf(operation), { minLength: 1, maxLength: atOnce, size: 'max' })
    const property = fc.asyncProperty(some, async (all) => {
      expect((await Promise.all(all.map((request) => ask(operation, request)))).flat()).toEqual([])
    })
    await createTokens()
    // An array is on average half as long as it may be.
    await fc.assert(property, { numRuns: Math.ceil((2 * requests) / atOnce) })
  }

  // Some requests must succeed, and some must be refused.
  for (const [id, counts] of tally) {
    const served = [200, 201, 204, 410].reduce((sum, status) => sum + (counts.get(status) ?? 0), 0)
    const summary = `${id}: ${JSON.stringify([...counts])}`
    expect.soft(served, summary).toBeGreaterThanOrEqual(leastServed.get(id) ?? requests / 200)
    expect.soft(counts.get(400) ?? 0, summary).toBeGreaterThan(requests / 100)
  }
  expect(tally.size).toBe(api.operations.length)
  expect(service.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
})
