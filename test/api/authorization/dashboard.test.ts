import { describe, test } from 'vitest'
import { type Answer, installation } from '../../support/kit.ts'
import type { Actor } from './actors.ts'
import type { Ask } from './answers.ts'
import { type Row, rowsOf } from './matrix.ts'
import { stage } from './trial.ts'

/** The login gets the token. After that, requests send the session's cookie, and other credentials are ignored. */

const host = '127.0.0.1:9000'
const here = { host, origin: `http://${host}` }
const login = '/admin/login/'

/** @returns the cookie of a login, if it succeeds */
async function sessionOf({ asker, token }: Actor): Promise<Record<string, string>> {
  const { headers } = await asker.send({ ...logIn(token), payload: logIn(token).body })
  const [cookie] = (headers['set-cookie'] ?? '').split(';', 1)
  return cookie ? { cookie } : {}
}

const logIn = (token: string | null) => ({
  method: 'POST',
  url: login,
  headers: { ...here, 'content-type': 'application/x-www-form-urlencoded' },
  body: new URLSearchParams({ access_token: token ?? '' }).toString(),
})

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

const places: Readonly<Record<string, string>> = {
  [login]: 'login',
  '/admin/': 'now',
}

const codes: Readonly<Record<number, string>> = { 401: 'not_authenticated', 403: 'permission_denied' }

/** The text of a 401, by operation: it is the same for every reason. */
const refusals = new Map<string, string>()

const there = await installation({ workers: 'none' })
const on = stage(there, outcome)

function outcome({ status, headers, text, json }: Answer, { operation }: Row, { method }: Ask): string {
  const key = `${method} ${operation}`
  if (status === 303) {
    const [page = ''] = (headers.location ?? '').split('?')
    // An act leads back to the first page, or to its own; so does a login.
    const isBack = page === '/admin/' || operation === `POST ${page}`
    return operation.startsWith('POST ') && isBack && !operation.endsWith(login) ? 'in' : (places[page] ?? '303')
  }
  const code = codes[status]
  if (code === undefined) return 'in'
  if (status === 401) {
    if (!refusals.has(key)) refusals.set(key, text)
    if (refusals.get(key) !== text) return '401, but another one'
  }
  const isPage = headers['content-type']?.startsWith('text/html') === true
  // HEAD has no body, and the pages around the login are no JSON.
  if (text === '' || isPage) return String(status)
  if (!isObject(json) || json.code !== code || json.detail !== json.error) return `${status}, but ${text}`
  return String(status)
}

/** The queue and the job do not exist: these tests ask only whether a call is permitted. */
const filled = (url: string) =>
  url
    .replace(':queueName', 'no-queue')
    .replace(':queueStatus', 'completed')
    .replace(/:\w+/g, 'nothing')
    .replace('*', 'nothing.js')

const methodsOf = ({ operation }: Row): string[] => {
  const [method = ''] = operation.split(' ')
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

describe('who may do what at the dashboard', async () => {
  const rows = await rowsOf('GET /admin/', 'PUT /admin/', 'POST /admin/', 'PATCH /admin/', 'DELETE /admin/')
  const tried = rows.flatMap(([, row]) => methodsOf(row).map((method) => [method, row.operation, row] as const))
  test.each(tried)('%s: %s', (method, operation, row) =>
    on.try(row, async (_row, actor) => {
      const [, path = ''] = operation.split(' ')
      const url = filled(path)
      if (operation === `POST ${login}`) return logIn(actor.token)
      return { method, url, headers: { ...here, ...(await sessionOf(actor)) } }
    }),
  )
})
