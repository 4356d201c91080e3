import { describe, expect, test } from 'vitest'
import { auditEntry } from '../../../src/views/audit.ts'
import { aGroup, answered, applyPath, example, installation } from '../../support/kit.ts'
import { column, type Listed, read, testPages, testRefusals, testStatements } from './listing.ts'

/** GET /api/v3/core/audit/ */

const audit: Listed = { path: '/api/v3/core/audit/', by: () => auditor, view: auditEntry, key: 'id', isCapped: true }

const on = await installation()
const auditor = await on.make.user({ permissions: ['view_audit'] })
const wearer = await on.make.user({ permissions: ['view_user'] })
const applied = await answered(200, on.admin.put(applyPath, await example('oauth2')))
const run = applied.runId
const headers = { 'content-type': 'application/json', 'x-request-id': 'night shift 1'.replaceAll(' ', '-') }
const made = await on.admin.send({
  ...{ method: 'POST', url: '/api/v3/core/groups/', headers, payload: { name: 'Night shift' } },
})
expect(made.status, made.text).toBe(201)
const impersonating = { 'impersonate-user': wearer.username }
expect(await on.admin.get('/api/v3/core/users/', { headers: impersonating })).toMatchObject({ status: 200 })

describe('an audit row', () => {
  test('of an apply names its run, its user, and the objects with the fields that were written, without values', async () => {
    const { secret } = { secret: (await example('oauth2')).provider.client_secret }
    const { results } = await read(audit, { run })
    expect(results).toEqual([
      {
        ...{ id: expect.any(String), at: expect.any(String), action: 'apply' },
        ...{ user: { pk: 1, username: 'admin' }, real_user: null },
        changes: [
          {
            model: 'service_providers_oauth2.oauth2provider',
            key: expect.anything(),
            name: (await example('oauth2')).provider.name,
            action: 'create',
            fields: expect.arrayContaining(['name']),
          },
          {
            model: 'service_core.application',
            key: expect.anything(),
            name: (await example('oauth2')).app.slug,
            action: 'create',
            fields: expect.arrayContaining(['slug']),
          },
        ],
        change_count: 2,
        ...{ request_id: expect.any(String), run },
      },
    ])
    expect(JSON.stringify(results)).not.toContain(String(secret ?? 'grafana.example.com'))
  })

  test('of a request for one object has its request, and no run', async () => {
    expect((await read(audit, { request_id: 'night-shift-1' })).results).toMatchObject([
      { action: 'create', run: null, changes: [{ model: 'service_core.group', action: 'create' }] },
    ])
  })

  test('of a read while impersonating names both users', async () => {
    expect((await read(audit, { action: 'read' })).results).toMatchObject([
      { user: { pk: wearer.pk, username: wearer.username }, real_user: { pk: 1, username: 'admin' } },
    ])
    expect((await read(audit, { real_user: 1 })).pagination.count).toBe(1)
  })

  test('of many objects shows a hundred of them, and how many there are', async () => {
    const entries = Array.from({ length: 150 }, (_, index) => aGroup(`Crew ${index}`))
    const body = { version: 1, metadata: { name: 'many' }, entries }
    expect(await on.admin.put('/api/v3/blueprints/', body)).toMatchObject({ json: { applied: true } })
    const [newest] = (await read(audit, { page_size: 1 })).results
    expect(newest).toMatchObject({ change_count: 150 })
    expect(newest?.changes).toHaveLength(100)
  })
})

describe('of an object', () => {
  const blueprint = (entries: object[]) =>
    answered(200, on.admin.put('/api/v3/blueprints/', { version: 1, metadata: { name: 'platform' }, entries }))
  const found = (query: Record<string, string>) => read(audit, query).then(({ results }) => results)

  test('is found by its kind and name, and who deleted it among deletions, also by a document', async () => {
    const made = await blueprint([aGroup('Platform'), aGroup('Beside')])
    await blueprint([{ ...aGroup('Beside'), attrs: { attributes: { changed: true } } }])
    const gone = await blueprint([{ ...aGroup('Platform'), state: 'absent' }, aGroup('Further')])
    const object = 'group:Platform'
    expect((await found({ object })).map((each) => each.run)).toEqual([gone.runId, made.runId])
    expect(await found({ object, change: 'delete' })).toMatchObject([
      { action: 'apply', run: gone.runId, changes: [{ name: 'Platform', action: 'delete' }, { name: 'Further' }] },
    ])
    expect(await found({ object, action: 'delete' })).toEqual([])
    expect(await found({ object: 'application:Platform' })).toEqual([])
    // The row shows the name of the object anyway: that takes no permission for groups.
    expect((await auditor.get('/api/v3/core/groups/')).status).toBe(403)
  })

  test('is in no apply that changed nothing, which can be left out', async () => {
    const again = await blueprint([aGroup('Further')])
    expect(await found({ run: again.runId })).toMatchObject([{ changes: [], change_count: 0 }])
    expect(await found({ run: again.runId, changed: 'true' })).toEqual([])
    expect((await found({ changed: 'false' })).map((each) => each.run)).toContain(again.runId)
    const others = await found({ changed: 'true' })
    expect(others.map((each) => each.action)).toEqual(expect.arrayContaining(['apply', 'create', 'read']))
  })
})

test('needs view_audit: neither view_run nor view_queue is enough', async () => {
  const operator = await on.make.user({ permissions: ['view_run', 'view_queue', 'view_user'] })
  expect(await operator.get(audit.path)).toMatchObject({ status: 403 })
})

test('is narrowed by time', async () => {
  const times = (await column(audit, 'at', { ordering: 'at,id' })).map(String)
  const [first = ''] = times
  expect(await column(audit, 'at', { created_before: first })).toEqual([])
  expect((await column(audit, 'at', { created_after: first, ordering: 'at,id' })).map(String)).toEqual(times)
})

test('is searched by the names of its users', async () => {
  const found = (await read(audit, { search: wearer.username })).results
  expect(found).toMatchObject([{ user: { username: wearer.username } }])
})

testRefusals(audit, {
  'an object without a kind': ['?object=platform', { object: [expect.stringContaining('application:shop')] }],
  'a user that is no key': ['?user=admin', { user: ['Must be a whole number.'] }],
})
testPages(audit, ['at', 'id'], [{ action: 'apply' }, { search: 'admin' }, { change: 'create' }])
testStatements(audit, 5, [{ action: 'apply' }, { object: 'group:Platform' }])
