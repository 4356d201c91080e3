import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { totpDeviceView } from '../../../src/views/totp-device.ts'
import { installation } from '../../support/installation.ts'
import { column, type Listed, read, refusal, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/authenticators/totp/, GET /api/v3/authenticators/admin/totp/ */

const view = totpDeviceView.schema
const own: Listed = { path: '/api/v3/authenticators/totp/', by: () => ada, view }
const all: Listed = { path: '/api/v3/authenticators/admin/totp/', by: () => on.admin, view }

const on = await installation({ workers: 'none' })
const ada = await on.make.user()
const boss = await on.make.user({ superuser: true })
const device = (userPk: number, name: string, confirmed = true) =>
  on.db.totpDevice.create({ data: { uuid: randomUUID(), userPk, name, confirmed, sealedKey: 'sealed' } })
for (const name of ['Phone', 'phone', 'Tablet 100%', 'Phone', 'a_b']) await device(ada.pk, name)
await device(ada.pk, 'Not yet', false)
await device(boss.pk, 'Phone')
await device(boss.pk, 'Key')

describe('the own list', () => {
  test('has the caller’s confirmed devices by name, with their two fields', async () => {
    expect((await read(own)).results).toEqual([
      { name: 'Phone', pk: 1 },
      { name: 'Phone', pk: 4 },
      { name: 'Tablet 100%', pk: 3 },
      { name: 'a_b', pk: 5 },
      { name: 'phone', pk: 2 },
    ])
  })

  test('has no others, not even for a superuser', async () => {
    expect(await column({ ...own, by: () => boss }, 'name')).toEqual(['Key', 'Phone'])
    expect(await column({ ...own, by: () => boss }, 'name', { search: 'tablet' })).toEqual([])
    expect((await read({ ...own, by: () => on.admin })).pagination).toEqual({
      ...{ next: 0, previous: 0, count: 0, current: 1, total_pages: 1, start_index: 0, end_index: 0 },
    })
  })

  test('requires a token', async () => {
    const { status } = await on.as('no token').get(own.path)
    expect(status).toBe(401)
  })

  testRefusals(own, { 'a filter sent twice': ['?name=a&name=b', { name: ['Send this parameter once.'] }] })
  testPages(own, ['name', 'pk'], [{ name: 'Phone' }, { search: 'phone' }])
  testStatements(own, 4, [{ name: 'Phone' }])
})

describe('the admin list', () => {
  test('has the devices of all users, unconfirmed ones too', async () => {
    expect(await column(all, 'name')).toEqual([
      ...['Key', 'Not yet', 'Phone', 'Phone', 'Phone', 'Tablet 100%', 'a_b', 'phone'],
    ])
  })

  test('needs view_totpdevice', async () => {
    expect(await refusal({ ...all, by: () => ada }, '')).toMatchObject({ status: 403 })
    const auditor = await on.make.user({ permissions: ['view_totpdevice'] })
    expect((await read({ ...all, by: () => auditor })).pagination).toMatchObject({ count: 8 })
  })

  testRefusals(all)
  testPages(all, ['name', 'pk'], [{ name: 'Phone' }, { search: 'phone' }])
  testStatements(all, 4, [{ name: 'Phone' }])
})

describe.each([
  ['own', own],
  ['admin', all],
])('the %s list is narrowed by', (_, list) => {
  test.each([
    [{ name: 'Phone' }, ['Phone']],
    [{ name: 'Pho' }, []],
    [{ search: 'PHON' }, ['Phone', 'phone']],
    [{ search: '%' }, ['Tablet 100%']],
    [{ search: '_' }, ['a_b']],
    [{ search: 'tab 00' }, ['Tablet 100%']],
    [{ search: 'tab phone' }, []],
    [{ name: 'Phone', search: 'tablet' }, []],
  ])('%j', async (parameters, expected) => {
    expect([...new Set(await column(list, 'name', parameters))]).toEqual(expected)
  })
})
