import { beforeAll, expect, test } from 'vitest'
import { uuid7 } from '../../src/ids.ts'
import { mostLooked } from '../../src/lists/run-search.ts'
import { type Dashboard, dashboardOf } from '../support/dashboard.ts'
import { type Installation, installation } from '../support/installation.ts'
import { run, sql } from '../support/sql.ts'

/** Searches of a ledger that is too long to be looked through at once: what an index has, and what none has. */

let service: Installation
let dashboard: Dashboard
let cookie: string
const old = { run: uuid7(), slug: 'a-needle', request: 'request-of-old' }

beforeAll(async () => {
  service = await installation()
  dashboard = dashboardOf(service)
  const { token } = await service.make.user({ permissions: ['view_queue', 'view_run', 'view_audit'] })
  cookie = await dashboard.session(token)
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
  const many = mostLooked + 500
  await run(
    service.db,
    sql`INSERT INTO runs (id, title, kind, request_id, state, applied, created_at, finished_at, options, changes)
      SELECT gen_random_uuid(), 'apply saml hay', 'saml', 'hay-' || i, 'done', true, now() - make_interval(secs => i), now(),
        '{"createOnly": false, "expectedKeys": {}, "owner": "team-hay"}', '[{"action": "unchanged"}]'
      FROM generate_series(1, ${many}) i`,
  )
  await run(
    service.db,
    sql`INSERT INTO audit_rows (at, actor_name, action, changes) SELECT now(), 'hay', 'apply', '[]' FROM generate_series(1, ${many})`,
  )
})

async function show(url: string) {
  const { statusCode, body } = await dashboard.send({ method: 'GET', url, headers: { cookie } })
  expect([url, statusCode]).toEqual([url, 200])
  return body
}
const hasOld = (body: string) => body.includes(`id="run-${old.run}"`) || body.includes('<td>needle</td>')
const further = (body: string) => /href="([^"]+)">Look further back</.exec(body)?.[1]?.replaceAll('&amp;', '&')

test.each([
  '/admin/runs/?period=all&text=needle',
  '/admin/runs/?period=month&kind=radius',
  '/admin/runs/?period=all&outcome=applied',
  '/admin/runs/?period=all&owner=team-needle&text=no-such',
  '/admin/audit/?period=month&who=NEEDLE',
])('%s says how far it looked, and goes on from there', async (url) => {
  const first = await show(url)
  const isOfOwner = url.includes('owner')
  expect([hasOld(first), first.includes('may match too')]).toEqual([false, !isOfOwner])
  const next = further(first)
  if (isOfOwner) expect(next).toBeUndefined()
  else {
    const second = await show(next ?? '')
    expect([hasOld(second), further(second)]).toEqual([true, undefined])
  }
})

test.each([
  '/admin/runs/?period=all&owner=team-needle',
  '/admin/runs/?period=all&owner=team-needle&text=needle',
  `/admin/runs/?period=all&request=${old.request}`,
  '/admin/audit/?period=all&action=pause_queue',
  `/admin/audit/?period=all&id=${old.run}`,
  `/admin/audit/?period=all&id=${old.request}`,
])('%s is found at once, behind many newer ones', async (url) => {
  const body = await show(url)
  expect([hasOld(body), further(body)]).toEqual([true, undefined])
})

test('what was not found yet is not said to be none', async () => {
  expect(await show('/admin/runs/?period=all&text=needle')).toContain('<h2>No runs so far of all time</h2>')
})

test('what is looked for in a shorter period than was looked through is not there', async () => {
  const runs = await show('/admin/runs/?period=hour&text=needle')
  expect([runs.includes('0 runs of the last hour'), further(runs)]).toEqual([true, undefined])
  expect(await show('/admin/runs/?period=all&text=hay')).toContain('1\u202f000+ runs of all time')
  const audit = await show('/admin/audit/?who=needle')
  expect(audit).not.toContain('<td>needle</td>')
})

test('groups by cause say how far they looked, too', async () => {
  expect(await show('/admin/runs/?period=all&kind=radius&group=cause')).toContain('may match too')
  expect(await show('/admin/runs/?period=all&owner=team-needle&group=cause')).not.toContain('may match too')
})
