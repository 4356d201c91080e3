import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { loadRegistry } from '../../src/models/registry.ts'
import { whyCodes } from '../../src/runs/why.ts'
import { freshDatabase, needs, rows, sql, until } from '../support/kit.ts'
import { counted, of, promtool, type Samples, samplesOf } from '../support/metrics.ts'
import { type Stack, startStack } from './stack.ts'

/** What an alert stands on: a scrape of the API alone, with workers as processes of their own. */

const example = JSON.parse(await readFile(new URL('../../examples/radius.json', import.meta.url), 'utf8'))
const applyRoute = '/api/v3/core/transactional/applications/'
const routes = [applyRoute, '/api/v3/blueprints/', '/api/v3/blueprints/runs/:id/apply/']
const kinds = [...(await loadRegistry()).kinds.keys(), 'blueprint']

const scrape = async (stack: Stack): Promise<Samples> => samplesOf((await stack.get('/-/metrics/')).text)
const ended = (outcome: string, reason = 'none', { mode = 'apply', kind = 'radius' } = {}) =>
  `gatewright_runs_ended_total{mode="${mode}",kind="${kind}",outcome="${outcome}",reason="${reason}"}`
const refused = (code: string, route = applyRoute) =>
  `gatewright_submissions_refused_total{route="${route}",code="${code}"}`
const named = (slug: string) => ({
  ...example,
  app: { ...example.app, slug },
  provider: { ...example.provider, name: slug },
})

test('each failure series stands at 0 before anything has happened', async () => {
  const { url } = await freshDatabase()
  const samples = await scrape(await startStack({ databaseUrl: url, redisUrl: null }))
  const modes = ['apply', 'plan']
  const failures = [
    ...kinds.flatMap((kind) =>
      modes.flatMap((mode) => [
        ended('failed', 'server_error', { mode, kind }),
        ended('failed', 'unavailable', { mode, kind }),
        ...whyCodes.map((code) => ended('cancelled', code, { mode, kind })),
        ended('refused', 'permission_denied', { mode, kind }),
      ]),
    ),
    ...routes.flatMap((route) =>
      ['not_authenticated', 'permission_denied', 'too_many_requests', 'invalid', 'cancelled', 'server_error'].map(
        (code) => refused(code, route),
      ),
    ),
    ...['api', 'dashboard'].map((to) => `gatewright_failed_logins_total{to="${to}"}`),
    ...['requests', 'lists', 'long_answers', 'waiting_runs', 'waits', 'writes'].map(
      (limit) => `gatewright_rate_limited_total{limit="${limit}"}`,
    ),
    ...['connection', 'lock_timeout', 'statement_timeout', 'collision', 'no_writes', 'lost', 'other'].map(
      (cause) => `gatewright_run_attempts_failed_total{cause="${cause}"}`,
    ),
    ...[500, 503].map(
      (status) => `gatewright_http_requests_total{method="PUT",route="${applyRoute}",status="${status}"}`,
    ),
    'gatewright_worker_starts_total',
  ]
  expect(kinds.length).toBeGreaterThan(9)
  expect(failures.filter((series) => samples.get(series) !== 0)).toEqual([])
})

test('each end of a run is counted once, whether anything waits for it or not', async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null, applyWaitMs: 4_000 })
  await rows(
    db,
    sql`CREATE FUNCTION break() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'a broken index' USING ERRCODE = 'XX002'; END $$`,
  )
  await rows(
    db,
    sql`CREATE TRIGGER break BEFORE INSERT ON providers FOR EACH ROW WHEN (NEW.name = 'broken') EXECUTE FUNCTION break()`,
  )
  const worker = await stack.startWorker()
  const apply = (slug: string, query = '') => stack.send('PUT', `${applyRoute}${query}`, named(slug))
  for (const slug of ['one', 'one', 'one', 'two']) expect((await apply(slug)).status).toBe(200)
  expect((await apply('three', '?dry_run=true')).status).toBe(200)
  expect((await apply('broken')).status).toBe(500)
  const headers = { Authorization: 'Bearer a-token-for-the-first-admin', 'Content-Type': 'application/json' }
  const later = {
    method: 'PUT',
    headers: { ...headers, Prefer: 'respond-async' },
    body: JSON.stringify(named('later')),
  }
  expect((await stack.get(applyRoute, later)).status).toBe(202)
  await until('its end', async () => (await db.run.findFirst({ where: { slug: 'later' } }))?.state === 'done')
  worker.signal('SIGSTOP')
  expect((await apply('late')).status).toBe(503)
  worker.signal('SIGCONT')

  const expected = {
    [ended('applied')]: 3,
    [ended('unchanged')]: 2,
    [ended('planned', 'none', { mode: 'plan' })]: 1,
    [ended('failed', 'server_error')]: 1,
    [ended('cancelled', 'late')]: 1,
  }
  const total = (samples: Samples) => Object.values(of(samples, 'gatewright_runs_ended_total')).reduce((a, b) => a + b)
  await until('all ends to be counted', async () => total(await scrape(stack)) === 8)
  const samples = await scrape(stack)
  expect(counted(samples, 'gatewright_runs_ended_total')).toEqual(expected)
  expect(counted(samples, 'gatewright_run_attempts_failed_total')).toEqual({
    'gatewright_run_attempts_failed_total{cause="other"}': 1,
  })
  // The run that was cancelled had no worker.
  expect(samples.get('gatewright_run_work_seconds_count')).toBe(7)
  expect(counted(samples, 'gatewright_submissions_refused_total')).toEqual({
    [refused('server_error')]: 1,
    [refused('cancelled')]: 1,
  })

  // Another worker, and another API, count on from there.
  await worker.stop()
  const next = await stack.startWorker()
  const other = await startStack({ databaseUrl: url, redisUrl: null })
  expect((await other.put(named('four'))).status).toBe(200)
  await until('the fourth', async () => (await scrape(stack)).get(ended('applied')) === 4)
  const seen = counted(await scrape(other), 'gatewright_runs_ended_total')
  expect(seen).toEqual({ ...expected, [ended('applied')]: 4 })
  expect((await scrape(other)).get('gatewright_worker_starts_total')).toBe(2)
  await next.stop()
})

test('submissions that never reach the queue are counted by route and code', async () => {
  const { url, db } = await freshDatabase()
  const stack = await startStack({ databaseUrl: url, redisUrl: null })
  const send = (route: string, token: string, body: unknown = example) =>
    stack.get(route, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  const admin = 'a-token-for-the-first-admin'
  expect((await send(applyRoute, 'gw_a_wrong')).status).toBe(401)
  expect((await send(routes[1] ?? '', 'gw_a_wrong')).status).toBe(401)
  expect((await send(applyRoute, admin, {})).status).toBe(400)
  await db.user.updateMany({ data: { isActive: true } })
  await rows(db, sql`UPDATE groups SET is_superuser = false`)
  expect((await send(applyRoute, admin)).status).toBe(403)
  const samples = await scrape(stack)
  expect(counted(samples, 'gatewright_submissions_refused_total')).toEqual({
    [refused('not_authenticated')]: 1,
    [refused('not_authenticated', '/api/v3/blueprints/')]: 1,
    [refused('invalid')]: 1,
    [refused('permission_denied')]: 1,
  })
  expect(samples.get('gatewright_failed_logins_total{to="api"}')).toBe(2)
  expect(counted(samples, 'gatewright_runs_ended_total')).toEqual({})
})

describe.runIf(needs('promtool'))('promtool', () => {
  test('finds nothing to say about a scrape', async () => {
    const { url } = await freshDatabase()
    const stack = await startStack({ databaseUrl: url, redisUrl: null })
    const worker = await stack.startWorker()
    expect((await stack.put(example)).status).toBe(200)
    await until('the run to be counted', async () => (await scrape(stack)).get(ended('applied')) === 1)
    const { text } = await stack.get('/-/metrics/')
    expect(await promtool(['check', 'metrics'], { input: text })).toEqual({ code: 0, output: '' })
    await worker.stop()
  })

  test('would say so', async () => {
    const input = '# HELP x_total A gauge.\n# TYPE x_total gauge\nx_total 1\n'
    expect(await promtool(['check', 'metrics'], { input })).toMatchObject({ code: 3 })
  })
})
