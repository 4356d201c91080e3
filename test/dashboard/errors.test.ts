import { expect, test } from 'vitest'
import { dashboardOf, installation, rows, sql } from '../support/kit.ts'

/** A page that cannot be made: a person gets a page, a program JSON. */

const there = await installation()
const { token } = await there.make.user({ permissions: ['view_queue', 'view_run'] })
const dashboard = dashboardOf(there)
const cookie = await dashboard.session(token)
const get: (url: string, accept: string) => ReturnType<ReturnType<typeof dashboardOf>['send']> = (url, accept) =>
  dashboard.send({ method: 'GET', url, headers: { cookie, accept } })
// No statement expects it so.
await rows(there.db, sql`ALTER TABLE runs RENAME COLUMN title TO renamed`)

test('an unexpected error is a page that names the request, and a way back', async () => {
  const { statusCode, headers, body } = await get('/admin/runs/01a1fd79-0573-7eeb-91d6-996288491dcb/', 'text/html')
  expect([statusCode, headers['content-type']]).toEqual([500, 'text/html; charset=utf-8'])
  expect(body).toContain('<h1>Something went wrong</h1>')
  expect(body).toContain(`Ask for request ${headers['x-request-id']}.`)
  expect(body).toContain('<a class="button" href="/admin/">')
})

test('an address without a page is one in the frame, with the way to the others', async () => {
  for (const url of ['/admin/rnus/', '/admin/runs/none/of/these/']) {
    const { statusCode, body } = await get(url, 'text/html')
    expect([url, statusCode]).toEqual([url, 404])
    expect(body).toContain('<h1>There is nothing here</h1>')
    expect(body).toContain('<a href="/admin/runs/">Runs</a>')
  }
})

test('and for a program it is JSON', async () => {
  const { statusCode, headers, body } = await get(
    '/admin/runs/01a1fd79-0573-7eeb-91d6-996288491dcb/',
    'application/json',
  )
  expect(statusCode).toBe(500)
  expect(JSON.parse(body)).toMatchObject({
    code: 'server_error',
    detail: `Something went wrong inside. Ask for request ${headers['x-request-id']}.`,
  })
})
