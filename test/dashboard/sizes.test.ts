import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { type Dashboard, dashboardOf } from '../support/dashboard.ts'
import { type Installation, installation } from '../support/installation.ts'
import { run, sql } from '../support/sql.ts'

/** How long the pages of lists are, when all that they show is there, and long. */

let service: Installation
let dashboard: Dashboard
let cookie: string
const longName = `user-${'n'.repeat(120)}`
const words = (length: number) => 'could not <write> "it" & so on, '.repeat(20).slice(0, length)

beforeAll(async () => {
  service = await installation()
  dashboard = dashboardOf(service)
  const { token, pk } = await service.make.user({ superuser: true })
  await service.db.user.update({ where: { pk }, data: { username: longName } })
  cookie = await dashboard.session(token)
  const causes = Array.from({ length: 60 }, (_, each) => `${each} ${words(290)}`)
  await service.db.run.createMany({
    data: causes.map((cause, each) => ({
      ...{
        id: uuid7(),
        state: 'failed' as const,
        applied: false,
        reason: 'server_error',
        title: words(200),
        kind: 'radius',
      },
      ...{ requestId: uuid7(), submitterPk: pk, options: { owner: 'o'.repeat(100) }, cause, logs: [words(300)] },
      ...{ createdAt: new Date(Date.now() - each * 1_000), startedAt: new Date(), finishedAt: new Date() },
    })),
  })
  await run(
    service.db,
    sql`INSERT INTO run_sums (step_s, at, series, bucket, runs)
      SELECT s, date_bin(make_interval(secs => s), now(), 'epoch') - make_interval(secs => s * i), o, 0, 100000 + i
      FROM unnest(ARRAY[60, 3600, 86400]) s, generate_series(1, 1500) i,
        unnest(ARRAY['applied', 'unchanged', 'refused', 'failed', 'cancelled']) o`,
  )
  await run(
    service.db,
    sql`INSERT INTO workers (id, host, process_id, version, format, slots)
      SELECT gen_random_uuid(), repeat('h', 60) || i, i, '0.3.0', 1, 10 FROM generate_series(1, 30) i`,
  )
  await run(
    service.db,
    sql`INSERT INTO tokens (pk, identifier, user_pk, expires, key_hash)
      SELECT gen_random_uuid(), repeat('t', 90) || i, ${pk}, now() + interval '1 day', decode(md5(i::text), 'hex')
      FROM generate_series(1, 60) i`,
  )
  await run(
    service.db,
    sql`INSERT INTO applications (pk, name, slug, group_name, owner, created_by)
      SELECT gen_random_uuid(), ${words(150)} || i, left(repeat('s', 45) || i, 50), '', repeat('o', 100), ${pk}
      FROM generate_series(1, 60) i`,
  )
  const model = 'service_providers_radius.radiusprovider'
  await run(
    service.db,
    sql`WITH written AS (INSERT INTO audit_rows (actor_name, action, changes) VALUES ('seed', 'apply', '[]') RETURNING pk)
      INSERT INTO run_objects (audit_pk, position, model, key, name, action, digest)
      SELECT pk, i, ${model}, i::text, ${words(200)} || i, 'create', 'digest' FROM written, generate_series(1, 60) i`,
  )
  await run(
    service.db,
    sql`INSERT INTO outside_changes (model, key, name, is_deleted) SELECT ${model}, i::text, 'x', true FROM generate_series(1, 60) i`,
  )
})

test.each([
  ['script', /<script src="([^"]+)"/, 12_000],
  ['style', /<link rel="stylesheet" href="([^"]+)"/, 8_000],
] as const)('the %s of the pages is short, compressed by gzip', async (_, tag, most) => {
  const get = (url: string) => dashboard.send({ method: 'GET', url, headers: { cookie } })
  const all = [...(await get('/admin/')).body.matchAll(new RegExp(tag, 'g'))].map(([, url = '']) => url)
  expect(all).toHaveLength(1)
  const { statusCode, body } = await get(all[0] ?? '')
  expect([statusCode, body.length > 1_000]).toEqual([200, true])
  expect(gzipSync(body).length).toBeLessThanOrEqual(most)
})

test.each([
  '/admin/',
  '/admin/?period=day',
  '/admin/?period=week',
  '/admin/?period=month',
  '/admin/?period=year',
  '/admin/runs/',
  '/admin/runs/?period=all&group=cause',
  '/admin/applications/',
  '/admin/applications/?outside=yes',
  '/admin/workers/',
])('%s is at most 100 KB long', async (url) => {
  const { statusCode, body } = await dashboard.send({ method: 'GET', url, headers: { cookie } })
  expect([url, statusCode, body.includes('could not be')]).toEqual([url, 200, false])
  expect(Buffer.byteLength(body)).toBeGreaterThan(10_000)
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(100_000)
})
