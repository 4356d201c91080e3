import { describe, expect, onTestFinished, test } from 'vitest'
import { crowd, submission, type Target } from '../faults/clients.ts'
import { follow } from '../faults/follower.ts'
import { applyPath, runOf, send } from '../faults/requests.ts'
import { emptyDatabase, freshDatabase } from '../support/database.ts'
import { adminToken, freePort, needs, type Running, rows, run, secretKey, sql, until, wideEnv } from '../support/kit.ts'
import { type BouncerKind, bouncerKinds, bouncerPool, startBouncer } from '../support/pgbouncer.ts'

/** API and worker as processes, with a real PgBouncer in transaction mode between them and PostgreSQL. */

const slow = /"level":40.*"msg":"The pooler at DATABASE_URL keeps no prepared statements/

/** More than PgBouncer has connections, so that transactions wait for one. */
const clients = bouncerPool + 4

const kinds = bouncerKinds().map(
  (kind) => [`${kind.version}, ${kind.maxPreparedStatements} prepared statements`, kind] as const,
)

describe.runIf(needs('pgbouncer')).each(kinds)('PgBouncer %s', (_, kind) => {
  test('200 submissions are applied, lists, cancels and waits work, and a restart of each loses nothing', async () => {
    const there = await openPooled(kind)
    const { target, db, bouncer } = there
    const [api, worker] = [await there.startApi(), await there.startWorker()]
    for (const { output } of [api, worker]) {
      if (kind.maxPreparedStatements === 0) expect(output()).toMatch(slow)
      else expect(output()).not.toMatch(slow)
    }
    const following = await follow(target)

    const sent = await crowd(target, clients, 'pooled', (begun) => begun >= 200)
    expect(sent.filter(({ outcome }) => outcome !== 'applied')).toEqual([])
    await until('the end of each run', () => following.ended().size === 200)
    expect(await there.get('/core/applications/?page_size=1')).toMatchObject({ pagination: { count: 200 } })
    expect(await there.get('/core/applications/pooled-1/')).toMatchObject({ slug: 'pooled-1' })
    for (const list of ['/core/users/', '/core/groups/', '/core/audit/', '/blueprints/runs/'])
      expect(await there.get(list)).toMatchObject({ results: expect.any(Array) })
    const names = sql`SELECT count(*) AS count FROM pg_stat_activity
      WHERE datname = current_database() AND application_name IN ('gatewright-api', 'gatewright-worker')`
    expect((await rows<{ count: number }>(db, names))[0]?.count).toBeLessThanOrEqual(bouncerPool)

    // A stopped worker process takes nothing, so the run waits.
    worker.signal('SIGSTOP')
    const waiting = await send(target, 'PUT', applyPath, {
      headers: { prefer: 'respond-async' },
      body: submission('waits', 'cancelled before it began'),
    })
    expect(waiting).toMatchObject({ status: 202 })
    const cancelled = await send(target, 'POST', `/blueprints/runs/${runOf(waiting)}/cancel/`)
    expect(JSON.parse(cancelled.text)).toMatchObject({ state: 'cancelled' })
    worker.signal('SIGCONT')
    await until('the end of the cancelled run', () => following.ended().has(runOf(waiting)))
    await following.stop()

    await bouncer.stop()
    await until('readiness to fail', async () => (await fetch(`${target.url}/-/health/ready/`)).status === 503)
    await bouncer.start()
    await until('readiness to be back', async () => (await fetch(`${target.url}/-/health/ready/`)).ok)
    const again = await crowd(target, clients, 'again', (begun) => begun >= 20)
    expect(again.filter(({ outcome }) => outcome !== 'applied')).toEqual([])

    await Promise.all([api.stop(), worker.stop()])
    const others = [await there.startApi(), await there.startWorker()]
    const last = await crowd(target, clients, 'last', (begun) => begun >= 20)
    expect(last.filter(({ outcome }) => outcome !== 'applied')).toEqual([])
    expect(await db.application.count()).toBe(240)
    for (const each of others) expect(await each.stop()).toEqual({ code: 0, signal: null })
  })
})

describe.runIf(needs('pgbouncer')).each(['src/server.ts', 'workers/blueprint.ts'])('%s', (program) => {
  const refusal = async (env: Record<string, string>) => {
    const started = run(program, { env: { SECRET_KEY: secretKey, PORT: String(await freePort()), ...env } })
    expect(await started.exited).toEqual({ code: 1, signal: null })
    return started.output()
  }
  const [kind] = bouncerKinds()

  test.each([
    ['refuses', {}, /^A pooler before PostgreSQL refuses sessions \(.*unsupported startup parameter.*\): set DIRECT_/],
    [
      'drops',
      { ignore_startup_parameters: 'options' },
      /^A pooler before PostgreSQL drops the settings .*: set DIRECT_/,
    ],
  ])('says what to set when PgBouncer %s what belongs to a session', async (_, settings, sentence) => {
    const { service } = await freshDatabase()
    const { url } = await startBouncer(kind as BouncerKind, service.url, settings)
    expect(await refusal({ DATABASE_URL: url })).toMatch(sentence)
  })

  test('refuses two URLs of different databases', async () => {
    const { service } = await freshDatabase()
    const { url } = await startBouncer(kind as BouncerKind, await emptyDatabase())
    expect(await refusal({ DATABASE_URL: url, DIRECT_DATABASE_URL: service.url })).toBe(
      'DATABASE_URL and DIRECT_DATABASE_URL lead to different databases: both must be the same one.\n',
    )
  })
})

describe.runIf(needs('pgbouncer'))('npm run database', () => {
  test('says that MIGRATION_DATABASE_URL leads to PgBouncer: it takes no DIRECT_DATABASE_URL', async () => {
    const { service } = await freshDatabase()
    const [kind] = bouncerKinds()
    const { url } = await startBouncer(kind as BouncerKind, service.url)
    const started = run('src/cli/database.ts', {
      env: {
        MIGRATION_DATABASE_URL: Object.assign(new URL(url), { password: 'any' }).href,
        DATABASE_URL: Object.assign(new URL(url), { username: 'other', password: 'any' }).href,
        DIRECT_DATABASE_URL: service.url,
      },
    })
    expect(await started.exited).toEqual({ code: 1, signal: null })
    expect(started.output()).toMatch(
      /^A pooler before PostgreSQL refuses sessions \(.*\): set MIGRATION_DATABASE_URL to .* itself \(docs/,
    )
  })
})

async function openPooled(kind: BouncerKind) {
  const { db, service } = await freshDatabase({ isInstalled: true })
  const bouncer = await startBouncer(kind, service.url)
  const port = String(await freePort())
  const env = {
    ...{ ...wideEnv, DATABASE_URL: bouncer.url, DIRECT_DATABASE_URL: service.url, SECRET_KEY: secretKey },
    ...{ PORT: port, LOG_LEVEL: 'info', WORKER_CONCURRENCY: '8' },
  }
  const target: Target = { url: `http://127.0.0.1:${port}`, token: adminToken }
  const start = async (program: string, ready: RegExp): Promise<Running> => {
    const started = run(program, { env })
    onTestFinished(async () => void (await started.kill()))
    await started.line(ready)
    return started
  }
  return {
    target,
    db,
    bouncer,
    startApi: () => start('src/server.ts', /"msg":"serving"/),
    startWorker: () => start('workers/blueprint.ts', /"msg":"worker ready"/),
    get: async (path: string): Promise<unknown> => JSON.parse((await send(target, 'GET', path)).text),
  }
}
