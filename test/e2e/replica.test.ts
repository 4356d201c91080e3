import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { connect, transaction } from '../../src/db/client.ts'
import { bePatient, patience, quickMs } from '../../src/db/in-time.ts'
import { openReplica, throughReplica } from '../../src/db/replica.ts'
import { send } from '../faults/requests.ts'
import { atEnd } from '../support/at-end.ts'
import { freshDatabase } from '../support/database.ts'
import { adminToken, secretKey } from '../support/engine.ts'
import { freePort } from '../support/free-port.ts'
import { wideEnv } from '../support/limits.ts'
import { type PostgresServer, startPostgres } from '../support/postgres.ts'
import { run } from '../support/processes.ts'
import { startReplica } from '../support/replica.ts'
import { within } from '../support/template.ts'
import { until } from '../support/until.ts'

/** Lists from a real streaming replica, by an API as a process. */

/** Longer than a busy machine needs for the requests of a test. */
const maxLagMs = 20_000

const log = { info: () => {}, warn: () => {} }

let primary: PostgresServer
let replica: PostgresServer
let url: string
beforeAll(async () => {
  primary = await startPostgres({ durable: false, settings: { wal_keep_size: '256MB' } })
  atEnd(() => primary.remove())
  await within(primary.url(), (client) => client.query('CREATE DATABASE gatewright'))
  replica = await startReplica(primary)
  atEnd(() => replica.remove())
  await replica.stop()
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const api = run('src/server.ts', {
    env: {
      ...{ ...wideEnv, SECRET_KEY: secretKey, BOOTSTRAP_TOKEN: adminToken, PORT: String(port), LOG_LEVEL: 'info' },
      ...{ DATABASE_URL: primary.url('gatewright'), DATABASE_READ_URL: replica.url('gatewright') },
      DATABASE_READ_LAG_MS: String(maxLagMs),
    },
  })
  await api.line(/"msg":"serving"/)
  atEnd(async () => void (await api.stop()))
})

const ask = async (method: string, path: string, { body, now = false }: { body?: unknown; now?: boolean } = {}) => {
  const headers: Record<string, string> = now ? { 'cache-control': 'no-cache' } : {}
  const { status, text } = await send({ url, token: adminToken }, method, path, { headers, body })
  return { status, json: JSON.parse(text) as { pk: string; results: { name: string; action: string }[] } }
}

/** The names of all groups that begin so, as the list has them. */
const groups = async (name: string, now = false) => {
  const { status, json } = await ask('GET', `/core/groups/?search=${name}`, { now })
  expect(status).toBe(200)
  return json.results.map((group) => group.name)
}
const makeGroup = async (name: string) => {
  const made = await ask('POST', '/core/groups/', { body: { name, is_superuser: false, attributes: {} } })
  expect(made.status).toBe(201)
  return made.json.pk
}

/** What readiness says of the database, which is healthy all the time. No worker runs, which makes the whole a 503. */
const detail = async () => {
  const { checks } = (await (await fetch(`${url}/-/health/ready/`)).json()) as Ready
  expect(checks.database.ok).toBe(true)
  return checks.database.detail
}
type Ready = { checks: { database: { ok: boolean; detail: string } } }

const metric = async (name: string) => {
  const text = await (await fetch(`${url}/-/metrics/`)).text()
  const [, value] = new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (\\S+)$`, 'm').exec(text) ?? []
  return value === undefined ? undefined : Number(value)
}
const fallbacks = async (why: string) => Number(await metric(`gatewright_replica_fallbacks_total{why="${why}"}`))
const replayed = (text: string) => within(replica.url(), (client) => client.query(`SELECT ${text}`))

/** All processes of the replica. */
const processes = (): Promise<number[]> =>
  within(replica.url(), async (client) => {
    const text = 'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()'
    const { rows } = await client.query<{ pid: number }>(text)
    return [replica.pid, ...rows.map(({ pid }) => pid)]
  })

const followed = async () => {
  await until(async () => (await detail()) === 'PostgreSQL answers.', { what: 'the replica to be in use' })
}

test('while the replica is away, lists come from the primary, and readiness says so', async () => {
  await makeGroup('first')
  const before = await fallbacks('away')
  expect(await groups('first')).toEqual(['first'])
  expect(await fallbacks('away')).toBe(before + 1)
  expect(await metric('gatewright_replica_lag_seconds')).toBeUndefined()
  expect(await detail()).toBe(
    'PostgreSQL answers. Lists read from the primary: the replica of DATABASE_READ_URL does not answer.',
  )
})

describe('a replica that follows', () => {
  beforeAll(async () => {
    await replica.start()
    await followed()
  })

  test('answers lists, and what is newer is there for who asks for it, and in the ledger', async () => {
    await until(async () => (await metric('gatewright_replica_lag_seconds')) === 0, { what: 'it to have caught up' })
    await replayed('pg_wal_replay_pause()')
    const newest = await makeGroup('newest')
    expect(await groups('newest')).toEqual([])
    expect(await groups('newest', true)).toEqual(['newest'])
    const { json } = await ask('GET', '/core/audit/?page_size=1')
    expect(json.results).toMatchObject([{ action: 'create', changes: [{ model: 'service_core.group' }] }])
    expect(await ask('GET', '/core/users/?groups_by_name=newest')).toMatchObject({ status: 200 })
    expect(await ask('GET', `/core/groups/${newest}/members/`)).toMatchObject({ status: 200, json: { results: [] } })
    expect(await fallbacks('failed')).toBe(2)
    expect(await fallbacks('lagging')).toBe(0)
  })

  test('is not used when it is too far behind, and is again when it has caught up', async () => {
    await until(async () => (await groups('newest')).length === 1, { what: 'a list to fall back', everyMs: 200 })
    expect(await fallbacks('lagging')).toBeGreaterThan(0)
    expect(await metric('gatewright_replica_lag_seconds')).toBeGreaterThan(maxLagMs / 1_000)
    expect(await detail()).toMatch(/^PostgreSQL answers\. Lists read from the primary: .* is \S+ s behind\.$/)
    await replayed('pg_wal_replay_resume()')
    await followed()
    expect(await groups('newest')).toEqual(['newest'])
  })

  test('is used while the primary says nothing of its lag, until it may be too far behind', async () => {
    const usual = patience()
    bePatient(quickMs)
    onTestFinished(() => bePatient(usual))
    // A pool of one connection, which is taken.
    const { db } = connect(primary.url('gatewright'), { applicationName: 'gatewright-test', max: 1 })
    const opened = openReplica(db, replica.url('gatewright'), { maxLagMs: 5_000, max: 1, pooler: null, log })
    const isFrom = () => throughReplica(db, async (from) => (from === db ? 'primary' : 'replica'))
    await until(async () => (await isFrom()) === 'replica', { what: 'the replica to be measured' })
    const { away, lagging } = { ...opened.fallenBack }
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const taking = transaction(db, () => {
      begun.resolve()
      return released.promise
    })
    await begun.promise
    await delay(1_100)
    expect(await isFrom()).toBe('replica')
    expect((await opened.state()).lagS).toBeGreaterThan(1)
    await until(async () => (await isFrom()) === 'primary', { what: 'the replica to be left' })
    expect(opened.fallenBack).toMatchObject({ away, lagging: lagging + 1 })
    released.resolve()
    await taking
    await until(async () => (await isFrom()) === 'replica', { what: 'the replica to be used again' })
    await opened.close()
    await db.$disconnect()
  })

  test('that freezes delays lists for a short time, and no probe', async () => {
    const count = async () => (await fallbacks('away')) + (await fallbacks('failed'))
    const [before, silent] = [await count(), await fallbacks('away')]
    // The lists begin while the measurement of this one is used.
    expect(await groups('first')).toEqual(['first'])
    const frozen = await processes()
    for (const pid of frozen) process.kill(pid, 'SIGSTOP')
    let isAnswered = false
    try {
      const probing = (async () => {
        while (!isAnswered) await detail()
      })()
      const lists = Promise.all(Array.from({ length: 8 }, () => groups('first'))).finally(() => {
        isAnswered = true
      })
      const [answers] = await Promise.all([lists, probing])
      expect(answers).toEqual(Array.from({ length: 8 }, () => ['first']))
      expect(await count()).toBe(before + 8)
      // A list that had waited for the time-out of its connection would count as failed.
      expect(await fallbacks('away')).toBeGreaterThan(silent)
      await until(async () => (await detail()).includes('does not answer'), { what: 'readiness to say so' })
    } finally {
      for (const pid of frozen) process.kill(pid, 'SIGCONT')
    }
    await followed()
    expect(await groups('first')).toEqual(['first'])
    expect(await count()).toBe(before + 8)
  })

  test('that dies is replaced by the primary at once', async () => {
    expect(await groups('first')).toEqual(['first'])
    await replica.stop('immediate')
    expect(await groups('first')).toEqual(['first'])
    await until(async () => (await detail()).includes('does not answer'), { what: 'readiness to say so' })
  })
})

test('a server that is no replica of the database is not read from, and the login of the service finds that out', async () => {
  const { db, url } = (await freshDatabase()).service
  const opened = openReplica(db, url, { maxLagMs, max: 1, pooler: null, log })
  const why = async () => (await opened.state()).why
  expect(await until(async () => (await why()) === 'foreign', { what: 'the server to be recognised' })).toBe(true)
  await opened.close()
})

test('a server that refuses the login is not read from, and the log has the cause once, without the password', async () => {
  const { db, url } = (await freshDatabase()).service
  const refused = Object.assign(new URL(url), { username: 'unknown', password: 'not-in-logs' })
  const lines: unknown[][] = []
  const log = { info: () => {}, warn: (...line: unknown[]) => void lines.push(line) }
  const opened = openReplica(db, refused.href, { maxLagMs, max: 1, pooler: null, log })
  await until(async () => (await opened.state()).why === 'refused', { what: 'the refusal' })
  // Measured again.
  await delay(1_100)
  await opened.state()
  await opened.close()
  expect(lines).toEqual([[{ cause: expect.stringContaining('unknown') }, expect.stringContaining('refuses the login')]])
  expect(JSON.stringify(lines)).not.toContain('not-in-logs')
})
