import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { type AskOptions, answered, applied, type Entry } from '../support/asker.ts'
import { anApplication, aProvider, installation } from '../support/kit.ts'

/** A blueprint with `prune: true`: what its owner manages, and it does not name, is deleted. */

let owner: string
const there = await installation()
beforeEach(() => {
  owner = `team-${randomUUID().slice(0, 8)}`
})

const nameOf = (each: string) => `${owner}-${each}`
/** An application and its provider of this owner. */
const make = async (each: string, by = owner) => there.admin.submit('oauth2', nameOf(each), { owner: by })
const application = (each: string, attrs = {}): Entry => anApplication(nameOf(each), attrs)

type Options = AskOptions & { query?: string; members?: object }
const prune = (entries: readonly Entry[], { members, ...options }: Options = {}) =>
  there.admin.apply(entries, { ...options, members: { owner, prune: true, ...members } })
const { runOf } = there.admin
const left = async () => {
  const where = { startsWith: owner }
  const apps = await there.db.application.findMany({ where: { slug: where }, orderBy: { slug: 'asc' } })
  const providers = await there.db.provider.findMany({ where: { name: where }, orderBy: { name: 'asc' } })
  return [apps.map(({ slug }) => slug), providers.map(({ name }) => name)]
}
const { refused } = there

describe('prune', () => {
  test('names what it would delete and its number, until that is acknowledged', async () => {
    for (const each of ['a', 'b', 'c']) await make(each)
    const entries = [application('a')]
    const deleted = ['application "%b"', 'application "%c"', 'provider oauth2 "%b"', 'provider oauth2 "%c"'].map(
      (each) => each.replace('%', `${owner}-`),
    )
    for (const allow of [undefined, 'deletes=3', 'deletes=5', 'deletes=0', 'takeover']) {
      const answer = await refused(409, () => prune(entries, allow === undefined ? {} : { allow }))
      expect(answer.json).toMatchObject({ code: 'conflict' })
      for (const what of deleted) expect(answer.detail).toContain(what)
      expect(answer.detail).toMatch(/prune would delete 4\b.*Gatewright-Allow: deletes=4 applies it all the same\.$/)
    }
    const answer = await prune(entries, { allow: 'deletes=4' })
    expect(answer.logs.map((line) => line.replace(/ \(pk .*/, ''))).toEqual([
      `application "${nameOf('a')}" unchanged`,
      ...deleted.map((what) => `${what} deleted`),
    ])
    // The provider of the application that is named stays, because the application refers to it.
    expect(await left()).toEqual([[nameOf('a')], [nameOf('a')]])
    expect(await runOf(answer)).toMatchObject({ allowed: ['deletes=4'] })
    const audited = await there.db.auditRow.findFirstOrThrow({ where: { runId: answer.runId } })
    expect(audited.changes).toHaveLength(4)
    // The same pipeline again: there is nothing to acknowledge.
    expect((await prune(entries, { allow: 'deletes=4' })).logs).toEqual([`application "${nameOf('a')}" unchanged`])
  })

  test('is planned first, without an acknowledgement, and applied as planned: the plan acknowledges what it lists', async () => {
    for (const each of ['a', 'b']) await make(each)
    const planned = await there.untouched(() => prune([application('a')], { query: 'dry_run=true' }))
    expect(planned.logs).toEqual([
      `application "${nameOf('a')}" unchanged`,
      `application "${nameOf('b')}" would be deleted`,
      `provider oauth2 "${nameOf('b')}" would be deleted`,
      'prune would delete 2: apply it with Gatewright-Allow: deletes=2',
    ])
    const ifMatch = planned.etag
    await refused(409, () => prune([application('a')]))
    await refused(409, () => prune([application('a')], { ifMatch, allow: 'deletes=3' }))
    const done = await applied(prune([application('a')], { ifMatch }))
    const { changes } = await runOf(planned)
    expect((await runOf(done)).changes).toEqual(changes)
    // What is pruned belongs to no entry.
    expect(changes.map(({ entry }) => entry)).toEqual([undefined, null, null])
    expect(changes.map(({ action, key }) => [action, key])).toEqual([
      ['unchanged', { slug: nameOf('a') }],
      ['delete', { slug: nameOf('b') }],
      ['delete', { name: nameOf('b') }],
    ])
  })

  test('is refused when there is more, or less, to delete than was planned', async () => {
    for (const each of ['a', 'b', 'z']) await make(each)
    const drop = async (...names: readonly string[]) => {
      await there.db.application.deleteMany({ where: { slug: { in: names.map(nameOf) } } })
      await there.db.provider.deleteMany({ where: { name: { in: names.map(nameOf) } } })
    }
    await there.db.application.delete({ where: { slug: nameOf('z') } })
    const { etag: ifMatch } = await prune([application('a')], { query: 'dry_run=true' })
    await make('c')
    const more = await prune([application('a')], { ifMatch })
    const counted = await prune([application('a')], { ifMatch, allow: 'deletes=5' })
    await drop('c', 'z')
    const fewer = await prune([application('a')], { ifMatch })
    expect([more.status, counted.status, fewer.status]).toEqual([412, 412, 412])
    expect(fewer.detail).toContain('the plan has 1 more to delete than there is now')
    await drop('b')
    const none = await answered(200, prune([application('a')], { ifMatch }))
    expect(none.logs.at(-1)).toBe('nothing is left of the reviewed plan: it stands')
  })

  test('leaves what another owner manages, what has none, and what is named in any state', async () => {
    for (const each of ['a', 'b']) await make(each)
    await make('other', `${owner}-other`)
    await there.admin.submit('oauth2', nameOf('none'))
    const provider = aProvider('oauth2', nameOf('b'))
    const entries = [application('a'), { ...application('b'), state: 'created' }, provider]
    expect((await prune(entries)).logs).toHaveLength(3)
    expect((await left()).map((names) => names?.length)).toEqual([4, 4])
  })

  test('leaves what an entry begins to refer to', async () => {
    for (const each of ['a', 'b']) await make(each)
    await there.admin.delete(`/api/v3/core/applications/${nameOf('b')}/`, { owner })
    const { pk } = await there.db.provider.findFirstOrThrow({ where: { name: nameOf('b') } })
    const entries = [application('a', { provider: pk })]
    for (const query of ['dry_run=true', '']) {
      const answer = await prune(entries, { query, allow: 'deletes=1' })
      expect(answer.status).toBe(200)
      expect(answer.logs.filter((line) => line.includes('deleted'))).toEqual([expect.stringContaining(nameOf('a'))])
    }
    expect(await left()).toEqual([[nameOf('a')], [nameOf('b')]])
  })

  test('takes its owner from the header, too', async () => {
    for (const each of ['a', 'b']) await make(each)
    await answered(200, prune([application('a')], { owner, allow: 'deletes=2', members: { owner: undefined } }))
    expect(await left()).toEqual([[nameOf('a')], [nameOf('a')]])
  })

  test('creates and deletes in one transaction: when one fails, nothing is done', async () => {
    for (const each of ['a', 'b']) await make(each)
    const { pk: applicationPk } = await there.db.application.findUniqueOrThrow({ where: { slug: nameOf('b') } })
    const { pk: providerPk } = await there.db.provider.create({
      data: { uuid: randomUUID(), kind: 'scim', name: `x-${owner}` },
    })
    await there.db.providerReference.create({ data: { providerPk, field: 'x', position: 0, applicationPk } })
    const entries = [application('a', { group: 'New' })]
    const answer = await refused(200, () => prune(entries, { allow: 'deletes=2' }))
    expect(answer.json).toMatchObject({ applied: false })
    expect(answer.logs[0]).toContain('something still refers to it')
  })

  test('is refused without an owner, for creation only, and with a word that is no number', async () => {
    const ask = (options: Options) => prune([application('a', { name: 'A' })], options)
    const without = await refused(400, () => ask({ members: { owner: undefined } }))
    expect(without.json).toMatchObject({ prune: [expect.stringContaining('Gatewright-Owner')] })
    expect((await refused(400, () => ask({ ifNoneMatch: '*' }))).text).toContain('prune')
    for (const allow of ['deletes', 'deletes=', 'deletes=many', 'deletes=-1', 'takeover=1', 'deletes=1.5'])
      expect((await refused(400, () => ask({ allow }))).json).toHaveProperty('Gatewright-Allow')
    expect((await refused(400, () => ask({ members: { prune: 'yes' } }))).text).toContain('prune')
  })

  test('is for superusers, as all blueprints are', async () => {
    const every = await there.make.user({ permissions: ['delete_application', 'delete_oauth2provider'] })
    await make('a')
    const members = { owner, prune: true }
    await refused(403, () => every.apply([application('b', { name: 'B' })], { members, allow: 'deletes=2' }))
  })
})
