import { readFile } from 'node:fs/promises'
import Fastify, { type FastifyInstance } from 'fastify'
import { expect, test } from 'vitest'
import { connect, transaction } from '../../src/db/client.ts'
import { sql } from '../../src/db/sql.ts'
import { Problem } from '../../src/errors.ts'
import { answerProblems } from '../../src/http/problems.ts'
import { atEnd } from '../support/at-end.ts'
import { freshDatabase } from '../support/database.ts'
import { proxyTo } from '../support/proxy.ts'

/** What a route answers that fails in this way. */
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

test('a database that is away is an outage, whoever asked it', async () => {
  const { url } = await freshDatabase()
  const proxy = await proxyTo(url)
  const db = connect(proxy.url, { applicationName: 'gatewright-test', max: 2 })
  atEnd(() => db.close())
  expect(await answerTo(() => db.prisma.$queryRaw`SELECT pg_terminate_backend(pg_backend_pid())`)).toMatchObject(away)
  proxy.accept(false)
  proxy.cut()
  expect(await answerTo(() => db.prisma.run.count())).toMatchObject(away)
  expect(await answerTo(() => db.query(sql`SELECT 1`))).toMatchObject(away)
  expect(await answerTo(() => transaction(db, (tx) => tx.query(sql`SELECT 1`)))).toMatchObject(away)
})

test.each([
  ['a file that is missing', () => readFile('/there/is/no/such/file')],
  [
    'a broken socket, nobody knows whose',
    async () => Promise.reject(Object.assign(new Error(), { code: 'ECONNRESET' })),
  ],
])('%s is no outage of the database', async (_, work) => {
  const { status, json } = await answerTo(work)
  expect({ status, code: json.code }).toEqual({ status: 500, code: 'server_error' })
})

test('a problem is answered as it says', async () => {
  const problem = new Problem('not_applied', 'Too many wait.', { retryAfterS: 3 })
  expect(await answerTo(() => Promise.reject(problem))).toMatchObject({
    status: 503,
    headers: { 'retry-after': '3' },
    json: { detail: 'Too many wait.', code: 'not_applied' },
  })
})
