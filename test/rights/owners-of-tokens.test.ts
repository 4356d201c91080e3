import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { installation } from '../support/installation.ts'

/** What shows a user beside something else shows it to those who may view users. */

const on = await installation({ workers: 'none' })

const secretOf = { email: 'owner@example.com', attributes: { note: 'for admins' }, name: 'The Owner' }

async function tokenOfOther() {
  const owner = await on.make.user()
  await on.db.user.update({ where: { pk: owner.pk }, data: secretOf })
  const identifier = randomUUID()
  await on.make.token(owner.pk, { identifier })
  return { owner, path: `/api/v3/core/tokens/${identifier}/` }
}

const onlyKey = (pk: number) => ({
  ...{ pk, username: '', name: '', is_active: false, last_login: null, is_superuser: false, groups: [] },
  ...{ groups_obj: [], email: '', avatar: '', attributes: {}, uid: '', path: '', type: 'internal' },
  uuid: '00000000-0000-0000-0000-000000000000',
})

test('a token shows the key of its user without view_user: read, listed and changed', async () => {
  const { owner, path } = await tokenOfOther()
  const viewer = await on.make.user({ permissions: ['view_token'] })
  const changer = await on.make.user({ permissions: ['change_token'] })
  const answers = [
    await viewer.get(path),
    await viewer.get(`/api/v3/core/tokens/?user=${owner.pk}&search=${path.split('/').at(-2)}`),
    await changer.send({ method: 'PATCH', url: path, payload: {} }),
  ]
  for (const answer of answers) {
    expect(answer.status, answer.text).toBe(200)
    for (const secret of [owner.username, owner.group, 'owner@example.com', 'for admins', 'The Owner'])
      expect(answer.text).not.toContain(secret)
  }
  expect(answers[0]?.json).toMatchObject({ user: owner.pk, user_obj: onlyKey(owner.pk) })
  expect(answers[1]?.json).toMatchObject({ results: [{ user: owner.pk, user_obj: onlyKey(owner.pk) }] })
  expect(answers[2]?.json).toMatchObject({ user: owner.pk, user_obj: onlyKey(owner.pk) })
})

test('it shows the user in full to those who may view users, and to the user', async () => {
  const { owner, path } = await tokenOfOther()
  const viewer = await on.make.user({ permissions: ['view_token', 'view_user'] })
  for (const who of [viewer, owner, on.admin])
    expect(await who.get(path)).toMatchObject({ status: 200, json: { user_obj: { ...secretOf, pk: owner.pk } } })
})

test('a consent shows the key of its user without view_user', async () => {
  const { owner } = await tokenOfOther()
  const application = await on.db.application.create({
    data: { pk: randomUUID(), name: 'Consented', slug: randomUUID() },
  })
  await on.db.userConsent.create({ data: { userPk: owner.pk, applicationPk: application.pk, permissions: 'openid' } })
  const path = `/api/v3/core/user_consent/?user=${owner.pk}`
  const viewer = await on.make.user({ permissions: ['view_userconsent'] })
  expect(await viewer.get(path)).toMatchObject({ status: 200, json: { results: [{ user: onlyKey(owner.pk) }] } })
  expect(await owner.get(path)).toMatchObject({ json: { results: [{ user: { ...secretOf, pk: owner.pk } }] } })
})
