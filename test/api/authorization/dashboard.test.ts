import { beforeAll, describe, test } from 'vitest'
import type { Answer } from '../../support/asker.ts'
import { type Installation, installation } from '../../support/installation.ts'
import type { Actor } from './actors.ts'
import type { Ask } from './answers.ts'
import { type Row, rowsOf } from './matrix.ts'
import { type Stage, stage } from './trial.ts'

/** Here a token is asked for once; a session is sent after that, and nothing else of the caller is read. */

let there: Installation
let on: Stage
beforeAll(async () => {
  there = await installation({ workers: 'none' })
  on = stage(there, told)
})

const host = '127.0.0.1:9000'
const here = { host, origin: `http://${host}` }
const login = '/admin/queues/login/'

/** @returns the cookie that logging in brings, if any */
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

const codes: Readonly<Record<number, string>> = { 401: 'not_authenticated', 403: 'permission_denied' }

/** Nobody learns from a 401 which of the reasons it is. */
const nobodies = new Map<string, string>()

function told({ status, headers, text, json }: Answer, { operation }: Row, { method }: Ask): string {
  const key = `${method} ${operation}`
  if (status === 303)
    return headers.location === login ? 'login' : headers.location === '/admin/queues/' ? 'board' : '303'
  const code = codes[status]
  if (code === undefined) return 'in'
  if (status === 401) {
    if (!nobodies.has(key)) nobodies.set(key, text)
    if (nobodies.get(key) !== text) return '401, but another one'
  }
  const isPage = headers['content-type']?.startsWith('text/html') === true
  // HEAD has no body, and the pages around the login are no JSON.
  if (text === '' || isPage) return String(status)
  if (status === 403 && text === '{"error":{"key":"ERRORS.FORBIDDEN"}}') return '403'
  if (!isObject(json) || json.code !== code || json.detail !== json.error) return `${status}, but ${text}`
  return String(status)
}

/** What a call works on is not there: only whether it is let through is asked. */
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
  const rows = await rowsOf('GET /admin/', 'PUT /admin/', 'POST /admin/', 'PATCH /admin/')
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
