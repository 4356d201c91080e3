import { describe, expect, test } from 'vitest'
import { type Entry, Find, KeyOf } from '../../src/document/document.ts'
import { type Conditions, nothingAllowed } from '../../src/plan/engine.ts'
import { people } from '../rights/people.ts'
import { counts, name, versions } from '../support/kit.ts'
import { acceptingNothing, application, bench, oauth2, scim } from './engine.ts'

/** What the submitter has to acknowledge. The worker decides again, because rows change after the check of the API. */

const there = acceptingNothing(await bench())
const { user } = people(there)

type Document = readonly Partial<Entry>[]

/** The sentence with which both the check and the worker refuse; nothing is written. */
async function refused(entries: Document, conditions: Partial<Conditions> = {}, inCheck = true): Promise<string> {
  const before = [await counts(there.db), await versions(there.db)]
  const { reason, logs } = await there.refusal(entries, undefined, conditions)
  expect(reason).toBe('conflict')
  expect([await counts(there.db), await versions(there.db)]).toEqual(before)
  const [why = ''] = logs.map((line) => line.replace(/^rolled back: /, ''))
  if (inCheck)
    await expect(there.check(entries, undefined, conditions)).rejects.toMatchObject({
      code: 'conflict',
      message: `${why}.`,
    })
  return why
}

const allowing = (word: keyof typeof nothingAllowed) => ({ allow: { ...nothingAllowed, [word]: true } })

test('the worker refuses what became the object of another owner after the check', async () => {
  const [amira, bo] = [await user({ superuser: true }), await user({ superuser: true })]
  const entries = [oauth2(name)]
  await there.check(entries, bo, { owner: 'team-b' })
  await there.apply(entries, amira, { owner: 'team-a' })
  expect(await there.refusal(entries, bo, { owner: 'team-b' })).toMatchObject({
    reason: 'conflict',
    logs: [expect.stringMatching(/^rolled back: provider oauth2 ".*" belongs to owner "team-a" \(made by /)],
  })
  await there.apply(entries, bo, { owner: 'team-b', ...allowing('takeover') })
  expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({
    owner: 'team-b',
    createdBy: amira.pk,
  })
})

test('errors come before conflicts: they are fixed first', async () => {
  const [amira, bo] = [await user({ superuser: true }), await user({ superuser: true })]
  await there.apply([oauth2(name)], amira, { owner: 'team-a' })
  const entries = [oauth2(name), application(name, { provider: 999_999_999 })]
  await expect(there.check(entries, bo, { owner: 'team-b' })).rejects.toMatchObject({ code: 'invalid' })
})

test('entries of one document share its owner', async () => {
  const amira = await user({ superuser: true })
  const entries = [application(name), application(name, { group: 'again' }), scim(name), application(name)]
  expect((await there.apply(entries, amira, { owner: 'team-a' })).logs).toHaveLength(4)
  expect(await there.db.application.findUnique({ where: { slug: name } })).toMatchObject({ owner: 'team-a' })
})

describe('an application takes a provider that is there', () => {
  const able = (...permissions: string[]) =>
    user({ permissions: ['add_application', 'change_application', ...permissions] })
  const pkOf = async (of: string) => (await there.db.provider.findUniqueOrThrow({ where: { name: of } })).pk

  test.each(['provider', 'backchannel_providers'])('in %s, with the permission to change it', async (field) => {
    await there.apply([scim(name)])
    const pk = await pkOf(name)
    const entries = [application(name, { [field]: field === 'provider' ? pk : [pk] })]
    const why = 'the permission change_scimprovider is missing for a row that it names'
    for (const actor of [await able(), await able('change_oauth2provider', 'add_scimprovider')]) {
      await expect(there.check(entries, actor)).rejects.toMatchObject({
        code: 'permission_denied',
        message: `You may not create application "${name}": ${why}.`,
      })
      expect(await there.refusal(entries, actor)).toMatchObject({ reason: 'permission_denied' })
    }
    const right = await able('change_scimprovider')
    await there.check(entries, right)
    await there.apply(entries, right)
    // It has the provider now: an update of other fields needs no more.
    const other = [application(name, { ...entries[0]?.attrs, group: 'New' })]
    await there.check(other, await able())
    await there.apply(other, await able())
  })

  test.each(['provider', 'backchannel_providers'])('in %s, with its owner or an acknowledgement', async (field) => {
    await there.apply([scim(name)], undefined, { owner: 'team-a' })
    const pk = await pkOf(name)
    const entries = [application(name, { [field]: field === 'provider' ? pk : [pk] })]
    expect(await refused(entries, { owner: 'team-b' })).toContain(`provider scim "${name}" belongs to owner "team-a"`)
    expect(await refused(entries)).toContain('the request names no owner')
    await there.apply(entries, undefined, { owner: 'team-b', ...allowing('takeover') })
    expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({ owner: 'team-b' })
  })

  test('a second backchannel provider too, and by !Find', async () => {
    await there.apply([scim(name), scim(`${name}-b`), application(name)])
    await there.apply([application(name, { backchannel_providers: [await pkOf(name)] })])
    const both = [await pkOf(name), new Find('service_providers_scim.scimprovider', { name: `${name}-b` })]
    expect(await there.refusal([application(name, { backchannel_providers: both })], await able())).toMatchObject({
      reason: 'permission_denied',
    })
  })

  test('one that the same document creates needs the permission to add it only', async () => {
    const entries = [
      { ...scim(name), id: 'provider' },
      application(name, { backchannel_providers: [new KeyOf('provider')] }),
    ]
    const actor = await able('add_scimprovider')
    await there.check(entries, actor)
    expect((await there.apply(entries, actor)).logs).toHaveLength(2)
  })

  test.each([
    ['by its key', 'provider', async () => pkOf(name)],
    ['by its name', 'provider', async () => name],
    ['by !Find', 'backchannel_providers', async () => [new Find('service_providers_scim.scimprovider', { name })]],
  ])('of another owner, %s, is a conflict, unless it is acknowledged', async (_, field, reference) => {
    const [amira, bo] = [await user({ superuser: true }), await user({ superuser: true })]
    await there.apply([scim(name)], amira, { owner: 'team-a' })
    const entries = [application(name, { [field]: await reference() })]
    const conditions = { owner: 'team-b' }
    const sentence = `provider scim "${name}" belongs to owner "team-a" (made by "${amira.username}" on `
    expect(await there.refusal(entries, bo, conditions)).toMatchObject({
      reason: 'conflict',
      logs: [expect.stringContaining(`rolled back: ${sentence}`)],
    })
    await expect(there.check(entries, bo, conditions)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(sentence),
    })
    const { logs, audited } = await there.apply(entries, bo, { ...conditions, ...allowing('takeover') })
    expect(logs).toEqual([
      expect.stringContaining(`application "${name}" created`),
      expect.stringContaining(`provider scim "${name}" belonged to owner "team-a"`),
    ])
    expect(audited).toContainEqual(expect.objectContaining({ action: 'update', fields: ['owner'] }))
    expect(await there.db.provider.findUnique({ where: { name } })).toMatchObject({ owner: 'team-b' })
    // It is ours now, and nothing changes any more.
    expect((await there.apply(entries, bo, conditions)).changes).toEqual([
      expect.objectContaining({ action: 'unchanged' }),
    ])
  })
})
