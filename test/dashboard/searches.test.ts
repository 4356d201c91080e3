import { expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { dashboardOf, execute, installation, sql } from '../support/kit.ts'

/** Searches of a long ledger: what is rare is found behind many newer rows, whether an index has it or not. */

const old = { run: uuid7(), slug: 'a-needle', request: 'request-of-old' }

const service = await installation()
const dashboard = dashboardOf(service)
const { token } = await service.make.user({ permissions: ['view_queue', 'view_run', 'view_audit'] })
const cookie = await dashboard.session(token)
const at = new Date(Date.now() - 20 * 86_400_000)
const options = { createOnly: false, expectedKeys: {}, owner: 'team-needle' }
const changes = [{ model: 'service_core.group', key: { name: 'g' }, action: 'update', fields: {} }]
await service.db.run.create({
  data: {
    ...{ id: old.run, slug: old.slug, title: `apply radius ${old.slug}`, kind: 'radius', requestId: old.request },
    ...{ state: 'done', applied: true, createdAt: at, finishedAt: at, options, changes },
  },
})
await service.db.auditRow.create({
  data: { at, actorName: 'needle', action: 'apply', changes: [], requestId: old.request, runId: old.run },
})
await service.db.auditRow.create({ data: { at, actorName: 'needle', action: 'pause_queue', changes: [] } })
const many = 5_500
await execute(
  service.db,
  sql`INSERT INTO runs (id, title, kind, request_id, state, applied, created_at, finished_at, options, changes)
      SELECT gen_random_uuid(), 'apply saml hay', 'saml', 'hay-' || i, 'done', true, now() - make_interval(secs => i), now(),
        '{"createOnly": false, "expectedKeys": {}, "owner": "team-hay"}', '[{"action": "unchanged"}]'
      FROM generate_series(1, ${many}) i`,
)
await execute(
  service.db,
  sql`INSERT INTO audit_rows (at, actor_name, action, changes) SELECT now(), 'hay', 'apply', '[]' FROM generate_series(1, ${many})`,
)

async function show(url: string) {
  const { statusCode, body } = await dashboard.send({ method: 'GET', url, headers: { cookie } })
  expect([url, statusCode]).toEqual([url, 200])
  return body
}
const hasOld = (body: string) => body.includes(`id="run-${old.run}"`) || body.includes('">needle</td>')

test.each([
  '/admin/runs/?period=all&text=needle',
  '/admin/runs/?period=month&kind=radius',
  '/admin/runs/?period=all&outcome=applied',
  '/admin/runs/?period=all&owner=team-needle',
  '/admin/runs/?period=all&owner=team-needle&text=needle',
  `/admin/runs/?period=all&request=${old.request}`,
  '/admin/audit/?period=month&who=NEEDLE',
  '/admin/audit/?period=all&action=pause_queue',
  `/admin/audit/?period=all&id=${old.run}`,
  `/admin/audit/?period=all&id=${old.request}`,
])('%s is found at once, behind many newer ones', async (url) => {
  expect(hasOld(await show(url))).toBe(true)
})

test('what is older than the period is not found', async () => {
  expect(await show('/admin/runs/?period=hour&text=needle')).toContain('0 runs of the last hour')
  expect(await show('/admin/audit/?who=needle')).not.toContain('">needle</td>')
})

test('what matches none of an owner is said to be none', async () => {
  expect(await show('/admin/runs/?period=all&owner=team-needle&text=no-such')).toContain('0 runs of all time')
})

test('of more than a thousand, pages go on from the last run of the page', async () => {
  const next = (body: string) => /href="([^"]+)">Older</.exec(body)?.[1]?.replaceAll('&amp;', '&') ?? ''
  const first = await show('/admin/runs/?period=all&text=hay')
  expect(first).toContain('1\u202f000+ runs of all time')
  const second = await show(next(first))
  const ids = [first, second].flatMap((body) => [...body.matchAll(/id="run-([\da-f-]{36})"/g)].map(([, id]) => id))
  const newest = await service.db.run.findMany({
    where: { title: 'apply saml hay' },
    orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
    take: 100,
  })
  expect(ids).toEqual(newest.map(({ id }) => id))
})
