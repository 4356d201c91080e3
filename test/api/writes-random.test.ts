import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, inject, test } from 'vitest'
import { type Asker, installation } from '../support/kit.ts'

/** Any write is applied, or refused with a message, and never a server error. */

const there = await installation({ workers: 'none' })
const { make } = there
const ada = await make.user({ permissions: ['add_group', 'change_group', 'add_user_to_group', 'assign_role'] })
const askers: Asker[] = [there.admin, ada, await make.user({ permissions: ['change_token', 'add_token'] })]
const groups: string[] = await Promise.all(Array.from({ length: 4 }, async () => (await make.group()).pk))
const users: number[] = [ada.pk, (await make.user()).pk]
for (const identifier of ['one', 'two']) await there.admin.post('/api/v3/core/tokens/', { identifier })

const odd = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 2 ** 31, 1e300, '', ' ', [], {}, [[]], 'é', '\ud800', 'a\0b'),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.jsonValue({ maxDepth: 3 }),
)
const mostly = (good: fc.Arbitrary<unknown>) => fc.oneof({ weight: 9, arbitrary: good }, { weight: 1, arbitrary: odd })
const keys = () => mostly(fc.constantFrom(...groups, groups[0]?.toUpperCase(), randomUUID()))
const pks = () => mostly(fc.constantFrom(...users, 1))

const groupBody = () =>
  fc.record(
    {
      name: mostly(fc.uuid()),
      is_superuser: mostly(fc.boolean()),
      parent: fc.option(keys()),
      users: mostly(fc.array(pks(), { maxLength: 4 })),
      roles: mostly(fc.array(keys(), { maxLength: 2 })),
      attributes: mostly(fc.object({ maxDepth: 2 })),
      pk: odd,
    },
    { requiredKeys: [] },
  )

const times = fc
  .oneof(
    fc.date({ noInvalidDate: true }),
    fc.date({ min: new Date(), max: new Date('2100-01-01'), noInvalidDate: true }),
  )
  .map((at) => at.toISOString())
const tokenBody = () =>
  fc.record(
    {
      identifier: mostly(fc.oneof(fc.uuid(), fc.constantFrom('one', 'two'))),
      intent: mostly(fc.constantFrom('api', 'recovery', 'verification', 'app_password')),
      user: pks(),
      description: mostly(fc.string()),
      expires: mostly(times),
      expiring: mostly(fc.boolean()),
      managed: mostly(fc.uuid()),
    },
    { requiredKeys: [] },
  )

type Case = [
  name: string,
  body: () => fc.Arbitrary<unknown>,
  ask: (who: Asker, body: unknown) => ReturnType<Asker['get']>,
]
const cases: Case[] = [
  ['POST groups', groupBody, (who, body) => who.post('/api/v3/core/groups/', body)],
  ['PATCH groups', groupBody, (who, body) => who.patch(`/api/v3/core/groups/${groups[0]}/`, body)],
  ['POST tokens', tokenBody, (who, body) => who.post('/api/v3/core/tokens/', body)],
  ['PATCH tokens', tokenBody, (who, body) => who.patch('/api/v3/core/tokens/one/', body)],
]

test.each(cases)('%s', async (_, body, ask) => {
  const statuses = new Map<number, number>()
  const any = fc.oneof({ weight: 9, arbitrary: body() }, { weight: 1, arbitrary: odd })
  await fc.assert(
    fc.asyncProperty(any, fc.nat(2), async (sent, who) => {
      const { status, json } = await ask(askers[who] ?? there.admin, sent ?? null)
      expect([200, 201, 400, 403, 404, 409], JSON.stringify(json)).toContain(status)
      if (status === 400) expect(json).toMatchObject({ code: expect.stringMatching(/^invalid/) })
      if (status === 409) expect(json).toMatchObject({ detail: expect.stringContaining('would gain rights') })
      if (status === 403) expect(json).toMatchObject({ code: 'permission_denied', detail: expect.any(String) })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }),
    { numRuns: 100 * inject('rounds') },
  )
  // A random change that fits everything is rare.
  expect(statuses.size, JSON.stringify([...statuses])).toBeGreaterThan(inject('rounds') > 1 ? 2 : 1)
})
