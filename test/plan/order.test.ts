import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { Expression } from '../../src/document/tags.ts'
import { compile } from '../../src/plan/compile.ts'
import { bench } from '../apply/engine.ts'
import { aFlow, aGroup, anApplication, aProvider, aRole, aUser, name } from '../support/kit.ts'

/** Entries are judged behind those that they refer to, wherever they stand. */

type Sent = Partial<Entry>

const there = await bench()
const { registry } = there.engine

const compiled = (entries: readonly Sent[]) =>
  compile(
    {
      version: 1,
      metadata: { name: 'a' },
      entries: entries.map((entry) => ({
        model: '',
        state: 'present' as const,
        identifiers: {},
        attrs: {},
        ...entry,
      })),
    },
    registry,
  )

/** The order in which entries are judged, and the errors that are found without the database. */
const orderOf = (...entries: Sent[]) => compiled(entries).steps.map(({ entry }) => entry)
const errorsOf = (...entries: Sent[]) =>
  compiled(entries).errors.list.map(({ path, code, message }) => `${path.join('.')} ${code} ${message}`)

const inCondition = (group: Sent, ...conditions: unknown[]): Sent => ({ ...group, conditions })
const absent = (entry: Sent): Sent => ({ ...entry, state: 'absent' })
const consent = (user: string, application: string): Sent => ({
  model: 'service_core.userconsent',
  identifiers: { user, application },
})
const mapping = (kind: string): Sent => ({
  model: 'service_mappings.propertymapping',
  identifiers: { name: 'm', kind },
})
const groupFound = (group: string) => new Find('service_core.group', { name: group })

test.each<[string, Sent[], number[]]>([
  ['what they refer to first: by name', [aGroup('a', { parent: 'b' }), aGroup('b')], [1, 0]],
  ['in other letters', [aGroup('a', { parent: ' TEAM  b' }), aGroup('team b')], [1, 0]],
  ['by !KeyOf', [aGroup('a', { parent: new KeyOf('x') }), { ...aGroup('b'), id: 'x' }], [1, 0]],
  ['by !Find', [aGroup('a', { parent: groupFound('b') }), aGroup('b')], [1, 0]],
  ['in a list', [aGroup('a', { roles: ['r', 's'] }), aRole('s'), aRole('r')], [2, 1, 0]],
  ['in an edited list', [aGroup('a', { roles: { add: ['r'], remove: ['s'] } }), aRole('s'), aRole('r')], [2, 1, 0]],
  [
    'inside of tags',
    [aGroup('a', { attributes: { b: new Expression('!Format', ['%s', groupFound('b')]) } }), aGroup('b')],
    [1, 0],
  ],
  [
    'a key that an entry chooses',
    [
      aGroup('a', { parent: '6f7e0000-0000-4000-8000-000000000102' }),
      { ...aGroup('b'), identifiers: { pk: '6f7e0000-0000-4000-8000-000000000102' }, attrs: { name: 'b' } },
    ],
    [1, 0],
  ],
  ['in a row', [aGroup('a', { parent: 'b' }), aGroup('x'), aGroup('b', { parent: 'c' }), aGroup('c')], [3, 2, 0, 1]],
  ['the new name of a renamed one', [aGroup('a', { parent: 'b' }), { ...aGroup('b'), was: 'c' }], [1, 0]],
  ['a name that an entry gives', [aGroup('a', { parent: 'c' }), aGroup('b', { name: 'c' })], [1, 0]],
  [
    'the kind that the field takes',
    [aProvider('scim', 'p', { property_mappings: ['m'] }), mapping('oauth2'), mapping('scim')],
    [1, 2, 0],
  ],
  [
    'entries of one row in their order',
    [aGroup('a', { parent: new KeyOf('b') }), aGroup('b', { attributes: {} }), { ...aGroup('b'), id: 'b' }],
    [1, 2, 0],
  ],
  [
    'each that may be skipped, and the first that may not',
    [aGroup('a', { parent: 'b' }), inCondition(aGroup('b'), true), aGroup('b'), aGroup('b')],
    [1, 2, 0, 3],
  ],
  ['what refers to a row before the row is deleted', [absent(aUser('u')), absent(consent('u', 'a'))], [1, 0]],
])('%s', (_, entries, order) => {
  expect(errorsOf(...entries)).toEqual([])
  expect(orderOf(...entries)).toEqual(order)
})

test.each<[string, Sent[]]>([
  ['a name that an entry takes away', [aGroup('a', { parent: 'b' }), aGroup('b', { name: 'c' })]],
  ['the name before a rename', [aGroup('a', { parent: 'b' }), { ...aGroup('c'), was: 'b' }]],
  ['a row that an entry deletes', [aGroup('a', { parent: 'b' }), absent(aGroup('b'))]],
  ['deletions', [absent(aGroup('b')), absent(aGroup('a'))]],
  ['a condition that asks', [inCondition(aGroup('a'), groupFound('b')), aGroup('b')]],
  [
    'a value that depends on whether a row is there',
    [aGroup('a', { attributes: { b: new Expression('!If', [groupFound('b'), 1, 2]) } }), aGroup('b')],
  ],
  ['another row of the name', [aGroup('a', { roles: ['b'] }), aGroup('b')]],
  ['one that fits already', [aRole('r'), aGroup('a', { roles: ['r'] }), aRole('r')]],
  ['an entry that is skipped', [aGroup('a', { parent: 'b' }), inCondition(aGroup('b'), false)]],
  ['the row itself', [aGroup('a', { parent: 'a' })]],
])('leaves entries where they stand: %s', (_, entries) => {
  expect(orderOf(...entries)).toEqual(
    entries.flatMap(({ conditions }, index) => (conditions?.[0] === false ? [] : [index])),
  )
})

test('a condition on an entry needs it', () => {
  expect(orderOf(inCondition(aGroup('a'), new KeyOf('x')), { ...aGroup('b'), id: 'x' })).toEqual([1, 0])
})

test('a circle is refused at each of its entries, with the way', () => {
  const a = { ...aGroup('a', { parent: 'b' }), id: 'x' }
  const message = 'circle Refers to itself in a circle: group "a" -> group "b" -> user "c" -> group "a".'
  expect(errorsOf(a, aGroup('other'), aGroup('b', { users: ['c'] }), aUser('c', { groups: [new KeyOf('x')] }))).toEqual(
    [`entries.0 ${message}`, `entries.2 ${message}`, `entries.3 ${message}`],
  )
  const long = Array.from({ length: 10_000 }, (_, index) => aGroup(`g${index}`, { parent: `g${(index + 1) % 10_000}` }))
  expect(errorsOf(...long)[0]).toMatch(/: group "g0" -> (group "g\d" -> ){9}\.\.\. -> group "g0"\.$/)
})

test('ten thousand entries, each of which refers to the next', () => {
  const long = Array.from({ length: 10_000 }, (_, index) => aGroup(`g${index}`, { parent: `g${index + 1}` }))
  expect(orderOf(...long)).toEqual(long.map((_, index) => 9_999 - index))
})

/** A document, with each of its entries behind those that it refers to. */
const good = (of: string): Sent[] => [
  aFlow(`${of}-f`, { name: of, designation: 'authorization' }),
  {
    model: 'service_mappings.propertymapping',
    identifiers: { managed: `${of}/m` },
    attrs: { name: `${of} m`, kind: 'oauth2', expression: 'return {}' },
  },
  aRole(`${of}-r`),
  { ...aGroup(`${of}-top`, { roles: [`${of}-r`] }), id: `${of}-top` },
  aGroup(`${of}-middle`, { parent: new KeyOf(`${of}-top`) }),
  aGroup(`${of}-low`, { parent: new Find('service_core.group', { name: `${of}-middle` }) }),
  aUser(`${of}-u`, { groups: [`${of}-low`, `${of}-middle`] }),
  {
    ...aProvider('oauth2', `${of}-p`, {
      authorization_flow: `${of}-f`,
      property_mappings: [`${of}/m`],
      client_id: `${of}-id`,
    }),
    id: `${of}-p`,
  },
  anApplication(`${of}-a`, { name: of, provider: new KeyOf(`${of}-p`) }),
  aProvider('scim', `${of}-s`, { url: 'https://scim.example.com/', token: 'a-token-of-twenty-letters' }),
  anApplication(`${of}-b`, { name: of, provider: null, backchannel_providers: [`${of}-s`] }),
]

test('a document in any order has the same changes, and the same effect', async () => {
  const entries = good(name)
  const places = fc.shuffledSubarray([...entries.keys()], { minLength: entries.length, maxLength: entries.length })
  let count = 0
  const changesOf = async (order: readonly number[]) => {
    count += 1
    const of = `${name}-${count}`
    const all = good(of)
    const { changes } = await there.apply(order.map((place) => all[place] ?? {}))
    const again = await there.apply(all)
    expect(again.changes.filter(({ action }) => action !== 'unchanged')).toEqual([])
    return changes.map(({ entry: _, ...change }) => JSON.stringify(change).replaceAll(of, 'of')).sort()
  }
  const expected = await changesOf([...entries.keys()])
  const isSame = async (order: readonly number[]) => {
    expect(await changesOf(order)).toEqual(expected)
  }
  await fc.assert(fc.asyncProperty(places, isSame), { numRuns: 20 })
})
