import { Redis } from 'ioredis'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { transaction } from '../../src/db/client.ts'
import { runFormat } from '../../src/runs/format.ts'
import { openWhyNot } from '../../src/submissions/why-not.ts'
import { type Installation, installation } from '../support/installation.ts'
import { atEnd, dashboardOf, execute, lockedOut, needs, ownRedis, samplesOf, sql, until } from '../support/kit.ts'
import { claimsOf, endedJob, isThere, operatorOf, put, runOf, statesOf } from '../support/operations.ts'

/** Why a run is not applied: each incident, and each place that says it (docs/incidents.md). */

type Incident = {
  /** `reason` of the metric. */
  readonly code: string
  /** A part of the 503, and of all that its submitter may read. */
  readonly sentence: string
  /** A part of what operators read; absent: it is the sentence. */
  readonly cause?: string
  /** A part of the page of the run while it waits. */
  readonly meanwhile?: string
  /** The milliseconds in the queue, where they are known. */
  readonly queueMs?: number
  readonly there: Installation
}

const slug = 'not-applied'
const text = (html: string) =>
  html
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('&quot;', '"')
    .replaceAll(/\s+/g, ' ')

/** Submits in the incident, and looks at every place that says why. */
async function expectEverywhere({ there, code, sentence, cause = sentence, meanwhile, queueMs }: Incident) {
  const { get } = await operatorOf(there)
  const page = async (path: string) => text((await get(path)).body)
  const sending = put(there, slug)
  if (meanwhile !== undefined) {
    const { id } = await until('the run', () => there.db.run.findFirst({ where: { slug, finishedAt: null } }))
    const says = (what: string, read: () => Promise<string>, text: string) =>
      until(`${what} to say why it waits`, async () => (await read()).includes(text))
    await says('the page of the run', () => page(`/admin/runs/${id}/`), `Not applied yet: ${meanwhile}`)
    const inList = async () => {
      const { json } = await there.admin.get(`/api/v3/blueprints/runs/?slug=${slug}`)
      const [{ cause = '', summary = '' } = {}] = Object(json).results
      return `${cause} ${summary}`
    }
    await says('the list of runs', inList, meanwhile)
    await says('its summary', inList, `not applied yet: ${sentence}`)
    for (const path of ['/admin/runs/', '/admin/runs/?group=cause']) await says(path, () => page(path), meanwhile)
    const newest = async () => (await page('/admin/')).split('The last ten runs').at(-1) ?? ''
    await says('the last ten runs', newest, meanwhile)
  }
  const answer = await sending
  expect(answer).toMatchObject({ status: 503, json: { code: 'cancelled', detail: expect.stringContaining(sentence) } })
  expect(Object(answer.json).detail).toMatch(/^Not applied: .*[.?] Nothing was changed; try again shortly\.$/)
  expect(await isThere(there, slug)).toBe(false)
  const { id } = await runOf(there, slug)
  const { json } = await there.admin.get(`/api/v3/blueprints/runs/${id}/`)
  const line = expect.stringMatching(/^not applied: /)
  expect(json).toMatchObject({
    state: 'cancelled',
    reason: 'cancelled',
    cancelled_by: null,
    repaired: false,
    logs: [line],
  })
  expect(Object(json).logs[0]).toContain(sentence)
  expect(Object(json).cause).toContain(cause)
  // The end waits for the attempt, and an attempt is recorded when it has ended.
  const { failed_attempts: attempts, finished_at: finishedAt } = Object(json)
  for (const { at } of attempts) expect(Date.parse(at)).toBeLessThanOrEqual(Date.parse(finishedAt))
  const inQueue = async () =>
    Object((await there.admin.get(`/api/v3/blueprints/runs/${id}/`)).json as object).queue_ms ?? undefined
  // A worker may have it while it is cancelled.
  if (queueMs !== undefined) expect(await until('the time in the queue', inQueue)).toBeLessThan(queueMs)
  const list = await there.admin.get(`/api/v3/blueprints/runs/?slug=${slug}`)
  expect(list.json).toMatchObject({ results: [{ id, summary: expect.stringContaining(sentence) }] })
  for (const path of [
    `/admin/runs/${id}/`,
    '/admin/runs/?period=day',
    '/admin/runs/?period=day&group=cause',
    '/admin/runs/?period=day&outcome=attention',
  ])
    expect([path, await page(path)]).toEqual([path, expect.stringContaining(cause)])
  const [, attention = ''] = (await page('/admin/')).split('Needs attention')
  expect(attention).toContain(cause)
  expect(attention).toMatch(/1 still failing/)
  // It is not there: its page has its runs.
  const viewer = await there.make.user({ permissions: ['view_queue', 'view_application', 'view_run'] })
  expect(text((await dashboardOf(there).get(viewer, `/admin/applications/${slug}/`)).body)).toContain(cause)
  const series = `gatewright_runs_ended_total{mode="apply",kind="radius",outcome="cancelled",reason="${code}"}`
  const metrics = async () => samplesOf((await there.app.inject('/-/metrics/')).body).get(series)
  await until(`the metric to count ${code}`, async () => (await metrics()) === 1)
}

const shows = claimsOf(
  ['A pipeline got 503 `cancelled`'],
  [
    // Advice.
    'Send it again when the reason is gone.',
    // Each of the tests below.
    'It certainly was not applied.',
    'The answer says why, and so do the log of the run, the lists, and the pages.',
    '`reason` of `gatewright_runs_ended_total` has one word for it:',
    // test/submissions/backlog.test.ts
    'When no worker has taken any job for 10 s, and while the queue is paused on the dashboard, the answer comes at once, and no run is recorded.',
    // test/faults/database-full.test.ts, database-crashed.test.ts
    '`database` | the database went away, accepts no changes, or has another SECRET_KEY | Check PostgreSQL: is it there, read-only, or is its disk full?',
    // test/api/run-cancel.test.ts
    '`user` | a user cancelled it. The answer is 409 `cancelled_by_user` | Ask that user',
  ],
)

/** An installation whose workers are there, by their heartbeats, with so many jobs on four slots, and take nothing more. */
async function withWorkers(busy: number, heard = '1 minute') {
  const there = await installation({ workers: 'none', applyWaitMs: 8_000 })
  await execute(
    there.db,
    sql`INSERT INTO worker_formats (format, consumed_at) VALUES (${runFormat}, now() + interval '1 minute')`,
  )
  await execute(
    there.db,
    sql`INSERT INTO workers (id, host, process_id, version, format, slots, busy, seen_at)
      VALUES (gen_random_uuid(), 'host', 1, '0.3.0', ${runFormat}, 4, ${busy}, now() + ${heard}::interval)`,
  )
  return there
}

shows(
  [
    "`lock` | another session of the database holds a lock that it needs. The run's `cause` names the process | Let that session end, or end it: `SELECT pg_terminate_backend(<pid>)`",
  ],
  async () => {
    const there = await installation({ applyWaitMs: 6_000 })
    const other = new pg.Client({ connectionString: there.url, application_name: 'nightly report' })
    await other.connect()
    atEnd(() => other.end())
    await other.query('BEGIN; LOCK TABLE applications IN EXCLUSIVE MODE')
    await expectEverywhere({
      ...{ there, code: 'lock', queueMs: 2_500 },
      sentence: 'another session of the database holds a lock that it needs',
      cause: '(nightly report)',
      meanwhile: 'a lock is not given: process',
    })
  },
)

shows(
  [
    "`attempts` | workers tried it, and could not: PostgreSQL could not write, for example. The run's `cause` has the SQLSTATE | Read the log of PostgreSQL, and `failed_attempts` of the run",
  ],
  async () => {
    const there = await installation({ applyWaitMs: 5_000 })
    await lockedOut(there.db, '58030')
    await expectEverywhere({
      ...{ there, code: 'attempts', queueMs: 2_500 },
      sentence: 'workers tried it, and PostgreSQL could not write',
      cause: 'could not read a block (SQLSTATE 58030)',
    })
  },
)

shows(
  ['`late` | no worker took it in time, and all seems well | Send it again. More than a few: look at the workers'],
  async () => {
    const there = await withWorkers(1)
    await expectEverywhere({ there, code: 'late', sentence: 'no worker took it in time' })
  },
)

shows(
  ['`busy` | all slots of the workers are busy with other runs | Start [more workers](scaling.md#how-many)'],
  async () => {
    const there = await withWorkers(4)
    const sentence = 'all slots of the workers are busy with other runs'
    await expectEverywhere({ there, code: 'busy', sentence, meanwhile: sentence })
  },
)

shows(
  [
    '`turn` | it waits for sets of its submitter, or for one of the slots that sets may have | Wait, or send it with another account',
  ],
  async () => {
    const there = await installation({ applyWaitMs: 8_000 })
    const { pk } = await there.db.user.findFirstOrThrow({ where: { username: 'admin' } })
    await execute(
      there.db,
      sql`INSERT INTO runs (id, title, submitter_pk, request_id, blueprint, options, enqueued_at)
        VALUES (gen_random_uuid(), 'apply blueprint set', ${pk}, 'set', 'v1.x', '{"entries": 3000, "lane": 4}', now() + interval '1 hour')`,
    )
    const sentence = 'it waits for sets of its submitter'
    await expectEverywhere({ there, code: 'turn', sentence, meanwhile: sentence })
  },
)

shows(
  ['`workers` | no worker takes jobs, or none that is new enough | Start workers, and see why they ended'],
  async () => {
    const there = await installation({ workers: 'none', applyWaitMs: 6_000 })
    const sentence = 'no worker has ever taken a job: start one'
    await expectEverywhere({ there, code: 'workers', sentence, meanwhile: sentence })
    // Killed a moment ago: they are not known to be silent yet.
    const killed = await withWorkers(1, '0 seconds')
    await expectEverywhere({
      there: killed,
      code: 'workers',
      sentence: 'no worker took it in time: the last was heard',
    })
  },
)

shows(
  [
    '`paused` | the queue is paused, by whom, since when, and why | Ask that operator, or resume it at `/admin/resume/`',
  ],
  async () => {
    const there = await installation({ applyWaitMs: 6_000 })
    await there.queue.pause()
    const sentence = 'the queue is paused, by other means than the dashboard'
    await expectEverywhere({ there, code: 'paused', sentence, meanwhile: sentence })
  },
)

shows(['`stale` | it was queued for more than an hour | Send it again'], async () => {
  const there = await installation({ applyWaitMs: 10_000 })
  atEnd(there.hold())
  const sending = expectEverywhere({ there, code: 'stale', sentence: 'it was queued for more than an hour' })
  const where = { slug, state: 'queued' } as const
  await until('the run', () => there.db.run.findFirst({ where }))
  await execute(there.db, sql`UPDATE runs SET created_at = now() - interval '2 hours' WHERE slug = ${slug}`)
  await sending
})

describe.runIf(needs('redis-server'))('on Redis', () => {
  shows(
    [
      '`queue` | the queue does not answer, or takes no jobs: Redis is full, a replica, or cannot write | Check Redis, or PostgreSQL where the queue is there',
    ],
    async () => {
      const server = await ownRedis()
      const stopped = await installation({ queue: 'redis', redisUrl: server.url, applyWaitMs: 4_000 })
      atEnd(stopped.hold())
      const silent = expectEverywhere({
        there: stopped,
        code: 'queue',
        sentence: 'the queue does not answer: does its server run',
      })
      await stopped.queued(1)
      await server.stop()
      await silent
      await server.start()
      const small = await ownRedis()
      const full = await installation({ queue: 'redis', redisUrl: small.url, applyWaitMs: 4_000 })
      const redis = new Redis(small.url)
      atEnd(() => redis.disconnect())
      await redis.config('SET', 'maxmemory', '1')
      const sentence = 'the queue answers, but accepts no jobs: Redis is full (maxmemory)'
      await expectEverywhere({ there: full, code: 'queue', sentence })
    },
  )
})

test('a run that waits says why while another one reads it', async () => {
  const there = await installation({ workers: 'none' })
  await there.queue.pause()
  await there.admin.submit('radius', slug, { prefer: 'respond-async' })
  await transaction(there.db, async (tx) => {
    await execute(tx, sql`SELECT id FROM runs FOR KEY SHARE`)
    const { checks } = (await there.app.inject('/-/health/applies/')).json()
    const [{ id } = { id: '' }] = await there.db.run.findMany()
    const found = await openWhyNot(there.db, { applies: async () => checks }).runs([id])
    expect(found.get(id)?.sentence).toContain('the queue is paused')
  })
})

test('a part that is late beside a database that answers says so', async () => {
  const there = await installation({ workers: 'none' })
  await transaction(there.db, async (tx) => {
    await execute(tx, sql`LOCK TABLE worker_formats IN ACCESS EXCLUSIVE MODE`)
    const { checks } = (await there.app.inject('/-/health/applies/')).json()
    expect(checks.database).toMatchObject({ ok: true })
    expect(checks.versions).toMatchObject({
      ok: false,
      detail: 'Whether workers of an older version take jobs is not known: no answer came in time.',
    })
  })
})

shows(['A run that a crash of the database lost gets a 503 `cancelled`, too.'], async () => {
  const there = await installation({ applyWaitMs: 4_000 })
  const { id, answer } = await statesOf(there).vanished('lost')
  const detail = expect.stringContaining('the database crashed and lost it')
  expect(answer).toMatchObject({ status: 503, json: { code: 'cancelled', detail } })
  expect(await endedJob(there, id)).toMatchObject({ state: 'failed' })
  expect(await isThere(there, 'lost')).toBe(false)
})

shows(
  [
    'A PUT that got 503 `unavailable` was not applied either: the database was away, or more submissions were waiting than the API answers in time.',
  ],
  async () => {
    const service = await installation({ workers: 'none', applyWaitMs: 2_000 })
    await transaction(service.db, async (tx) => {
      await execute(tx, sql`LOCK TABLE providers IN ACCESS EXCLUSIVE MODE`)
      expect(await put(service, 'no-database')).toMatchObject({ status: 503, json: { code: 'unavailable' } })
    })
    const answers = await Promise.all(Array.from({ length: 140 }, (_, each) => put(service, `crowded-${each}`)))
    // Others were checked too late on a busy machine, and are `unavailable` for that.
    const crowded = answers.findIndex(({ text }) => text.includes('are waiting'))
    expect(answers[crowded]).toMatchObject({ status: 503, json: { code: 'unavailable' } })
    expect(await isThere(service, 'no-database')).toBe(false)
    expect(await isThere(service, `crowded-${crowded}`)).toBe(false)
  },
)
