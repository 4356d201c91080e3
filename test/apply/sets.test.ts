import fc from 'fast-check'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { type ApplyResult, apply } from '../../src/apply/apply.ts'
import { Refusal } from '../../src/apply/refusal.ts'
import type { EngineTx } from '../../src/db/engine-tx.ts'
import { type Entry, KeyOf } from '../../src/document/document.ts'
import { system } from '../../src/permissions.ts'
import { compile } from '../../src/plan/compile.ts'
import { unconditional } from '../../src/plan/engine.ts'
import { anApplication, aProvider } from '../support/entries.ts'
import { type Bench, bench } from './engine.ts'

/** A large document reads and writes by model, and does the same as its entries one after the other. */

let together: Bench
let alone: Bench
beforeAll(async () => {
  ;[together, alone] = await Promise.all([bench(), bench()])
})

const oauth2 = 'service_providers_oauth2.oauth2provider'
const scim = 'service_providers_scim.scimprovider'
const authorization = 'default-authorization-explicit'

type Sent = Partial<Entry>

const nameOf = (kind: string) => fc.nat({ max: 3 }).map((number) => `${kind}-${number}`)
const sometimes = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 1 })

/** Few names, so that entries meet: each is made, renamed, taken over and deleted by several. */
const models: readonly fc.Arbitrary<Sent>[] = [
  fc.record({
    model: fc.constant('service_flows.flow'),
    identifiers: fc.record({ slug: nameOf('flow') }),
    attrs: fc.record({
      name: nameOf('n'),
      title: nameOf('t'),
      designation: fc.constantFrom('authorization', 'authorization', 'authentication'),
      slug: sometimes(nameOf('flow')),
    }),
  }),
  fc.record({
    model: fc.constant('service_mappings.propertymapping'),
    identifiers: fc.record({ managed: nameOf('mapping') }),
    attrs: fc.record({ name: nameOf('mapping'), kind: fc.constant('oauth2'), expression: nameOf('x') }),
  }),
  fc.record({
    model: fc.constant(oauth2),
    identifiers: fc.record({ name: nameOf('p') }),
    attrs: fc.record({
      authorization_flow: fc.oneof(fc.constant(authorization), nameOf('flow')),
      client_id: nameOf('client'),
      property_mappings: sometimes(nameOf('mapping').map((name) => [name])),
      name: sometimes(nameOf('p')),
    }),
  }),
  fc.record({
    model: fc.constant(scim),
    identifiers: fc.record({ name: nameOf('s') }),
    attrs: fc.record({ url: nameOf('h').map((host) => `https://${host}.example.com`), token: nameOf('token') }),
  }),
  fc.record({
    model: fc.constant('service_core.application'),
    identifiers: fc.record({ slug: nameOf('a') }),
    attrs: fc.record({
      name: nameOf('n'),
      provider: sometimes(fc.option(nameOf('p'), { freq: 5 })),
      backchannel_providers: sometimes(
        fc.oneof(
          fc.constant([]),
          nameOf('s').map((name) => [name]),
        ),
      ),
      slug: sometimes(nameOf('a')),
    }),
  }),
  fc.record({
    model: fc.constant('service_core.group'),
    identifiers: fc.record({ name: nameOf('g') }),
    attrs: fc.record({ parent: sometimes(nameOf('g')), roles: sometimes(nameOf('r').map((name) => [name])) }),
  }),
  fc.record({
    model: fc.constant('service_rbac.role'),
    identifiers: fc.record({ name: nameOf('r') }),
    attrs: fc.record({ permissions: fc.constant(['view_group']) }),
  }),
]

const documents: fc.Arbitrary<Sent[]> = fc.array(
  fc
    .tuple(
      fc.oneof(...models, models[4] ?? fc.constant({})),
      fc.constantFrom('present', 'present', 'present', 'absent'),
    )
    .map(
      ([entry, state]): Sent => ({
        ...entry,
        state: state as 'present',
        attrs: state === 'absent' ? {} : sent(entry),
        // Such an entry may say something else of a row than an earlier one.
        conditions: [true],
      }),
    ),
  { minLength: 2, maxLength: 30 },
)

const sent = ({ attrs = {} }: Sent) =>
  Object.fromEntries(Object.entries(attrs).filter(([, value]) => value !== undefined))

/** What the rows say, by names: keys differ. */
async function contents({ db }: Bench) {
  const applications = await db.application.findMany({
    where: { slug: { startsWith: 'a-' } },
    orderBy: { slug: 'asc' },
    select: {
      ...{ slug: true, name: true, provider: { select: { name: true } } },
      backchannelProviders: { select: { provider: { select: { name: true } } } },
    },
  })
  const flows = await db.flow.findMany({
    where: { slug: { startsWith: 'flow-' } },
    orderBy: { slug: 'asc' },
    select: { slug: true, name: true, title: true, designation: true },
  })
  const providers = await db.provider.findMany({
    where: { name: { startsWith: '' } },
    orderBy: { name: 'asc' },
    select: { name: true, kind: true, authorizationFlow: { select: { slug: true } } },
  })
  const groups = await db.group.findMany({
    where: { name: { startsWith: 'g-' } },
    orderBy: { name: 'asc' },
    select: { name: true, parent: { select: { name: true } }, roles: { select: { role: { select: { name: true } } } } },
  })
  return { applications, flows, providers, groups }
}

type Changes = readonly Pick<ApplyResult['changes'][number], 'model' | 'key' | 'action' | 'fields'>[]

const summary = (changes: Changes) =>
  changes.map(({ model, key, action, fields }) => ({ model, key, action, fields: Object.keys(fields).sort() }))

const outcome = async (on: Bench, entries: readonly Sent[]) => {
  try {
    return summary((await on.apply(entries)).changes)
  } catch (error) {
    if (error instanceof Refusal) return error.reason
    throw error
  }
}

describe('a random document', () => {
  const rounds = 40 * inject('rounds')
  test(`does what its entries do one after the other, and a check finds that (${rounds} of them)`, async () => {
    let applied = 0
    const play = async (entries: readonly Sent[]) => {
      // Entries that are refused alone are left out: the others can all be applied.
      const kept: Sent[] = []
      const expected: unknown[] = []
      for (const entry of entries) {
        const changes = await outcome(alone, [entry])
        if (typeof changes === 'string') continue
        kept.push(entry)
        expected.push(changes[0])
      }
      if (kept.length === 0) return
      const checked = await together.check(kept)
      expect(summary(checked.map(({ change }) => change))).toEqual(expected)
      expect(await outcome(together, kept)).toEqual(expected)
      expect(await contents(together)).toEqual(await contents(alone))
      applied += kept.length
    }
    // Each begins with what the ones before have left. A failure cannot be made smaller.
    await fc.assert(fc.asyncProperty(documents, play), { numRuns: rounds, endOnFailure: true })
    expect(applied).toBeGreaterThan(rounds * 3)
  })
})

/** An application with its provider, as a submission writes them. */
const pair = (name: string, attrs: Record<string, unknown> = {}): Entry[] => [
  {
    ...aProvider('oauth2', name, {
      authorization_flow: authorization,
      property_mappings: ['OpenID scope openid'],
      ...attrs,
    }),
    id: `provider ${name}`,
    state: 'present',
  },
  { ...anApplication(name, { name, provider: new KeyOf(`provider ${name}`) }), state: 'present' },
]

describe('a set of 600 applications with their providers', () => {
  const names = Array.from({ length: 600 }, (_, index) => `set-${index}`)
  const entries = (attrs?: Record<string, unknown>) => names.flatMap((name) => pair(name, attrs))

  async function counted(sent: readonly Entry[]) {
    const { engine, transaction } = together
    const plan = compile({ version: 1, metadata: { name: 'set' }, entries: sent }, engine.registry)
    let statements = 0
    const result = await transaction((tx) => {
      const counting: EngineTx = {
        ...tx,
        query: (row, statement) => {
          statements += 1
          return tx.query(row, statement)
        },
        send: (statement, explain) => {
          statements += 1
          tx.send(statement, explain)
        },
      }
      return apply(counting, engine, plan, system, unconditional)
    })
    return { statements, result }
  }

  test.each([
    ['is created', entries(), 'create', 40],
    ['is unchanged', entries(), 'unchanged', 25],
    ['is updated', entries({ access_code_validity: 'minutes=2' }), 'update', 40],
    [
      'is deleted',
      entries()
        .toReversed()
        .map((entry) => ({ ...entry, state: 'absent' as const, attrs: {} })),
      'delete',
      40,
    ],
  ] as const)(
    '%s by a few statements',
    async (_, sent, action, most) => {
      const { statements, result } = await counted(sent)
      const changed = result.changes.filter((change) => change.action === action)
      expect(changed.length).toBe(action === 'update' ? 600 : 1_200)
      expect(statements).toBeLessThanOrEqual(most)
      expect(await together.db.application.count({ where: { slug: { startsWith: 'set-' } } })).toBe(
        action === 'delete' ? 0 : 600,
      )
    },
    60_000,
  )

  test('an error in the last entry leaves nothing', async () => {
    const before = await together.db.provider.count()
    const last = { ...pair('last')[0], attrs: { authorization_flow: 'no-such-flow' } }
    expect(await together.refusal([...entries(), last])).toMatchObject({ reason: 'invalid' })
    expect(await together.db.provider.count()).toBe(before)
  }, 60_000)
})
