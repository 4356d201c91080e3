import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { json as bodyOf, text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { maxStreams } from '../../../src/http/long-answer.ts'
import { adminToken, freshFolder, installation, recordStatements, rows, sql, until, within } from '../../support/kit.ts'

/** Long answers over real connections, to clients that take their time. */

const group = '6f7e0000-0000-4000-8000-000000009003'
const path = `/api/v3/core/groups/${group}/`
const count = 4_000

/** Its answer has 12 MB: more than the kernel keeps for a Unix socket. What it keeps for TCP differs by machine. */
const on = await installation({ workers: 'none' })
const socketPath = join(freshFolder(), 'http')
await on.app.listen({ path: socketPath })
const recorder = await recordStatements()
await within(on.url, async (client) => {
  await client.query(`
      INSERT INTO users (uuid, username, name, attributes)
      SELECT gen_random_uuid(), 'user' || lpad(i::text, 5, '0'), 'before', jsonb_build_object('text', repeat('y', 3000))
      FROM generate_series(1, ${count}) i`)
  await client.query(`INSERT INTO groups (pk, name) VALUES ('${group}', 'wide')`)
  await client.query(`INSERT INTO memberships SELECT '${group}', pk FROM users WHERE username LIKE 'user%'`)
})

/** @returns the answer, of which nothing is read yet */
async function ask(method: string, url: string, body?: object): Promise<IncomingMessage> {
  const headers = { Authorization: `Bearer ${adminToken}`, 'Content-Type': 'application/json' }
  const asked = request({ socketPath, path: url, method, headers, agent: false })
  asked.end(body === undefined ? undefined : JSON.stringify(body))
  const [answer]: IncomingMessage[] = await once(asked, 'response')
  if (answer === undefined) throw new Error('a response without an answer')
  return answer
}

const open = () =>
  rows(
    on.db,
    sql`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'gatewright-test'
      AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`,
  )

/** Statements so far that read users by their keys. */
const portions = () => recorder.sent.filter((text) => /^SELECT .* FROM users WHERE pk = ANY/s.test(text)).length

/** Waits until the answer waits for its client, and no transaction is open. */
async function stalled(): Promise<void> {
  let known = -1
  await until(
    'the answer to wait without a transaction',
    async () => {
      const isSame = portions() === known
      known = portions()
      return isSame && (await open()).length === 0
    },
    { everyMs: 200 },
  )
}

const shown = z.object({
  attributes: z.unknown(),
  users: z.array(z.int()),
  users_obj: z.array(z.object({ pk: z.int(), name: z.string() })),
})

/** The last user of all. */
const rename = (name: string) => on.db.user.update({ where: { username: `user0${count}` }, data: { name } })

const inList = async (answer: IncomingMessage) =>
  z.object({ results: z.tuple([shown]) }).parse(await bodyOf(answer)).results[0]
const alone = async (answer: IncomingMessage) => shown.parse(await bodyOf(answer))

describe.each([
  ['a list', 'GET', `/api/v3/core/groups/?name=wide`, inList],
  ['a group', 'GET', path, alone],
  ['a changed group', 'PATCH', path, alone],
])('%s', (_, method, url, read) => {
  test('is sent to a slow reader, who holds no transaction and no more than it takes', async () => {
    await rename('before')
    const before = portions()
    const answer = await ask(method, url, method === 'PATCH' ? { attributes: { by: method } } : undefined)
    expect(answer.statusCode).toBe(200)
    expect(answer.headers.etag).toBeUndefined()
    await stalled()
    expect(portions() - before).toBeLessThan(count / 1_000)
    await rename('after')
    const { users, users_obj } = await read(answer)
    expect(users).toHaveLength(count)
    expect(users_obj.map(({ pk }) => pk)).toEqual(users)
    // What is not read yet is as it is then.
    expect([users_obj.at(0)?.name, users_obj.at(-1)?.name]).toEqual(['before', 'after'])
    expect(portions() - before).toBe(count / 1_000)
  })
})

test('a long page of members is sent while it is read, and takes of the long answers', async () => {
  const url = `${path}members/?page_size=1000`
  const asked = await Promise.all(Array.from({ length: maxStreams }, () => ask('GET', url)))
  for (const { statusCode, headers } of asked)
    expect([statusCode, headers['transfer-encoding']]).toEqual([200, 'chunked'])
  const other = await on.make.user({ permissions: ['view_group', 'view_user'] })
  expect((await other.get(url)).status).toBe(503)
  const bodies = await Promise.all(asked.map(bodyOf))
  const { next, results } = z
    .object({ next: z.string(), results: z.array(z.object({ user: z.int(), user_obj: z.object({ pk: z.int() }) })) })
    .parse(bodies[0])
  expect(results).toHaveLength(1_000)
  for (const { user, user_obj } of results) expect(user_obj.pk).toBe(user)
  expect(next).toBe(`${path}members/?after=${results.at(-1)?.user}&page_size=1000`)
})

test('a change is committed, and others may change the group, before its writer reads the answer', async () => {
  const answer = await ask('PATCH', path, { attributes: { first: true } })
  await stalled()
  expect((await on.admin.get(`${path}?include_users=false`)).json).toMatchObject({ attributes: { first: true } })
  const other = await ask('PATCH', path, { attributes: { second: true } })
  expect(other.statusCode).toBe(200)
  other.destroy()
  expect(await alone(answer)).toMatchObject({ attributes: { first: true } })
})

test('a client that leaves gives its place to another', async () => {
  const asked = await Promise.all(Array.from({ length: maxStreams }, () => ask('GET', path)))
  expect((await on.admin.get(path)).status).toBe(503)
  for (const answer of asked) answer.destroy()
  const { users } = await until('a place', async () => {
    const answer = await ask('GET', path)
    if (answer.statusCode === 200) return alone(answer)
    answer.resume()
    return false
  })
  expect(users).toHaveLength(count)
})

const patch = (url: string, headers: Record<string, string> = {}) =>
  on.admin.send({ method: 'PATCH', url, payload: { attributes: { a: randomUUID() } }, headers })

/** What `include_users=false` shows, with its tag. */
async function expectWithoutUsers({ status, json, headers }: Awaited<ReturnType<typeof patch>>): Promise<void> {
  const read = await on.admin.get(`${path}?include_users=false`)
  expect(read.json).toMatchObject({ users_obj: null, users: { length: count } })
  expect({ status, json, etag: headers.etag }).toEqual({ status: 200, json: read.json, etag: read.headers.etag })
}

test('a change is answered without its users when too many answers of changes are read slowly; reads have their places', async () => {
  const written = await Promise.all(
    Array.from({ length: maxStreams }, (_, index) => ask('PATCH', path, { attributes: { index } })),
  )
  await expectWithoutUsers(await patch(path))
  const read = await ask('GET', path)
  expect(read.statusCode).toBe(200)
  for (const answer of [...written, read]) answer.destroy()
})

test('a change is answered without its users when they cannot be read', async () => {
  const setLogin = (to: string) =>
    within(on.url, (client) => client.query(`UPDATE users SET last_login = ${to} WHERE username = 'user00001'`))
  // A time that no answer can show.
  await setLogin(`'infinity'`)
  try {
    expect((await on.admin.get(path)).status).toBe(500)
    await expectWithoutUsers(await patch(path))
  } finally {
    await setLogin('NULL')
  }
})

test('a group that is too long without its users, too, is there, and can be compared with nothing', async () => {
  const wide = '6f7e0000-0000-4000-8000-000000009004'
  await within(on.url, async (client) => {
    await client.query(`INSERT INTO groups (pk, name) VALUES ('${wide}', 'of many roles')`)
    await client.query(`INSERT INTO roles (pk, name)
      SELECT gen_random_uuid(), 'wide' || lpad(i::text, 140, '0') FROM generate_series(1, 10000) i`)
    await client.query(
      `INSERT INTO group_roles (group_pk, role_pk) SELECT '${wide}', pk FROM roles WHERE name LIKE 'wide%'`,
    )
  })
  const url = `/api/v3/core/groups/${wide}/`
  const detail = (text: string) => ({ status: 412, json: { detail: expect.stringContaining(text) } })
  expect(await patch(url, { 'if-match': '"a"' })).toMatchObject(detail('is so long that it has no `ETag`'))
  expect(await patch(url, { 'if-none-match': '*' })).toMatchObject(detail('The group exists'))
  expect((await patch(url, { 'if-match': '*', 'if-none-match': '"a"' })).status).toBe(200)
})

describe('a group that is too long for a tag', () => {
  const patchIf = (ifMatch: string) => patch(path, { 'if-match': ifMatch })

  test('has one without its users, by which it is changed as it was read', async () => {
    const { etag = '' } = (await on.admin.get(`${path}?include_users=false`)).headers
    expect(etag).toMatch(/^".+"$/)
    expect((await patchIf(etag)).status).toBe(200)
    expect((await patchIf(etag)).status).toBe(412)
    expect((await patchIf('*')).status).toBe(200)
  })

  test('is compared with none', async () => {
    const ask = (headers: Record<string, string>) => on.admin.get(path, { headers })
    expect(await ask({ 'if-match': '"a"' })).toMatchObject({
      status: 412,
      json: { detail: 'The group is so long that it has no `ETag`: leave `If-Match` out to read it.' },
    })
    expect((await ask({ 'if-none-match': '*' })).status).toBe(304)
    expect((await ask({ 'if-match': '*', 'if-none-match': '"a"' })).status).toBe(200)
  })
})

describe('an outage while it is sent', () => {
  const admit = (how: 'GRANT' | 'REVOKE', preposition: 'TO' | 'FROM') =>
    within(on.url, (client) =>
      client.query(`
        DO $$ BEGIN
          EXECUTE format('${how} CONNECT ON DATABASE %I ${preposition} PUBLIC, gatewright_service', current_database());
        END $$`),
    )
  /** Waits until they are gone: until then, the pool may give one of them away. */
  const end = () =>
    within(on.url, (client) =>
      client.query(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = 'gatewright_service'`),
    )

  test('does no harm when it is over before more is read', async () => {
    const answer = await ask('GET', path)
    await stalled()
    await end()
    expect((await alone(answer)).users_obj).toHaveLength(count)
  })

  test('breaks it off else: half an answer does not look like a whole one', async () => {
    const answer = await ask('GET', path)
    await stalled()
    await admit('REVOKE', 'FROM')
    try {
      await end()
      await expect(text(answer)).rejects.toMatchObject({ code: 'ECONNRESET' })
      expect(answer.complete).toBe(false)
    } finally {
      await admit('GRANT', 'TO')
    }
  })
})

test('does not keep the server from stopping', async () => {
  const answer = await ask('GET', path)
  await stalled()
  await on.app.close()
  await expect(text(answer)).rejects.toMatchObject({ code: 'ECONNRESET' })
})
