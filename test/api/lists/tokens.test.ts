import { describe, expect, test } from 'vitest'
import { tokenView } from '../../../src/views/token.ts'
import { userView } from '../../../src/views/user.ts'
import { installation, rows, sql } from '../../support/kit.ts'
import { column, type Listed, type Parameters, read, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/core/tokens/ */

const tokens: Listed = { path: '/api/v3/core/tokens/', by: () => on.admin, view: tokenView.schema, key: 'identifier' }
const own: Listed = { ...tokens, by: () => ada }

const on = await installation({ workers: 'none' })
const ada = await on.make.user()
const bob = await on.make.user()
await rows(on.db, sql`UPDATE tokens SET identifier = 'login-' || user_pk WHERE user_pk IN (${ada.pk}, ${bob.pk})`)
const at = (day: number) => new Date(Date.UTC(2031, 0, day))
await on.make.token(ada.pk, { identifier: 'ci', expires: at(1), managed: 'gatewright/ci' })
await on.make.token(ada.pk, { identifier: 'deploy_100', intent: 'app_password', expires: at(2) })
await on.make.token(bob.pk, { identifier: 'deploy-ci', intent: 'recovery', expires: at(3) })
await on.make.token(bob.pk, { identifier: 'old', expires: new Date(Date.UTC(2020, 0, 1)) })
await rows(on.db, sql`UPDATE tokens SET description = 'Nächtlicher Lauf 100%' WHERE identifier = 'old'`)

const names = (parameters: Parameters, list = tokens) => column(list, 'identifier', parameters)

test('a token is shown as it is read alone, without its secret', async () => {
  const [found] = (await read(tokens, { identifier: 'ci' })).results
  const [user] = (
    await read({ ...tokens, view: userView.schema, path: '/api/v3/core/users/' }, { username: ada.username })
  ).results
  const { pk } = await on.db.token.findUniqueOrThrow({ where: { identifier: 'ci' } })
  expect(found).toEqual({
    ...{ pk, identifier: 'ci', managed: 'gatewright/ci', intent: 'api', user: ada.pk, user_obj: user, description: '' },
    ...{ expires: '2031-01-01T00:00:00.000Z', expiring: true, bound_to: { owners: [], stacks: [] } },
  })
  expect(tokenView.schema.parse(found)).toEqual(found)
})

describe('whose tokens are listed', () => {
  test('the caller’s own, without the permission', async () => {
    expect(await names({}, own)).toEqual(['ci', 'deploy_100', `login-${ada.pk}`])
    expect((await read(own)).pagination.count).toBe(3)
    for (const parameters of [{ user: bob.pk }, { identifier: 'old' }, { search: 'lauf' }])
      expect(await names(parameters, own)).toEqual([])
  })

  test('all, with view_token', async () => {
    const auditor = await on.make.user({ permissions: ['view_token'] })
    expect(await names({ user: bob.pk }, { ...tokens, by: () => auditor })).toEqual([
      'deploy-ci',
      `login-${bob.pk}`,
      'old',
    ])
  })
})

describe('is narrowed by', () => {
  test.each<[Parameters, string[]]>([
    [{ identifier: 'ci' }, ['ci']],
    [{ identifier: 'CI' }, []],
    [{ intent: ['app_password', 'recovery'] }, ['deploy-ci', 'deploy_100']],
    [{ managed: 'gatewright/ci' }, ['ci']],
    [{ expiring: true }, ['ci', 'deploy-ci', 'deploy_100', 'old']],
    [{ expires_before: '2030-01-01T00:00:00Z' }, ['old']],
    [{ expires_after: '2031-01-02T00:00:00Z' }, ['deploy-ci', 'deploy_100']],
    [{ search: 'DEPLOY' }, ['deploy-ci', 'deploy_100']],
    [{ search: 'deploy_' }, ['deploy_100']],
    [{ search: 'nächtlicher 100%' }, ['old']],
  ])('%j', async (parameters, expected) => {
    expect(await names(parameters)).toEqual(expected)
    expect((await read(tokens, parameters)).pagination.count).toBe(expected.length)
  })

  test('its user', async () => {
    expect(await names({ user: ada.pk, ordering: '-identifier' })).toEqual([`login-${ada.pk}`, 'deploy_100', 'ci'])
  })
})

testRefusals(tokens, {
  'an intent that there is not': [
    '?intent=admin',
    { intent: { 0: ['Must be one of: verification, api, recovery, app_password.'] } },
  ],
  'a user by name': ['?user=ada', { user: ['Must be a whole number.'] }],
  'a day for a time': [
    '?expires_before=2031-01-01',
    { expires_before: ['Must be a date-time such as 2026-11-20T08:15:00Z.'] },
  ],
})

testPages(tokens, ['identifier', 'description', 'intent', 'user', 'expires'], [{ intent: 'api' }, { search: 'i' }])
testStatements(tokens, 7, [{ expiring: true }])
