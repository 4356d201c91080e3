import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Prisma } from '../../src/db/generated/client.ts'
import { adminToken, answered, installation, longestTurnCost, sql, within } from '../support/kit.ts'

/** Answers of tens of megabytes, over real connections. */

/** Works without the time limits of the product. */
const load = (statement: Prisma.Sql) => within(on.url, (client) => client.query(statement))

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

const on = await installation({ workers: 'none' })
const origin = await on.app.listen({ port: 0, host: '127.0.0.1' })
await load(sql`
    INSERT INTO groups (pk, name, attributes)
    SELECT gen_random_uuid(), 'fat ' || i, jsonb_build_object('text', repeat('x', 20000)) FROM generate_series(1, 3) i`)
await load(sql`
    INSERT INTO users (uuid, username, attributes)
    SELECT gen_random_uuid(), 'user' || lpad(i::text, 5, '0'), jsonb_build_object('text', repeat('y', 1000))
    FROM generate_series(1, 30000) i`)
await load(sql`
    INSERT INTO memberships SELECT g.pk, u.pk FROM groups g, users u WHERE g.name LIKE 'fat %' AND u.username < 'user01901'`)
await load(sql`INSERT INTO groups (pk, name) VALUES ('6f7e0000-0000-4000-8000-000000009002', 'wide')`)
await load(sql`
    INSERT INTO memberships SELECT '6f7e0000-0000-4000-8000-000000009002', pk FROM users WHERE username LIKE 'user%'`)

/** Three clients at once, in a process of their own. @returns what each received */
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

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** @returns megabytes that are held at most meanwhile, beyond what was held before; garbage does not count */
async function heldMb(work: () => Promise<unknown>): Promise<number> {
  const held = () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return (heapUsed + external) / 1e6
  }
  const before = held()
  let most = before
  const looking = setInterval(() => {
    most = Math.max(most, held())
  }, 300)
  await work()
  clearInterval(looking)
  return most - before
}

describe.each([
  [allUsers, 58e6],
  [wide, 30e6],
])('three at once of %s', { timeout: 120_000 }, (path, least) => {
  const receive = async () => expect(Math.min(...(await threeReceive(path)))).toBeGreaterThan(least)

  test('are never held in memory', async () => {
    await lengthOf('/core/users/?page_size=100')
    expect(await heldMb(receive)).toBeLessThan(60)
  })

  test('keep no other request waiting', async () => {
    expect(await longestTurnCost(receive)).toBeLessThan(3)
  })
})

describe('what one answer repeats is limited', () => {
  // 1 000 users in nine groups of 16 KB each.
  beforeAll(async () => {
    await load(sql`
      INSERT INTO groups (pk, name, attributes)
      SELECT gen_random_uuid(), 'heavy ' || i, jsonb_build_object('text', repeat('x', 16000)) FROM generate_series(1, 9) i`)
    await load(sql`
      INSERT INTO memberships SELECT g.pk, u.pk FROM groups g, users u
      WHERE g.name LIKE 'heavy %' AND u.username BETWEEN 'user02000' AND 'user02999'`)
    await load(sql`
      INSERT INTO applications (pk, name, slug) SELECT gen_random_uuid(), 'app ' || i, 'app-' || i FROM generate_series(1, 1000) i`)
    await load(sql`
      INSERT INTO user_consents (user_pk, application_pk, permissions, expiring)
      SELECT u.pk, a.pk, '', false FROM users u, applications a WHERE u.username = 'user02000'`)
  })
  const heavy = '/api/v3/core/users/?search=user02&ordering=-username'

  test.each([
    ['groups of users', `${heavy}&page_size=1000`],
    ['users of consents', '/api/v3/core/user_consent/?page_size=1000'],
  ])('%s: a page that repeats too much is 400, before anything is sent', async (_, path) => {
    await answered(400, on.admin.get(path), {
      page_size: [expect.stringMatching(/^The page repeats attributes of \d+ MB, more than 64: ask for a smaller/)],
    })
  })

  test.each([
    `${heavy}&page_size=100`,
    `${heavy}&page_size=1000&include_groups=false`,
    '/api/v3/core/user_consent/?page_size=100',
  ])('%s is answered', async (path) => {
    expect((await on.admin.get(path)).status).toBe(200)
  })
})
