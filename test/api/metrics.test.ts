import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { freshDatabase, freshRedis, needs, ownRedis, proxyTo, until } from '../support/kit.ts'
import { counted, of, type Samples, samplesOf } from '../support/metrics.ts'
import { type Stack, startStack } from './stack.ts'

const example = JSON.parse(await readFile(new URL('../../examples/radius.json', import.meta.url), 'utf8'))
const applyRoute = '/api/v3/core/transactional/applications/'

async function scrape(stack: Stack): Promise<Samples> {
  const { status, text } = await stack.get('/-/metrics/')
  expect(status).toBe(200)
  return samplesOf(text)
}

/** The first scrape in which a sample has this value: gauges are read once a second. */
const scrapeWith = (stack: Stack, name: string, value: number): Promise<Samples> =>
  until(`${name} to be ${value}`, async () => {
    const samples = await scrape(stack)
    return samples.get(name) === value ? samples : null
  })

const request = (method: string, route: string, status: number) =>
  `gatewright_http_requests_total{method="${method}",route="${route}",status="${status}"}`
const ended = (kind: string, outcome: string, reason = 'none', mode = 'apply') =>
  `gatewright_runs_ended_total{mode="${mode}",kind="${kind}",outcome="${outcome}",reason="${reason}"}`
const refusal = (code: string) => `gatewright_submissions_refused_total{route="${applyRoute}",code="${code}"}`

/** What holds for both stores of the queue. */
function claims(queue: () => Promise<string | null>): void {
  test('counts exactly what happened, by route pattern and outcome', async () => {
    const { url, db } = await freshDatabase()
    const stack = await startStack({ databaseUrl: url, redisUrl: await queue() })
    const worker = await stack.startWorker()

    expect(await stack.put(example)).toMatchObject({ status: 200, json: { applied: true } })
    expect(await stack.put({ ...example, provider: {} })).toMatchObject({ status: 400 })
    expect(await stack.put({ ...example, provider_model: 'no-such-model' })).toMatchObject({ status: 400 })
    expect(await stack.get('/api/v3/nothing/of/the/kind/')).toMatchObject({ status: 404 })

    // Refused in the worker's transaction: the submitter loses the permission after the run was recorded.
    worker.signal('SIGSTOP')
    const answer = stack.put({ ...example, app: { ...example.app, meta_description: 'other' } })
    await until('the run to be recorded', async () => (await db.run.count({ where: { state: 'queued' } })) === 1)
    await db.user.updateMany({ data: { isActive: false } })
    worker.signal('SIGCONT')
    expect(await answer).toMatchObject({ status: 200, json: { applied: false } })
    await worker.stop()

    const refused = request('PUT', applyRoute, 400)
    const samples = await until('all answers to be counted', async () => {
      const found = await scrape(stack)
      const isCounted = found.get(refused) === 2 && found.get(request('PUT', applyRoute, 200)) === 2
      return isCounted && found.get('gatewright_run_work_seconds_count') === 2 ? found : null
    })
    expect(of(samples, 'gatewright_http_requests_total')).toMatchObject({
      [request('PUT', applyRoute, 200)]: 2,
      [refused]: 2,
      [request('GET', 'unmatched', 404)]: 1,
    })
    expect(counted(samples, 'gatewright_runs_ended_total')).toEqual({
      [ended('radius', 'applied')]: 1,
      [ended('radius', 'refused', 'permission_denied')]: 1,
    })
    expect(counted(samples, 'gatewright_submissions_refused_total')).toEqual({ [refusal('invalid')]: 2 })
    expect(samples.get(`gatewright_http_request_seconds_count{method="PUT",route="${applyRoute}"}`)).toBe(4)
    for (const time of ['queue', 'work']) {
      expect(samples.get(`gatewright_run_${time}_seconds_count`)).toBe(2)
      expect(samples.get(`gatewright_run_${time}_seconds_bucket{le="+Inf"}`)).toBe(2)
      expect(samples.get(`gatewright_run_${time}_seconds_sum`)).toBeGreaterThan(0)
    }
    expect(samples.get('gatewright_worker_starts_total')).toBe(1)
    expect(of(samples, 'gatewright_jobs')).toMatchObject({
      'gatewright_jobs{state="completed"}': 2,
      'gatewright_jobs{state="failed"}': 0,
      'gatewright_jobs{state="active"}': 0,
    })
    const labels = [...samples.keys()].join('\n')
    for (const secret of [example.app.slug, example.provider.name, example.provider.shared_secret, 'nothing/of'])
      expect(labels).not.toContain(secret)
  })

  test('a run that waits is shown by its age', async () => {
    const { url, db } = await freshDatabase()
    const stack = await startStack({ databaseUrl: url, redisUrl: await queue() })
    const idle = await scrape(stack)
    expect(idle.get('gatewright_oldest_waiting_run_seconds')).toBe(0)
    expect(idle.has('gatewright_last_consumption_timestamp_seconds')).toBe(false)

    await db.$executeRaw`
      INSERT INTO runs (id, title, kind, request_id, blueprint, logs, created_at)
      SELECT gen_random_uuid(), 'apply', 'radius', 'r', 'sealed', '{}', now() - make_interval(secs => age) FROM unnest(ARRAY[10.0, 300.0]) age`
    await db.$executeRaw`INSERT INTO queue_heartbeats (queue, consumed_at) VALUES ('apply', '2026-01-01T00:00:00Z')`
    const busy = await scrapeWith(stack, 'gatewright_waiting_runs', 2)
    expect(busy.get('gatewright_oldest_waiting_run_seconds')).toBeGreaterThanOrEqual(300)
    const consumedAt = busy.get('gatewright_last_consumption_timestamp_seconds') ?? 0
    expect(Math.abs(consumedAt - Date.parse('2026-01-01T00:00:00Z') / 1_000)).toBeLessThan(2)
  })

  test('a database that is away leaves its gauges out and counts on', async () => {
    const { url } = await freshDatabase()
    const proxy = await proxyTo(url)
    const redisUrl = await queue()
    const stack = await startStack({ databaseUrl: proxy.url, redisUrl })
    proxy.freeze(true)
    const frozen = await scrape(stack)
    proxy.accept(false)
    proxy.cut()
    for (const samples of [frozen, await scrape(stack)]) {
      expect(samples.get('gatewright_up{part="database"}')).toBe(0)
      expect(samples.get('gatewright_up{part="queue"}')).toBe(redisUrl === null ? 0 : 1)
      expect(samples.has('gatewright_oldest_waiting_run_seconds')).toBe(false)
      expect(samples.get('process_cpu_seconds_total')).toBeGreaterThan(0)
    }
    expect(await stack.put(example)).toMatchObject({ status: 503 })
    const refused = request('PUT', applyRoute, 503)
    await until('the refusal to be counted', async () => (await scrape(stack)).get(refused) === 1)
  })
}

describe("the queue on PostgreSQL's", () => claims(async () => null))

describe.runIf(needs('redis-server'))('the queue on Redis', () => {
  claims(freshRedis)

  test('a Redis that is away leaves its gauges out, and the scrape reports it', async () => {
    const { url } = await freshDatabase()
    const redis = await ownRedis()
    const stack = await startStack({ databaseUrl: url, redisUrl: redis.url })
    expect((await scrape(stack)).get('gatewright_up{part="queue"}')).toBe(1)
    process.kill(redis.pid, 'SIGSTOP')
    const frozen = await scrapeWith(stack, 'gatewright_up{part="queue"}', 0)
    process.kill(redis.pid, 'SIGCONT')
    await redis.kill()
    for (const samples of [frozen, await scrape(stack)]) {
      expect(samples.get('gatewright_up{part="queue"}')).toBe(0)
      expect(samples.get('gatewright_up{part="database"}')).toBe(1)
      expect(of(samples, 'gatewright_jobs')).toEqual({})
    }
    const answer = await stack.put(example)
    expect(answer).toMatchObject({ status: 503, json: { code: 'cancelled' } })
    expect((await scrapeWith(stack, ended('radius', 'cancelled', 'queue'), 1)).get(refusal('cancelled'))).toBe(1)
    await redis.start()
    await until('the queue to be back', async () => (await scrape(stack)).get('gatewright_up{part="queue"}') === 1)
  })
})
