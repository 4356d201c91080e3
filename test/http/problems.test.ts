import { readFile } from 'node:fs/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { connect, transaction } from '../../src/db/client.ts'
import { Problem } from '../../src/errors.ts'
import { answerProblems } from '../../src/http/problems.ts'
import { atEnd, execute, freshDatabase, proxyTo, rows, sql } from '../support/kit.ts'

/** The answer of a route that throws this error. */
async function answerTo(work: () => Promise<unknown>) {
  const app: FastifyInstance = Fastify()
  answerProblems(app)
  app.get('/', work)
  atEnd(() => app.close())
  const { statusCode, headers, body } = await app.inject('/')
  return { status: statusCode, headers, json: JSON.parse(body) }
}

const away = {
  status: 503,
  headers: { 'retry-after': '1' },
  json: { detail: 'The database is away. Try again shortly.', code: 'unavailable' },
}

test('a database that is away is an outage, for every kind of statement', async () => {
  const { url } = await freshDatabase()
  const proxy = await proxyTo(url)
  const { db } = connect(proxy.url, { applicationName: 'gatewright-test', max: 2 })
  atEnd(() => db.$disconnect())
  expect(await answerTo(() => execute(db, sql`SELECT pg_terminate_backend(pg_backend_pid())`))).toMatchObject(away)
  proxy.accept(false)
  proxy.cut()
  expect(await answerTo(() => db.run.count())).toMatchObject(away)
  expect(await answerTo(() => rows(db, sql`SELECT 1`))).toMatchObject(away)
  expect(await answerTo(() => transaction(db, (tx) => rows(tx, sql`SELECT 1`)))).toMatchObject(away)
})

test('a database that is busy is an outage too', async () => {
  const { db } = await freshDatabase()
  const busy = { ...away, json: { detail: 'The database is busy. Try again shortly.', code: 'unavailable' } }
  const limited = { timeouts: { lockMs: 50, statementMs: 200 } }
  await transaction(db, async (holder) => {
    await execute(holder, sql`LOCK TABLE runs IN ACCESS EXCLUSIVE MODE`)
    expect(await answerTo(() => transaction(db, (tx) => tx.run.count(), limited))).toMatchObject(busy)
  })
  expect(await answerTo(() => transaction(db, (tx) => execute(tx, sql`SELECT pg_sleep(5)`), limited))).toMatchObject(
    busy,
  )
})

test.each([
  ['a file that is missing', () => readFile('/there/is/no/such/file')],
  ['a broken socket of unknown origin', async () => Promise.reject(Object.assign(new Error(), { code: 'ECONNRESET' }))],
])('%s is no outage of the database', async (_, work) => {
  const { status, json } = await answerTo(work)
  expect({ status, code: json.code }).toEqual({ status: 500, code: 'server_error' })
})

test('a problem is answered with its status and code', async () => {
  const problem = new Problem('cancelled', 'No worker took it.', { retryAfterS: 3 })
  expect(await answerTo(() => Promise.reject(problem))).toMatchObject({
    status: 503,
    headers: { 'retry-after': '3' },
    json: { detail: 'No worker took it.', code: 'cancelled' },
  })
})

/** Refusals that Fastify or a plugin makes by itself. */
test.each([
  ['FST_ERR_ROUTE_MISSING_CONTENT_TYPE', 400, 400, 'invalid_http'],
  ['FST_ERR_NOT_FOUND', 404, 404, 'not_found'],
  ['FST_ERR_MAX_PARAM_LENGTH', 414, 404, 'not_found'],
  ['FST_ERR_CTP_BODY_TOO_LARGE', 413, 413, 'too_large'],
  ['FST_ERR_ANYTHING_ELSE', 405, 405, 'method_not_allowed'],
  ['FST_ERR_ANYTHING_ELSE', 429, 429, 'too_many_requests'],
  ['FST_ERR_ANYTHING_ELSE', 418, 400, 'invalid_http'],
])('a refusal of Fastify is no bug: %s with %i is %i %s', async (code, statusCode, status, ours) => {
  const error = Object.assign(new Error('what is wrong'), { code, statusCode })
  expect(await answerTo(() => Promise.reject(error))).toMatchObject({ status, json: { code: ours } })
})

test.each([
  ['FST_ERR_REP_INVALID_PAYLOAD_TYPE', 500],
  ['EMINE', 400],
])('an error of the service is one, whatever its status: %s with %i', async (code, statusCode) => {
  const error = Object.assign(new Error('what is wrong'), { code, statusCode })
  expect(await answerTo(() => Promise.reject(error))).toMatchObject({ status: 500, json: { code: 'server_error' } })
})
