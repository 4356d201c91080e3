import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { transaction } from '../../../src/db/client.ts'
import { type Statement, sql } from '../../../src/db/sql.ts'
import { longestTurnMs } from '../../support/cpu-time.ts'
import { adminToken } from '../../support/engine.ts'
import { type Installation, installation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'

/** Answers of hundreds of megabytes, over real connections. */

let on: Installation
let origin: string

const load = (statement: Statement) => transaction(on.db, (tx) => tx.query(statement))

beforeAll(async () => {
  on = await installation({ workers: 'none' })
  origin = await on.app.listen({ port: 0, host: '127.0.0.1' })
  await load(sql`
    INSERT INTO groups (pk, name, attributes)
    SELECT gen_random_uuid(), 'fat ' || i, jsonb_build_object('text', repeat('x', 99000)) FROM generate_series(1, 3) i`)
  await load(sql`
    INSERT INTO users (uuid, username, attributes)
    SELECT gen_random_uuid(), 'user' || lpad(i::text, 5, '0'), jsonb_build_object('text', repeat('y', 1000))
    FROM generate_series(1, 30000) i`)
  await load(sql`
    INSERT INTO memberships SELECT g.pk, u.pk FROM groups g, users u WHERE g.name LIKE 'fat %' AND u.username < 'user01901'`)
  await load(sql`INSERT INTO groups (pk, name) VALUES ('6f7e0000-0000-4000-8000-000000009002', 'wide')`)
  await load(sql`
    INSERT INTO memberships SELECT '6f7e0000-0000-4000-8000-000000009002', pk FROM users WHERE username LIKE 'user%'`)
})

async function ask(path: string): Promise<IncomingMessage> {
  const request = get(`${origin}/api/v3${path}`, { headers: { Authorization: `Bearer ${adminToken}` } })
  const [answer]: IncomingMessage[] = await once(request, 'response')
  if (answer === undefined) throw new Error('a response without an answer')
  expect(answer.statusCode).toBe(200)
  return answer
}

async function lengthOf(path: string): Promise<number> {
  let length = 0
  for await (const piece of await ask(path)) length += piece.length
  return length
}

const allUsers = '/core/users/?page_size=1000'
const wide = '/core/groups/?search=wide'

/** Three who ask at once, in a process of their own: what they take is not this one's. @returns what each received */
async function threeReceive(path: string): Promise<number[]> {
  const script = `
    const one = async () => {
      const answer = await fetch(process.argv[1], { headers: { Authorization: 'Bearer ${adminToken}' } })
      let length = 0
      for await (const piece of answer.body) length += piece.length
      return length
    }
    console.log(JSON.stringify(await Promise.all([one(), one(), one()])))`
  const url = `${origin}/api/v3${path}`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, url])
  return JSON.parse(stdout)
}

/** Megabytes that the process grew by at most, and milliseconds of computing for which nobody else got his turn. */
async function costOf(work: () => Promise<unknown>): Promise<{ grownMb: number; turnMs: number }> {
  const before = process.memoryUsage.rss()
  let most = before
  const look = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss())
  }, 5)
  const turnMs = await longestTurnMs(work)
  clearInterval(look)
  return { grownMb: (most - before) / 1e6, turnMs }
}

test.each([
  [allUsers, 290e6],
  [wide, 30e6],
])('three at once of %s grow the process by little, and keep nobody waiting', async (path, least) => {
  await lengthOf('/core/users/?page_size=100')
  const costs: Awaited<ReturnType<typeof costOf>>[] = []
  for (let turn = 0; turn < 3; turn += 1) {
    costs.push(
      await costOf(async () => {
        expect(Math.min(...(await threeReceive(path)))).toBeGreaterThan(least)
      }),
    )
  }
  expect(costs[0]?.grownMb).toBeLessThan(150)
  // The least of a few: what is compiled or collected meanwhile takes time too.
  expect(Math.min(...costs.map(({ turnMs }) => turnMs))).toBeLessThan(50)
})

const inUse = () => on.db.readers.totalCount - on.db.readers.idleCount

test('users who are read already hold no transaction while they are sent', async () => {
  const answer = await ask(allUsers)
  await until(async () => inUse() === 0, { what: 'the connection to be given back' })
  answer.destroy()
})

test('a reader who leaves ends the transaction', async () => {
  const answer = await ask(wide)
  expect(inUse()).toBe(1)
  answer.destroy()
  await until(async () => inUse() === 0, { what: 'the connection to be given back' })
})

test('an answer whose database goes away breaks off, and does not look whole', async () => {
  const taken = once(on.db.readers, 'acquire')
  const answer = await ask(wide)
  const [reader]: { processID: number }[] = await taken
  // By its number: autovacuum, too, is in a transaction after so many new rows.
  const { rows } = await on.db.pool.query('SELECT pg_terminate_backend($1) AS ended', [reader?.processID])
  expect(rows).toEqual([{ ended: true }])
  await expect(text(answer)).rejects.toMatchObject({ code: 'ECONNRESET' })
  expect(answer.complete).toBe(false)
  await until(async () => inUse() === 0, { what: 'the connection to be given back' })
  expect(await lengthOf(wide)).toBeGreaterThan(30e6)
})
