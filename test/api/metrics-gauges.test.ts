import { X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { connect, poolUse, transaction } from '../../src/db/client.ts'
import { openRegistry } from '../../src/process-metrics.ts'
import { runFormat } from '../../src/runs/format.ts'
import { readExpiries } from '../../src/views/expiries.ts'
import { freshDatabase } from '../support/database.ts'
import { applyPath, dashboardOf, example, installation, named, rows, sql, until } from '../support/kit.ts'
import { type Samples, samplesOf } from '../support/metrics.ts'

/** Gauges of the API, each held against what is so. */

const there = await installation({ workers: 'none', limits: { rateLimitWaitingRuns: 1 } })

const scrape = async (of = there): Promise<Samples> => samplesOf((await of.as('').get('/-/metrics/')).text)
/** Gauges are read once a second at most. */
const scrapeWith = (series: string, value: number | undefined, of = there) =>
  until(`${series} to be ${value}`, async () => {
    const samples = await scrape(of)
    return samples.get(series) === value ? samples : null
  })

test('says which version runs, and which format of runs it knows', async () => {
  const info = `gatewright_build_info{program="api",version="${manifest.version}",run_format="${runFormat}"}`
  expect((await scrape()).get(info)).toBe(1)
})

test('a paused queue is shown, and nothing is said about consumption meanwhile', async () => {
  await rows(there.db, sql`INSERT INTO queue_heartbeats (queue, consumed_at) VALUES ('apply', now())`)
  const consumed = 'gatewright_last_consumption_timestamp_seconds'
  await until('the consumption to be shown', async () => (await scrape()).has(consumed))
  expect((await scrape()).get('gatewright_queue_paused')).toBe(0)
  await there.queue.pause()
  const paused = await scrapeWith('gatewright_queue_paused', 1)
  expect(paused.has(consumed)).toBe(false)
  expect(paused.get('gatewright_applies{part="worker"}')).toBe(0)
  expect(paused.get('gatewright_ready{part="database"}')).toBe(1)
  await there.queue.resume()
  expect((await scrapeWith('gatewright_queue_paused', 0)).has(consumed)).toBe(true)
})

test('the health of each part is a gauge', async () => {
  const { json } = await there.as('').get('/-/health/applies/')
  const { checks } = json as { checks: Record<string, { ok: boolean }> }
  const samples = await scrape()
  const shown = Object.keys(checks).map((part) => [part, samples.get(`gatewright_applies{part="${part}"}`)])
  expect(shown).toEqual(Object.entries(checks).map(([part, { ok }]) => [part, ok ? 1 : 0]))
  expect(shown.length).toBe(8)
})

test('runs at work are those that workers have, of those that wait', async () => {
  await rows(
    there.db,
    sql`INSERT INTO workers (id, host, process_id, version, format, slots, busy)
      VALUES (gen_random_uuid(), 'h', 1, '0.3.0', 6, 8, 3), (gen_random_uuid(), 'h', 2, '0.2.0', 5, 8, 1)`,
  )
  await rows(
    there.db,
    sql`INSERT INTO runs (id, title, kind, request_id, blueprint, logs)
      SELECT gen_random_uuid(), 'apply', 'radius', 'r', 'sealed', '{}' FROM generate_series(1, 9)`,
  )
  const samples = await scrapeWith('gatewright_running_runs', 4)
  expect(samples.get('gatewright_waiting_runs')).toBe(9)
  expect(samples.get('gatewright_worker_slots{state="free"}')).toBe(12)
  expect(samples.get('gatewright_workers{version="0.3.0",state="heard"}')).toBe(1)
  expect(samples.get('gatewright_workers{version="0.2.0",state="heard"}')).toBe(1)
  await rows(there.db, sql`DELETE FROM runs`)
  // A worker with a probe is busy, and no run is at work.
  await scrapeWith('gatewright_running_runs', 0)
  await rows(there.db, sql`DELETE FROM workers`)
})

test('connections in use, idle and not opened yet, and what waits for one', async () => {
  const { url } = await freshDatabase()
  const { db } = connect(url, { applicationName: 'gatewright-test', max: 2 })
  const registry = openRegistry({ program: 'worker', runFormat, pool: () => poolUse(db) })
  const read = async () => {
    const samples = samplesOf(await registry.metrics())
    const states = ['in_use', 'idle', 'unopened'].map((state) =>
      samples.get(`gatewright_pool_connections{state="${state}"}`),
    )
    return [...states, samples.get('gatewright_pool_waiting')]
  }
  expect(await read()).toEqual([0, 0, 2, 0])
  const { promise, resolve } = Promise.withResolvers<void>()
  const taken = Array.from({ length: 3 }, () => transaction(db, () => promise))
  await until('the third to wait', async () => (await read()).join() === '2,0,0,1')
  resolve()
  await Promise.allSettled(taken)
  await until('both to be idle', async () => (await read()).join() === '0,2,0,0')
  await db.$disconnect()
})

describe('logins and limits', () => {
  const me = '/api/v3/core/users/me/'

  test('failed logins are counted by where they were tried, and none is limited', async () => {
    for (let count = 0; count < 4; count += 1)
      expect(await there.as('gw_a_wrong').get(me)).toMatchObject({ status: 401 })
    await dashboardOf(there).logIn('gw_a_wrong')
    const samples = await scrape()
    expect(samples.get('gatewright_failed_logins_total{to="api"}')).toBe(4)
    expect(samples.get('gatewright_failed_logins_total{to="dashboard"}')).toBe(1)
    expect(samples.get('gatewright_rate_limited_total{limit="requests"}')).toBe(0)
  })

  test('a share that is taken is counted by its name', async () => {
    const body = await named('radius', 'limited')
    const runs = await Promise.all(Array.from({ length: 8 }, () => there.admin.put(`${applyPath}?dry_run=maybe`, body)))
    const over = runs.filter(({ status }) => status === 429).length
    expect(over).toBeGreaterThan(0)
    expect((await scrape()).get('gatewright_rate_limited_total{limit="waiting_runs"}')).toBe(over)
  })
})

test('the ledger shows its size', async () => {
  const samples = await scrape()
  for (const table of ['runs', 'audit_rows', 'run_attempts'])
    expect(samples.get(`gatewright_ledger_bytes{table="${table}"}`)).toBeGreaterThan(8_000)
})

test('the next token that authenticates, and the first certificate in use, show when they expire', async () => {
  const other = await installation()
  const user = await other.db.user.findFirstOrThrow()
  const day = 86_400_000
  const token = (identifier: string, expires: Date, intent: 'api' | 'app_password' = 'api') =>
    rows(
      other.db,
      sql`INSERT INTO tokens (pk, identifier, intent, user_pk, expires, expiring, key_hash)
        VALUES (gen_random_uuid(), ${identifier}, ${intent}::token_intent, ${user.pk}, ${expires}, true, sha256(${identifier}::bytea))`,
    )
  const soon = new Date(Date.now() + 3 * day)
  await token('gone', new Date(Date.now() - 1_000))
  await token('of another use', new Date(Date.now() + day), 'app_password')
  await token('soon', soon)
  await token('later', new Date(Date.now() + 9 * day))
  // No provider uses the certificate that is there.
  expect(await readExpiries(other.db)).toEqual({ token: soon, certificate: null })
  expect((await other.admin.put(applyPath, await example('saml'))).status).toBe(200)
  const { certificateData } = await other.db.certificateKeyPair.findFirstOrThrow({
    where: { referencedBy: { some: {} } },
  })
  const end = new X509Certificate(certificateData).validToDate
  expect(await readExpiries(other.db)).toEqual({ token: soon, certificate: end })
  const next = 'gatewright_next_expiry_timestamp_seconds'
  const samples = await scrapeWith(`${next}{of="token"}`, soon.getTime() / 1_000, other)
  expect(samples.get(`${next}{of="certificate"}`)).toBe(end.getTime() / 1_000)
})
