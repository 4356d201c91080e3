import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { held } from '../runs/stand.ts'
import { type Answer, answered, applied, applyPath } from '../support/asker.ts'
import { type Body, execute, type Installation, installation, name, named, rows, sql, until } from '../support/kit.ts'

/** `Idempotency-Key` and `Prefer: respond-async`. */

let body: Body
const there = await installation()
beforeEach(async () => {
  body = await named('oauth2', name, { provider: { client_secret: undefined } })
})

type Sent = { key?: string; prefer?: string; as?: Installation['admin']; url?: string; more?: Record<string, string> }

const put = (sent: unknown, { key, prefer, as = there.admin, url = applyPath, more = {} }: Sent = {}) =>
  as.put(url, sent, {
    headers: { ...(key !== undefined && { 'idempotency-key': key }), ...(prefer !== undefined && { prefer }), ...more },
  })

const runOf = ({ headers }: Answer) => headers['content-location'] ?? headers.location
const runs = () => there.db.run.count({ where: { slug: name } })
const ended = async (path = '') => {
  const read = async () => (await there.admin.get(path)).json as { state: string; applied: boolean }
  await until('the run to end', async () => (await read()).state === 'done')
  return read()
}

describe('Idempotency-Key', () => {
  test('sent again, the same gets the outcome of the first, and nothing is done twice', async () => {
    const key = randomUUID()
    const first = await applied(put(body, { key }))
    const second = await put(body, { key: `"${key}"` })
    expect([second.status, second.json, runOf(second)]).toEqual([200, first.json, runOf(first)])
    expect(await runs()).toBe(1)
  })

  test('a retry of `If-None-Match: *` gets the 200 of the first, and no 412', async () => {
    const sent = { key: randomUUID(), more: { 'if-none-match': '*' } }
    const first = await put(body, sent)
    expect((await put(body, sent)).json).toEqual(first.json)
    expect(await put(body, { ...sent, key: randomUUID() })).toMatchObject({ status: 412 })
  })

  test('something else under the key is a 422: another body, another condition, a plan', async () => {
    const key = randomUUID()
    await put(body, { key })
    for (const [sent, more] of [
      [{ ...body, app: { ...body.app, group: 'Other' } }, {}],
      [body, { more: { 'gatewright-owner': 'team-a' } }],
      [body, { url: `${applyPath}?dry_run=true` }],
    ] as const)
      expect(await put(sent, { key, ...more })).toMatchObject({ status: 422, json: { code: 'idempotency_key_reused' } })
    expect(await runs()).toBe(1)
  })

  test("a key is its submitter's own", async () => {
    const key = randomUUID()
    await put(body, { key })
    const other = await there.make.user({ superuser: true })
    await answered(200, put(body, { key, as: other }))
    expect(await runs()).toBe(2)
  })

  describe('of tokens of one user', () => {
    const rights = ['application', 'oauth2provider'].flatMap((each) => [
      `view_${each}`,
      `add_${each}`,
      `change_${each}`,
    ])
    const more = { 'gatewright-owner': 'team-a' }
    async function hands() {
      const user = await there.make.user({ superuser: true })
      const bound = async (owner: string) =>
        there.as(await there.make.token(user.pk, { ceiling: rights.map((each) => `${each}@${owner}`) }))
      return { user, one: await bound('team-a'), renewed: await bound('team-a'), other: await bound('team-b') }
    }

    test('is that of those with the same ceiling: under another one it is a 422', async () => {
      const { user, one, renewed, other } = await hands()
      const key = randomUUID()
      const first = await applied(put(body, { key, as: one, more }))
      const second = await put(body, { key, as: renewed, more })
      expect([second.status, second.json, runOf(second)]).toEqual([200, first.json, runOf(first)])
      for (const as of [other, user])
        expect(await put(body, { key, as, more })).toMatchObject({
          status: 422,
          json: { code: 'idempotency_key_reused' },
        })
      expect(await runs()).toBe(1)
    })

    test('has no ceiling in a run of an earlier version', async () => {
      const { user, one } = await hands()
      const key = randomUUID()
      const first = await applied(put(body, { key, as: user, more }))
      expect(await put(body, { key, as: one, more })).toMatchObject({ status: 422 })
      await there.db.run.updateMany({ where: { slug: name }, data: { format: 7 } })
      expect(runOf(await put(body, { key, as: one, more }))).toBe(runOf(first))
    })
  })

  test('20 at once under one key are one run, and all get its outcome', async () => {
    const key = randomUUID()
    const answers = await Promise.all(Array.from({ length: 20 }, () => put(body, { key })))
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]).toMatchObject({ status: 200, json: { applied: true } })
    expect(new Set(answers.map(runOf)).size).toBe(1)
    expect(await runs()).toBe(1)
  })

  test('a submission that was refused leaves the key free', async () => {
    const key = randomUUID()
    expect(await put({ ...body, app: { ...body.app, slug: 'a b' } }, { key })).toMatchObject({ status: 400 })
    expect(await put(body, { key })).toMatchObject({ status: 200 })
  })

  test('a cancelled submission frees the key: the retry is applied', async () => {
    const quiet = await installation({ workers: 'none', applyWaitMs: 2_000 })
    const key = randomUUID()
    const send = () => quiet.admin.put(applyPath, body, { headers: { 'idempotency-key': key } })
    expect(await send()).toMatchObject({ status: 503, json: { code: 'cancelled' } })
    expect(await send()).toMatchObject({ status: 503, json: { code: 'cancelled' } })
    expect(await quiet.db.run.count()).toBe(2)
    expect(await quiet.db.idempotencyKey.count()).toBe(1)
  })

  test('a run that failed because it could not be applied frees the key: the retry is applied', async () => {
    const key = randomUUID()
    const release = there.hold()
    const sending = put(body, { key })
    await there.queued(1)
    await execute(
      there.db,
      sql`UPDATE runs SET attempts = 5, enqueued_at = now() - interval '1 minute' WHERE slug = ${name}`,
    )
    expect(await sending).toMatchObject({ status: 503, json: { code: 'unavailable' } })
    release()
    expect(await put(body, { key })).toMatchObject({ status: 200, json: { applied: true } })
    expect(await runs()).toBe(2)
    // The key is that of the second run now.
    expect(await put(body, { key })).toMatchObject({ status: 200, json: { applied: true } })
    expect(await runs()).toBe(2)
  })

  test('a run that a crash of the database lost frees the key', async () => {
    const key = randomUUID()
    await put(body, { key })
    await there.db.run.deleteMany({ where: { slug: name } })
    expect(await put(body, { key })).toMatchObject({ status: 200, json: { applied: true } })
    expect(await runs()).toBe(1)
  })

  test('a run that failed by a bug keeps the key: sent again, it is not applied a second time', async () => {
    const key = randomUUID()
    await put(body, { key })
    const failed = { state: 'failed', applied: false, reason: 'server_error' } as const
    await there.db.run.updateMany({ where: { slug: name }, data: failed })
    expect(await put(body, { key })).toMatchObject({ status: 500, json: { code: 'server_error' } })
    expect(await runs()).toBe(1)
  })

  test('a retry gets the run of its key before anything refuses it: nothing of it is untrue', async () => {
    const busy = await installation({ applyWaitMs: 60_000 })
    const key = randomUUID()
    const release = busy.hold()
    const send = (sent: unknown, headers = {}) => busy.admin.put(applyPath, sent, { headers })
    expect(await send(body, { 'idempotency-key': key, prefer: 'respond-async' })).toMatchObject({ status: 202 })
    // All of these are let in, and no more.
    const others = Array.from({ length: 128 }, async (_, index) => send(await named('radius', `${name}-${index}`)))
    await busy.queued(129)
    await answered(503, send(await named('radius', `${name}-more`)), { code: 'unavailable' })
    const other = await send(await named('radius', `${name}-more`), { 'idempotency-key': randomUUID() })
    expect(other).toMatchObject({ status: 503, json: { code: 'unavailable' } })
    const joined = send(body, { 'idempotency-key': key })
    release()
    expect(await joined).toMatchObject({ status: 200, json: { applied: true } })
    await Promise.all(others)
  })

  test('a retry learns whether a worker has its run', async () => {
    const quiet = await installation({ workers: 'none', applyWaitMs: 1_000 })
    const key = randomUUID()
    const send = (headers = {}) => quiet.admin.put(applyPath, body, { headers: { 'idempotency-key': key, ...headers } })
    const { headers } = await send({ prefer: 'respond-async' })
    const answer = { status: 202, json: { code: 'outcome_unknown' }, headers: { location: headers.location } }
    expect(await send()).toMatchObject(answer)
    expect((await send()).json).toMatchObject({
      detail: expect.stringMatching(/^Recorded, and no worker has taken it yet/),
    })
    const release = await held(quiet, (tx) => rows(tx, sql`SELECT 1 FROM runs FOR UPDATE`))
    expect((await send()).json).toMatchObject({ detail: expect.stringMatching(/^A worker has it/) })
    await release()
  })

  test('a key is kept for a day', async () => {
    const key = randomUUID()
    await put(body, { key })
    const keys = { where: { key }, data: { createdAt: new Date(Date.now() - 25 * 3_600_000) } }
    await there.db.idempotencyKey.updateMany(keys)
    expect(await put({ ...body, app: { ...body.app, group: 'Later' } }, { key })).toMatchObject({ status: 200 })
  })

  test.each(['', ' ', '"', 'a"b', 'x'.repeat(256), 'schlüssel'])('%j is no key: 400', async (key) => {
    expect(await put(body, { key })).toMatchObject({ status: 400, json: { 'Idempotency-Key': [expect.any(String)] } })
    expect(await runs()).toBe(0)
  })
})

describe('Prefer: respond-async', () => {
  test('answers as soon as it is recorded, and the run has the outcome', async () => {
    const release = there.hold()
    const answer = await put(body, { prefer: 'wait=10, Respond-Async' })
    expect(answer).toMatchObject({
      status: 202,
      json: { code: 'accepted', run: expect.stringMatching(/^\/api\/v3\/blueprints\/runs\/[0-9a-f-]{36}\/$/) },
      headers: { 'preference-applied': 'respond-async', 'retry-after': '1' },
    })
    expect(answer.headers.location).toBe((answer.json as { run: string }).run)
    release()
    expect(await ended(answer.headers.location)).toMatchObject({ applied: true })
  })

  test.each([
    ['respond-async; x=1', true],
    ['respond-async;wait=5', true],
    ['return=minimal; a="b, c; \\"d\\"", respond-async ; x="1"', true],
    ['x="y, respond-async, z"', false],
    ['x="y\\", respond-async"', false],
    ['x="never closed, respond-async', false],
    ['return=minimal; respond-async', false],
    ['respond-asynchronously', false],
  ])('is read with its parameters (RFC 7240): %s', async (prefer, isAsync) => {
    const answer = await put(body, { prefer })
    expect([answer.status, answer.headers['preference-applied']]).toEqual(
      isAsync ? [202, 'respond-async'] : [200, undefined],
    )
    if (isAsync) await ended(answer.headers.location)
  })

  test('with a key, a retry without it waits for the same run', async () => {
    const release = there.hold()
    const key = randomUUID()
    const first = await put(body, { key, prefer: 'respond-async' })
    const again = await put(body, { key, prefer: 'respond-async' })
    expect([again.status, runOf(again)]).toEqual([202, runOf(first)])
    const waiting = put(body, { key })
    release()
    expect(await waiting).toMatchObject({ status: 200, json: { applied: true } })
    expect(await runs()).toBe(1)
  })

  test('what is refused is refused at once', async () => {
    await answered(400, put({ ...body, app: { ...body.app, slug: 'a b' } }, { prefer: 'respond-async' }))
  })

  test('other preferences are ignored, and not acknowledged', async () => {
    const answer = await answered(200, put(body, { prefer: 'return=minimal' }))
    expect(answer.headers['preference-applied']).toBeUndefined()
  })

  test('a submitter with too many waiting runs is refused', async () => {
    const user = await there.make.user({ superuser: true })
    const row = (id: string) => ({
      ...{
        id,
        title: 'waits',
        kind: 'blueprint',
        submitterPk: user.pk,
        requestId: 'r',
        enqueuedAt: new Date(Date.now() + 600_000),
      },
    })
    await there.db.run.createMany({ data: Array.from({ length: 1_000 }, () => row(randomUUID())) })
    for (const key of [{}, { key: randomUUID() }])
      await answered(429, put(body, { ...key, prefer: 'respond-async', as: user }), { code: 'too_many_requests' })
    await there.db.run.deleteMany({ where: { title: 'waits' } })
  })
})

test('submissions that have ended leave room for others', async () => {
  const unknown = { ...body, provider: { ...body.provider, authorization_flow: randomUUID() } }
  const statuses = new Set<number>()
  // More than may be inside at the same time.
  for (let sent = 0; sent < 150; sent += 1) statuses.add((await put(unknown)).status)
  expect([...statuses]).toEqual([400])
})
