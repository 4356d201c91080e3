import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Asker, installation } from '../support/kit.ts'

/** A list does not tell, by what it finds, what it does not show. */

const there = await installation()

const countOf = async (who: Asker, path: string) => {
  const { status, json } = await who.get(`/api/v3/${path}`)
  return status === 200 ? (json as { pagination: { count: number } }).pagination.count : status
}

test('a search of consents finds those of others only for callers who may view users', async () => {
  const slug = `l-${randomUUID().slice(0, 8)}`
  await there.admin.submit('oauth2', slug)
  const { pk: applicationPk } = await there.db.application.findUniqueOrThrow({ where: { slug } })
  const owner = await there.make.user()
  const consent = (userPk: number) => there.db.userConsent.create({ data: { userPk, applicationPk } })
  await consent(owner.pk)
  const viewer = await there.make.user({ permissions: ['view_userconsent'] })
  await consent(viewer.pk)
  const search = (who: Asker, term: string) => countOf(who, `core/user_consent/?search=${term}`)
  expect(await search(viewer, owner.username)).toBe(0)
  expect(await search(viewer, viewer.username)).toBe(1)
  expect(await countOf(viewer, 'core/user_consent/')).toBe(2)
  const more = await there.make.user({ permissions: ['view_userconsent', 'view_user'] })
  expect(await search(more, owner.username)).toBe(1)
})

test('groups are found by the usernames of others only by callers who may view users', async () => {
  const member = await there.make.user()
  const viewer = await there.make.user({ permissions: ['view_group'] })
  const ask = (who: Asker, name: string) => countOf(who, `core/groups/?members_by_username=${name}`)
  // The same, whether there is such a user or not.
  expect([await ask(viewer, member.username), await ask(viewer, 'nobody-there')]).toEqual([403, 403])
  expect(await ask(viewer, viewer.username)).toBe(1)
  expect(await ask(await there.make.user({ permissions: ['view_group', 'view_user'] }), member.username)).toBe(1)
})

test('the history of an application does not show what it was under another owner, in the takeover itself', async () => {
  const slug = `l-${randomUUID().slice(0, 8)}`
  const put = async (owner: string, app: Record<string, unknown>) =>
    there.admin.submit('oauth2', slug, { app, headers: { 'gatewright-owner': owner, 'gatewright-allow': 'takeover' } })
  expect((await put('team-one', { group: 'Secret of one' })).status).toBe(200)
  expect((await put('team-two', { group: 'Of two' })).status).toBe(200)
  const viewer = await there.make.user({ permissions: ['view_application'], owners: ['team-two'] })
  const { json, text } = await viewer.get(`/api/v3/core/applications/${slug}/history/`)
  expect(text).not.toContain('Secret of one')
  expect(text).not.toContain('team-one')
  const [entry] = (json as { results: { fields: object; run: unknown }[] }).results
  expect(entry).toMatchObject({ fields: { group: { from: { not_shown: true }, to: 'Of two' } }, run: null })
})
