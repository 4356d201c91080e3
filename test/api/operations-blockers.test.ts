import { describe, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { runFormat } from '../../src/runs/format.ts'
import { dashboardOf, execute, installation, logins, raw, sql, until } from '../support/kit.ts'
import { claimsOf } from '../support/operations.ts'

/** docs/incidents.md on what blocks a run, held against the running system. */

const there = await installation({ applyWaitMs: 60_000 })
const dashboard = dashboardOf(there)
const operator = await there.make.user({ superuser: true })

const shows = claimsOf(['A run is blocked by "another session, of another login"'])

describe('A run is blocked', () => {
  shows(
    [
      'The first page names what blocks a run: the process, its program, its state, since when its transaction is open, and the first words of its last statement.',
      'Of a session of another login, PostgreSQL shows these only to members of `pg_read_all_stats`: else the page names its process alone.',
      'Make the login of API and worker a member:',
      '`GRANT pg_read_all_stats TO gatewright_service`.',
      'It holds at once, without a restart.',
      'The login then reads the statements of all sessions of that server, and none of their rows.',
      '`npm start` gives this right to the login of its own PostgreSQL.',
    ],
    async () => {
      await there.admin.submit('radius', 'held')
      const cookie = await dashboard.session(operator.token)
      const shown = async (what: RegExp) => {
        const { statusCode, body } = await dashboard.send({ method: 'GET', url: '/admin/', headers: { cookie } })
        expect(statusCode).toBe(200)
        return what.test(body)
      }
      const release = Promise.withResolvers<void>()
      const service = raw(`"${logins.service.user}"`)
      // The login is that of a superuser, as of a person who came by psql.
      const locking = there.db.$transaction(
        async (tx) => {
          await tx.$executeRawUnsafe('SET LOCAL idle_in_transaction_session_timeout = 0')
          await tx.application.updateMany({ where: { slug: 'held' }, data: { metaDescription: 'held' } })
          await release.promise
        },
        { timeout: 100_000 },
      )
      const sent = there.admin.submit('radius', 'held', { app: { name: 'other' } })
      try {
        await until('the page to name the process alone', () =>
          shown(/blocked<\/span> by another session, of another login: process \d+/),
        )
        await execute(there.db, sql`GRANT pg_read_all_stats TO ${service}`)
        const whole =
          /blocked<\/span> by process \d+ \(gatewright-test\), idle in transaction, its transaction is open for [^;]+; last statement: <code>UPDATE [^<=$]*<\/code>/
        await until('the page to name what blocks it', () => shown(whole))
      } finally {
        // Other test files have the same login.
        await execute(there.db, sql`REVOKE pg_read_all_stats FROM ${service}`)
        release.resolve()
        await locking
        await sent
      }
    },
  )
})

test('between two attempts, a blocked run keeps its age and names its blocker', async () => {
  const idle = await installation({ workers: 'none' })
  const id = uuid7()
  await execute(
    idle.db,
    sql`INSERT INTO worker_formats (format, consumed_at) VALUES (${runFormat}, now() + interval '1 minute')`,
  )
  const cause = 'a lock was not given in time: process 4711 (psql), active for 5 s, holds it (SQLSTATE 55P03)'
  await execute(
    idle.db,
    sql`INSERT INTO runs (id, title, request_id, blueprint, created_at, started_at)
      VALUES (${id}::uuid, 'apply radius held', 'held', 'v1.x', now() - interval '2 h', now() - interval '2 h')`,
  )
  await execute(idle.db, sql`INSERT INTO run_attempts (run_id, attempt, cause) VALUES (${id}::uuid, 1, ${cause})`)
  const dashboard = dashboardOf(idle)
  const { token } = await idle.make.user({ permissions: ['view_queue', 'view_run'] })
  const { body } = await dashboard.send({
    ...{ method: 'GET', url: '/admin/', headers: { cookie: await dashboard.session(token) } },
  })
  const row = body.match(new RegExp(`<tr id="work-${id}">.*`))?.[0]
  expect(row).toContain('>2 h<')
  expect(row).toContain('>none<')
  expect(row).toMatch(/process 4711 \(psql\), active for 5 s, holds it/)
  const [banner = ''] = body.match(/<div class="summary.*/) ?? []
  expect(banner).toMatch(/apply radius held is blocked: .*process 4711/)
})
