import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeEach, describe, expect, inject, test } from 'vitest'
import { type Asker, type AskOptions, aGroup, type Entry, installation, name } from '../support/kit.ts'

/** `owner` of an entry: one document about the objects of several owners. */

const there = await installation()

type Members = { owner?: string | null; prune?: unknown }
type Sent = Omit<AskOptions, 'owner'> & Members & { query?: string; as?: Asker }
/** `owner` and `prune` are members of the document. */
const send = (entries: readonly Entry[], { as = there.admin, owner, prune, ...options }: Sent = {}) =>
  as.apply(entries, { ...options, name, members: { owner, prune } })
const { refused } = there
const { runOf } = there.admin

const application = (each: string, more: Partial<Entry> = {}): Entry => ({
  ...{ model: 'service_core.application', identifiers: { slug: `${name}-${each}` }, attrs: { name: each } },
  ...more,
})
const provider = (each: string, more: Partial<Entry> = {}): Entry => ({
  model: 'service_providers_scim.scimprovider',
  identifiers: { name: `${name}-${each}` },
  attrs: { url: 'https://example.com/scim', token: 'a token of many letters' },
  ...more,
})
const group = (each: string, more: Partial<Entry> = {}): Entry => ({ ...aGroup(`${name}-${each}`), ...more })

/** The owner of each application and provider of this test, by the end of its name. */
async function owners(start = name): Promise<Record<string, string | null>> {
  const where = { startsWith: start }
  const [apps, providers] = await Promise.all([
    there.db.application.findMany({ where: { slug: where } }),
    there.db.provider.findMany({ where: { name: where } }),
  ])
  return Object.fromEntries([
    ...apps.map(({ slug, owner }) => [slug.slice(start.length + 1), owner]),
    ...providers.map((row) => [`provider ${row.name.slice(start.length + 1)}`, row.owner]),
  ])
}

describe('an entry', () => {
  const mixed = () => [
    application('a', { owner: 'team-a' }),
    provider('b', { owner: 'team-b' }),
    application('none', { owner: null }),
    application('other'),
    group('shared'),
  ]
  const wanted = { a: 'team-a', 'provider b': 'team-b', none: null, other: 'team-c' }

  test('has its own owner, none, or that of the document; the same again is unchanged', async () => {
    const plan = await send(mixed(), { owner: 'team-c', query: 'dry_run=true' })
    expect([plan.status, await owners()]).toEqual([200, {}])
    const applied = await send(mixed(), { owner: 'team-c', ifMatch: plan.etag })
    expect([applied.status, await owners()]).toEqual([200, wanted])
    expect((await send(mixed(), { owner: 'team-c' })).logs.every((line) => line.endsWith(' unchanged'))).toBe(true)
    const run = await runOf(applied)
    expect(run).toMatchObject({ owner: 'team-c', owners: ['team-a', 'team-b', 'team-c'] })
    expect(run.blueprint).toContain('owner: team-b')
  })

  test('keeps it in a former run, whatever owner the request has then', async () => {
    const applied = await send(mixed(), { headers: { 'gatewright-owner': 'team-c' } })
    await there.db.application.deleteMany({ where: { slug: { startsWith: name } } })
    await there.db.provider.deleteMany({ where: { name: { startsWith: name } } })
    const url = `${applied.run}apply/`
    expect((await there.admin.post(url)).status).toBe(200)
    expect(await owners()).toEqual(wanted)
    expect((await there.admin.post(url, undefined, { owner: 'team-d', allow: 'takeover' })).status).toBe(200)
    expect(await owners()).toEqual({ ...wanted, other: 'team-d' })
  })

  test('of another owner is a conflict of that entry alone, and a takeover of it', async () => {
    await send([application('a', { owner: 'team-a' }), application('b', { owner: 'team-b' })])
    const entries = [application('a', { owner: 'team-a' }), application('b', { owner: 'team-c' })]
    const answer = await refused(409, () => send(entries))
    expect(answer.detail).toMatch(
      /^application "\S+-b" belongs to owner "team-b" .*, and the entry names owner "team-c"\./,
    )
    expect(answer.detail).not.toContain(`${name}-a`)
    const taken = await send(entries, { allow: 'takeover' })
    expect(taken.logs).toContainEqual(
      expect.stringMatching(/-b" belonged to owner "team-b" .*: it belongs to owner "team-c" now/),
    )
    expect(await owners()).toEqual({ a: 'team-a', b: 'team-c' })
    expect((await runOf(taken)).changes).toMatchObject([
      { action: 'unchanged', fields: {} },
      { fields: { owner: { from: 'team-b', to: 'team-c' } } },
    ])
  })

  test('may use what another entry names under its own owner', async () => {
    await send([provider('p', { owner: 'team-b' })])
    const uses = application('a', { owner: 'team-a', attrs: { name: 'a', backchannel_providers: [`${name}-p`] } })
    expect((await refused(409, () => send([uses]))).detail).toContain('the entry names owner "team-a"')
    expect((await send([provider('p', { owner: 'team-b' }), uses])).status).toBe(200)
    expect(await owners()).toEqual({ 'provider p': 'team-b', a: 'team-a' })
  })

  test('of a model without owners takes none', async () => {
    const answer = await send([group('a', { owner: null }), group('b', { owner: 'team-a' })])
    expect(answer).toMatchObject({
      status: 400,
      errors: [
        { code: 'not_stored', pointer: '/entries/1/owner', message: 'No owner is kept of a group: leave this out.' },
      ],
    })
    expect(await send([application('a', { owner: '' })])).toMatchObject({
      status: 400,
      errors: [{ pointer: '/entries/0/owner', code: 'too_short' }],
    })
  })

  test('under one Idempotency-Key with another owner is something else', async () => {
    const headers = { 'idempotency-key': randomUUID() }
    expect((await send([application('a', { owner: 'team-a' })], { headers })).status).toBe(200)
    expect((await send([application('a', { owner: 'team-a' })], { headers })).status).toBe(200)
    expect((await send([application('a', { owner: 'team-b' })], { headers })).status).toBe(422)
  })

  test('that was planned with one owner is not applied with another', async () => {
    const plan = await send([application('a', { owner: 'team-a' })], { query: 'dry_run=true' })
    expect((await send([application('a', { owner: 'team-b' })], { ifMatch: plan.etag })).status).toBe(412)
    expect(await owners()).toEqual({})
  })

  test('that was planned under the owner of one request is not created under that of another', async () => {
    const plan = await send([application('a'), group('g')], { query: 'dry_run=true' })
    const ifMatch = plan.etag
    const under = { headers: { 'gatewright-owner': 'team-a' } }
    const answer = await send([application('a'), group('g')], { ifMatch, ...under })
    expect([answer.status, await owners()]).toEqual([412, {}])
    expect((await send([application('a'), group('g')], { ifMatch })).status).toBe(200)
    expect(await owners()).toEqual({ a: null })
  })
})

describe('prune of some owners', () => {
  const own = (team: string) => `${name}-${team}`
  const of = (each: string, team: string) => application(each, { owner: own(team) })
  beforeEach(async () => {
    const kept = ['a', 'b', 'c']
    const gone = ['a-gone', 'b-gone', 'c-gone']
    await send([...kept, ...gone].map((each) => of(each, each.slice(0, 1))))
  })
  const named = () => ['a', 'b', 'c'].map((each) => of(each, each))
  const slugs = async () => Object.keys(await owners()).sort()

  test('is a stack of theirs and the title: it deletes what left it alone; its number is over all of them', async () => {
    const prune = [own('a'), own('b'), own('a')]
    const all = [...named(), of('a-gone', 'a'), of('b-gone', 'b')]
    expect((await send(all, { prune })).status).toBe(200)
    const refusal = await refused(409, () => send(named(), { prune, allow: 'deletes=1' }))
    expect(refusal.detail).toMatch(/^2 left over, and not 1: application "\S+-gone", application "\S+-gone"\./)
    expect(refusal.detail).not.toContain('c-gone')
    const plan = await send(named(), { prune, query: 'dry_run=true' })
    expect(plan.logs).toContainEqual(expect.stringMatching(/^2 left over, .*Gatewright-Allow: deletes=2$/))
    const applied = await send(named(), { prune: [own('b'), own('a')], ifMatch: plan.etag })
    expect([applied.status, await slugs()]).toEqual([412, ['a', 'a-gone', 'b', 'b-gone', 'c', 'c-gone']])
    expect((await send(named(), { prune, ifMatch: plan.etag })).status).toBe(200)
    expect(await slugs()).toEqual(['a', 'b', 'c', 'c-gone'])
  })

  test('takes no owner of the document; without entries it deletes all of theirs', async () => {
    expect((await send([of('c', 'c')], { prune: [own('c')] })).status).toBe(200)
    const answer = await send([], { prune: [own('c')], allow: 'deletes=1' })
    expect([answer.status, await slugs()]).toEqual([200, ['a', 'a-gone', 'b', 'b-gone', 'c-gone']])
    expect((await send([], { prune: [] })).status).toBe(400)
    const wrong = await send(named(), { prune: 'all' })
    expect(wrong).toMatchObject({ status: 400, errors: [{ pointer: '/prune' }] })
  })
})

describe('a caller who is bound to an owner', () => {
  const permissions = ['add', 'change', 'delete', 'view'].flatMap((verb) => [
    `${verb}_application`,
    `${verb}_scimprovider`,
  ])

  test('is denied the entries of another, by name; what is there makes no difference', async () => {
    const as = await there.make.user({ permissions, owners: ['team-a'] })
    expect((await send([application('there', { owner: 'team-b' })])).status).toBe(200)
    const texts: string[] = []
    for (const each of ['there', 'new']) {
      const entries = [application('a', { owner: 'team-a' }), application(each, { owner: 'team-b' })]
      const answer = await refused(403, () => send(entries, { as, allow: 'takeover' }))
      texts.push(answer.detail.replace(`-${each}"`, '-x"'))
    }
    const text = `You may not write application "${name}-x" of owner "team-b": the permissions hold for rows of owner "team-a" only.`
    expect(texts).toEqual([text, text])
    expect((await send([application('a', { owner: 'team-a' })], { as })).status).toBe(200)
  })

  test('needs the permission for each entry by its own owner', async () => {
    const group = (await there.make.group({ roles: [(await there.make.role(['change_application'], ['team-b'])).pk] }))
      .pk
    const as = await there.make.user({ permissions, owners: ['team-a'], groups: [group] })
    await send([application('b', { owner: 'team-b' })])
    const changed = application('b', { owner: 'team-b', attrs: { name: 'changed' } })
    const entries = [application('a', { owner: 'team-a' }), changed]
    expect((await send(entries, { as })).status).toBe(200)
    const answer = await refused(403, () => send([...entries, application('b-2', { owner: 'team-b' })], { as }))
    expect(answer.detail).toBe(
      `You may not create application "${name}-b-2": the permission add_application holds for rows of owner "team-a" only: name one of them as its owner.`,
    )
    const released = await refused(403, () =>
      send([application('a', { owner: null })], { as, owner: 'team-a', allow: 'takeover' }),
    )
    expect(released.detail).toContain('change_application holds for rows of owners "team-a", "team-b" only')
  })

  test('sees a run when all of its owners are the own ones', async () => {
    const viewer = async (...teams: string[]) =>
      there.make.user({ permissions: [...permissions, 'view_run'], owners: teams })
    const [one, both] = [await viewer('team-a'), await viewer('team-a', 'team-b')]
    const all = {
      one: await send([application('a', { owner: 'team-a' })], { owner: 'team-a' }),
      two: await send([application('a'), application('b', { owner: 'team-b' })], { owner: 'team-a' }),
      none: await send([application('a'), application('c', { owner: null })], { owner: 'team-a' }),
      unowned: await send([application('a', { owner: 'team-a' })]),
    }
    const seen = async (as: Asker) => {
      const { results } = Object((await as.get('/api/v3/blueprints/runs/?page_size=1000')).json)
      const ids = new Set(results.map(({ id }: { id: string }) => id))
      const found = Object.entries(all).map(async ([what, { run, runId }]) => {
        const { status } = await as.get(run)
        expect([what, ids.has(runId)]).toEqual([what, status === 200])
        return status === 200 ? [what] : []
      })
      return (await Promise.all(found)).flat()
    }
    expect(await seen(one)).toEqual(['one'])
    expect(await seen(both)).toEqual(['one', 'two'])
    expect(await seen(there.admin)).toEqual(Object.keys(all))
    // The own ones, also of another token, and also with objects under no owner.
    const self = await there.make.user({ permissions })
    const bound = there.as(await there.make.token(self.pk, { ceiling: permissions.map((each) => `${each}@team-a`) }))
    const entries = [application('m', { owner: 'team-a' }), application('n', { owner: null })]
    const { run, runId } = await send(entries, { as: self, owner: 'team-a' })
    expect([(await bound.get(run)).status, (await both.get(run)).status]).toEqual([200, 404])
    const { results } = Object((await bound.get('/api/v3/blueprints/runs/')).json)
    expect(results.map(({ id }: { id: string }) => id)).toEqual([runId])
  })
})

test('runs are found by each of their owners', async () => {
  const [first, second, third] = ['x', 'y', 'z'].map((team) => `${name}-${team}`) as [string, string, string]
  const found = async (owner: string) => {
    const { results } = Object((await there.admin.get(`/api/v3/blueprints/runs/?owner=${owner}`)).json)
    return results.map(({ id }: { id: string }) => id)
  }
  const mixed = await runOf(await send([application('a', { owner: first }), application('b', { owner: second })]))
  const plain = await runOf(await send([application('b', { owner: second })], { owner: second }))
  expect(await found(first)).toEqual([mixed.id])
  expect((await found(second)).sort()).toEqual([mixed.id, plain.id].sort())
  expect(await found(third)).toEqual([])
})

/** Few names and owners, so that documents meet. */
const teams = ['team-a', 'team-b', null] as const
const objects = ['one', 'two', 'three', 'four'].flatMap((each) => [`application ${each}`, `provider ${each}`])

const mention = fc.record({
  of: fc.constantFrom(...objects),
  team: fc.constantFrom(...teams),
  state: fc.constantFrom('present', 'present', 'present', 'created', 'absent'),
  value: fc.constantFrom('x', 'y'),
})
const round = fc.record({
  // An object stands once in a document.
  mentions: fc.uniqueArray(mention, { selector: ({ of }) => of, minLength: 1, maxLength: 6 }),
  pruned: fc.subarray(['team-a', 'team-b']),
  takeover: fc.boolean(),
})
/** Objects move between owners, or documents prune: of both, the order of the documents would decide. */
const histories = fc.record({ moves: fc.boolean(), rounds: fc.array(round, { minLength: 1, maxLength: 3 }) })

test('random documents of several owners do what a document for each owner does, one after the other', {
  timeout: 600_000,
}, async () => {
  const outcomes = new Set<boolean>()
  await fc.assert(
    fc.asyncProperty(histories, async ({ moves, rounds }) => {
      const start = `e-${randomUUID().slice(0, 8)}`
      const worlds = { joined: `${start}-j`, apart: `${start}-a` }
      for (const { mentions, pruned, takeover } of rounds) {
        const teamOf = ({ of, team }: (typeof mentions)[number]) =>
          moves ? team : (teams[objects.indexOf(of) % teams.length] ?? null)
        const prune = moves ? [] : pruned
        const entriesOf = (world: string, team?: string | null) =>
          mentions.flatMap((each) => {
            if (team !== undefined && teamOf(each) !== team) return []
            const [kind, short = ''] = each.of.split(' ')
            const made = kind === 'application' ? application(short) : provider(short)
            const identifiers = { [kind === 'application' ? 'slug' : 'name']: `${world}-${short}` }
            const value = kind === 'application' ? { name: each.value } : { url: `https://${each.value}.example.com` }
            const attrs = each.state === 'absent' ? {} : { ...Object(made.attrs), ...value }
            const owner = label(world, teamOf(each))
            return { ...made, identifiers, attrs, state: each.state, ...(team === undefined && { owner }) }
          })
        const label = (world: string, team: string | null) => (team === null ? null : `${team}-${world}`)
        const isApplied = async (sent: readonly Entry[], document: Members) => {
          const words = (count: number) => [...(takeover ? ['takeover'] : []), `deletes=${count}`].join(', ')
          const plan = await send(sent, { ...document, query: 'dry_run=true', allow: words(0) })
          const [, count = 0] = /prune would delete (\d+)/.exec(plan.logs.join('\n')) ?? []
          const answer = await send(sent, { ...document, allow: words(Number(count)) })
          expect([200, 409]).toContain(answer.status)
          return Object(answer.json).applied === true
        }
        const { joined, apart } = worlds
        const whole = await isApplied(entriesOf(joined), {
          ...(prune.length > 0 && { prune: prune.map((team) => label(joined, team)) }),
        })
        let all = true
        for (const team of teams) {
          const theirs = entriesOf(apart, team)
          const isPruned = team !== null && prune.includes(team)
          if (!all || (theirs.length === 0 && !isPruned)) continue
          const owner = label(apart, team)
          all = await isApplied(theirs, { ...(owner !== null && { owner }), ...(isPruned && { prune: true }) })
        }
        expect(whole).toBe(all)
        outcomes.add(whole)
        // One of the documents apart may have been applied before another was refused.
        if (!whole) return
        const found = async (world: string) =>
          Object.entries(await owners(world))
            .map(([each, owner]) => [each, owner?.replace(`-${world}`, '') ?? null])
            .sort()
        expect(await found(joined)).toEqual(await found(apart))
      }
    }),
    { numRuns: 40 * inject('rounds') },
  )
  expect([...outcomes].sort()).toEqual([false, true])
})
