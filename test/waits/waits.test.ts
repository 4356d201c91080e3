import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { activeRuns } from '../../src/queue/active.ts'
import { adminToken, dashboardOf, execute, installation, sql, until } from '../support/kit.ts'

/** Requests that wait for a change of a run, of the list of runs, or of a page. */

const there = await installation({ waits: { everyMs: 50, user: 12, process: 14, pagesOfUser: 2 } })
const url = await there.app.listen({ port: 0, host: '127.0.0.1' })

const runsPath = '/api/v3/blueprints/runs/'

type Sent = { token?: string; headers?: Record<string, string>; signal?: AbortSignal }
async function get(path: string, { token = adminToken, headers = {}, ...more }: Sent = {}) {
  const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}`, ...headers }, ...more })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, json: text === '' ? undefined : JSON.parse(text) }
}

const metric = async (name: string) => {
  const { text } = await there.admin.get('/-/metrics/')
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  )
}
const waiting = (kind: string, count: number) =>
  until(`${count} waits of ${kind}`, async () => (await metric(`gatewright_waits{kind="${kind}"}`)) === count)

const putAsync = async (name: string): Promise<string> => {
  const answer = await there.admin.submit('radius', name, { prefer: 'respond-async' })
  return answer.headers.location ?? ''
}

const revisionNow = async (token = adminToken) =>
  (await get(`${runsPath}?wait=0`, { token })).headers.get('gatewright-revision') ?? ''
const since = async (seconds: number, token?: string) =>
  `${runsPath}?wait=${seconds}&since=${encodeURIComponent(await revisionNow(token))}`

describe('of a run', () => {
  test('its end is answered while the request waits', async () => {
    const release = there.hold()
    const path = await putAsync('one')
    let run = await get(path)
    expect([run.status, run.json.state, run.headers.get('cache-control')]).toEqual([200, 'queued', 'no-store'])
    const next = () => {
      const sent = { 'if-none-match': run.headers.get('etag') ?? '', prefer: 'respond-async, WAIT="29"' }
      return get(path, { headers: sent })
    }
    const changed = next()
    await waiting('run', 1)
    release()
    run = await changed
    expect([run.status, run.headers.get('preference-applied')]).toEqual([200, 'wait=29'])
    // It may be running first.
    while (run.json.state !== 'done') run = await next()
    expect(run.json).toMatchObject({ state: 'done', applied: true })
    await waiting('run', 0)
  })

  test('a change without a difference that is shown does not end the wait', async () => {
    const release = there.hold()
    const path = await putAsync('held')
    // The worker takes the job, and does not begin it.
    const isTaken = async () => (await activeRuns(there.queue)).length === 1
    await until('the job is taken', isTaken)
    const { headers } = await get(path)
    const changed = get(path, { headers: { 'if-none-match': headers.get('etag') ?? '', prefer: 'wait=29' } })
    await waiting('run', 1)
    await execute(there.db, sql`UPDATE runs SET changed_in = pg_current_xact_id()::text::bigint WHERE slug = 'held'`)
    // The wait notices it within this time, or not: both have to pass.
    await delay(300)
    release()
    expect((await changed).status).toBe(200)
  })

  test('one that stays the same is a 304 after the time', async () => {
    const { headers } = await there.admin.submit('radius', 'the-same')
    const path = headers['content-location'] ?? ''
    const { headers: read } = await get(path)
    const same = await get(path, { headers: { 'if-none-match': read.get('etag') ?? '', prefer: 'wait=1' } })
    expect([same.status, same.text, same.headers.get('preference-applied')]).toEqual([304, '', 'wait=1'])
  })

  test('what is another one already is answered at once, as it is without If-None-Match, and for HEAD', async () => {
    const { headers } = await there.admin.submit('radius', 'ended')
    const path = headers['content-location'] ?? ''
    for (const sent of [{ prefer: 'wait=30' }, { prefer: 'wait=30', 'if-none-match': '"other"' }])
      expect((await get(path, { headers: sent })).status).toBe(200)
    const { headers: read } = await get(path)
    const head = await fetch(`${url}${path}`, {
      method: 'HEAD',
      headers: {
        ...{ authorization: `Bearer ${adminToken}`, prefer: 'wait=30' },
        'if-none-match': read.get('etag') ?? '',
      },
    })
    expect(head.status).toBe(304)
  })
})

describe('of the list of runs', () => {
  test('a run that is recorded is answered, with the next revision', async () => {
    const path = await since(30)
    const changed = get(path)
    await waiting('runs', 1)
    await there.admin.submit('radius', 'listed')
    const { json, headers } = await changed
    expect(json.results[0]).toMatchObject({ slug: 'listed' })
    expect(path).not.toContain(encodeURIComponent(headers.get('gatewright-revision') ?? ''))
    // What has changed since a revision is answered at once.
    expect((await get(path)).status).toBe(200)
  })

  test('after the time it is the same', async () => {
    const path = await since(1)
    const { headers } = await get(path)
    // The snapshot before the digest follows each transaction of the database, such as a heartbeat.
    const [, digest = ''] = headers.get('gatewright-revision')?.split('~') ?? []
    expect(path).toContain(encodeURIComponent(`~${digest}`))
  })

  test.each([
    ['since=x', { since: ['Must be a `Gatewright-Revision` of an answer.'] }],
    ['wait=31', { wait: ['Must be from 0 to 30.'] }],
  ])('%s is a 400', async (query, errors) => {
    const { status, json } = await get(`${runsPath}?${query}`)
    expect([status, json]).toEqual([400, expect.objectContaining(errors)])
  })

  test('a token that is deleted meanwhile is a 401', async () => {
    const user = await there.make.user()
    const answer = get(await since(30, user.token), { token: user.token })
    await waiting('runs', 1)
    await there.db.token.deleteMany({ where: { userPk: user.pk } })
    await there.admin.submit('radius', 'for-nobody')
    expect((await answer).status).toBe(401)
  })

  test('a right that is taken meanwhile shows less', async () => {
    const user = await there.make.user({ permissions: ['view_run'] })
    expect((await get(`${runsPath}?wait=0`, user)).json.results).not.toEqual([])
    const answer = get(await since(30, user.token), user)
    await waiting('runs', 1)
    await there.db.groupRole.deleteMany({ where: { groupPk: user.group } })
    await there.admin.submit('radius', 'not-shown')
    expect((await answer).json.results).toEqual([])
  })
})

describe('how many', () => {
  test('twelve of a user: the next one is refused, there is room when one leaves, and lists are read all the while', async () => {
    const { token } = await there.make.user()
    const leave = new AbortController()
    const open = Array.from({ length: 12 }, async (_, index) =>
      get(await since(30, token), { token, ...(index === 0 && { signal: leave.signal }) }).catch(() => undefined),
    )
    await waiting('runs', 12)
    const refused = await get(await since(30, token), { token })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    expect(refused.json).toEqual({
      detail: 'At most 12 requests of one user may wait for a change at the same time. Try again later.',
      code: 'too_many_requests',
    })
    expect(await metric('gatewright_rate_limited_total{limit="waits"}')).toBe(1)
    expect((await get(runsPath, { token })).status).toBe(200)
    leave.abort()
    await waiting('runs', 11)
    const others = [1, 2, 3].map(async () => get(await since(30)))
    await waiting('runs', 14)
    const late = await get(await since(30))
    expect([late.status, late.headers.get('retry-after'), late.json.code]).toEqual([503, '10', 'unavailable'])
    await there.admin.submit('radius', 'for-all')
    for (const answer of [...open.slice(1), ...others]) expect((await answer)?.status).toBe(200)
  })

  test('the wait is no time of an answer, and the log has it apart', async () => {
    await get(await since(1))
    const line = there.log.map((each) => JSON.parse(each)).findLast(({ waited_ms }) => waited_ms > 0)
    expect(line).toMatchObject({ msg: 'answered', route: runsPath, status: 200 })
    expect(line.waited_ms).toBeGreaterThan(500)
    const sum = await metric(`gatewright_http_request_seconds_sum{method="GET",route="${runsPath}"}`)
    const count = await metric(`gatewright_http_request_seconds_count{method="GET",route="${runsPath}"}`)
    expect(sum / count).toBeLessThan(1)
  })
})

describe('of a page', () => {
  const changes = async (cookie: string, query = '') => {
    const answer = await fetch(`${url}/admin/changes/?${query}`, { headers: { cookie }, redirect: 'manual' })
    return { status: answer.status, json: (await answer.json().catch(() => null)) as Record<string, string> | null }
  }

  test('a session waits for what a token waits for, in places of its own, and ends', async () => {
    const operator = await there.make.user({ permissions: ['view_queue'] })
    const cookie = await dashboardOf(there).session(operator.token)
    const { json } = await changes(cookie)
    const query = new URLSearchParams({ since: json?.revision ?? '', wait: '30' }).toString()
    const [one, other] = [changes(cookie, query), changes(cookie, query)]
    await waiting('pages', 2)
    expect((await changes(cookie, query)).status).toBe(429)
    await there.db.dashboardSession.deleteMany({})
    await there.admin.submit('radius', 'on-a-page')
    expect([(await one).status, (await other).status]).toEqual([401, 401])
  })

  test('without a session there is none', async () => {
    expect((await changes('')).status).toBe(303)
  })
})

test.each(['', '6f7e0000-0000-7000-8000-000000000000/'])('the streams of events of runs/%s are gone', async (id) => {
  const { status, json } = await get(`${runsPath}${id}events/`)
  expect([status, json.code, json.detail]).toEqual([410, 'route_gone', expect.stringContaining('send ')])
})

test('one question for all that wait, and an end at once when the server stops', async () => {
  const other = await installation({ workers: 'none', waits: { everyMs: 3_600_000 } })
  const address = await other.app.listen({ port: 0, host: '127.0.0.1' })
  const headers = { authorization: `Bearer ${adminToken}` }
  const first = await fetch(`${address}${runsPath}?wait=0`, { headers })
  const revision = encodeURIComponent(first.headers.get('gatewright-revision') ?? '')
  const open = Array.from({ length: 8 }, () => fetch(`${address}${runsPath}?wait=30&since=${revision}`, { headers }))
  await until('all to wait', async () =>
    (await other.admin.get('/-/metrics/')).text.includes('gatewright_waits{kind="runs"} 8'),
  )
  await other.app.close()
  for (const answer of open) expect((await answer).status).toBe(200)
})
