import { gzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import type { Prisma } from '../../src/db/generated/client.ts'
import { uuid7 } from '../../src/ids.ts'
import { sealedColumn } from '../../src/runs/ledger.ts'
import { type Dashboard, dashboardOf, execute, type Installation, installation, sql } from '../support/kit.ts'

/** Pages when all that they show is there, as long as it may be, and of characters that take most bytes. */

let service: Installation
let dashboard: Dashboard
let cookie: string
let pk: number
const ids = { applied: uuid7(), before: uuid7(), failed: uuid7(), plan: uuid7() }

/** A quote takes six bytes of a page. */
const hostile = (length: number) => '"<'.repeat(length).slice(0, length)
const longName = hostile(150)
const claims = ['issuer', 'rule', 'subject', 'repository', 'ref', 'commit', 'job', 'actor']
const pipeline = {
  ...Object.fromEntries(claims.map((each) => [each, hostile(300)])),
  job_url: `https://ci.example/${hostile(1_980)}`,
}

/** A run that has ended, past the worker. */
const ended = (data: Partial<Prisma.RunUncheckedCreateInput>): Prisma.RunUncheckedCreateInput => ({
  ...{ id: uuid7(), state: 'done', applied: true, title: hostile(200), kind: 'radius', slug: 'hostile' },
  ...{ requestId: hostile(200), submitterPk: pk, logs: Array.from({ length: 60 }, () => hostile(400)) },
  ...{ options: { createOnly: false, expectedKeys: {}, owner: hostile(100), message: hostile(300), pipeline } },
  ...{ startedAt: new Date(), finishedAt: new Date(), ...data },
})
const failed = (cause: string, data: Partial<Prisma.RunUncheckedCreateInput> = {}) =>
  ended({ state: 'failed', applied: false, reason: 'server_error', cause, ...data })

const field = { from: hostile(300), to: hostile(299) }
const fieldsOf = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, each) => [`${each}${hostile(50)}`, field]))
const changes = Array.from({ length: 150 }, (_, each) => ({
  ...{
    model: 'service_core.group',
    key: { name: `${each} ${hostile(200)}` },
    fields: fieldsOf(each % 2 === 0 ? 40 : 1),
  },
  action: ['delete', 'update', 'create', 'unchanged'][each % 4] ?? '',
}))
const blueprintOf = (id: string, letter: string) => {
  const entries = Array.from(
    { length: 100 },
    (_, each) => `  - model: service_core.group
    identifiers: {name: "${each}"}
    attrs: {attributes: {note: "${letter.repeat(each === 99 ? 100_000 : 3_000)}"}}
`,
  )
  return service.engine.keyring.seal(`version: 1\nentries:\n${entries.join('')}`, sealedColumn(id, 'blueprint'))
}

beforeAll(async () => {
  service = await installation()
  const { db } = service
  dashboard = dashboardOf(service)
  const made = await service.make.user({ superuser: true })
  pk = made.pk
  await db.user.update({ where: { pk }, data: { username: longName } })
  cookie = await dashboard.session(made.token)
  const causes = Array.from({ length: 500 }, (_, each) => `${each} ${hostile(290)}`)
  await db.run.createMany({
    data: causes.map((cause, each) => failed(cause, { createdAt: new Date(Date.now() - each * 1_000 - 10_000) })),
  })
  await db.run.createMany({
    data: [
      ended({ id: ids.before, blueprint: blueprintOf(ids.before, '>'), createdAt: new Date(Date.now() - 9_000) }),
      ended({
        id: ids.applied,
        blueprint: blueprintOf(ids.applied, '<'),
        changes,
        createdAt: new Date(Date.now() - 8_000),
      }),
      failed(hostile(300), { id: ids.failed, changes, createdAt: new Date(Date.now() - 7_000) }),
      ...Array.from({ length: 12 }, () => ended({ changes })),
      ended({
        ...{ id: ids.plan, mode: 'plan', applied: false, planTag: 'tag', changes },
        options: { createOnly: false, expectedKeys: {}, former: ids.applied },
      }),
    ],
  })
  await db.runAttempt.createMany({
    data: Array.from({ length: 30 }, (_, attempt) => ({ runId: ids.failed, attempt, cause: hostile(300) })),
  })
  await db.refusal.createMany({
    data: Array.from({ length: 600 }, (_, each) => ({
      ...{ at: new Date(), route: '/x', code: `invalid_${each % 40}`, status: 400, sentence: hostile(300) },
      ...{ username: `${each % 40}${hostile(150)}`, title: hostile(200), requestId: hostile(200) },
    })),
  })
  const audited = Array.from({ length: 20 }, () => ({
    ...{ model: 'service_core.group', key: hostile(300), action: 'update' },
    fields: Array.from({ length: 20 }, () => hostile(60)),
  }))
  await db.auditRow.createMany({
    data: Array.from({ length: 120 }, (_, each) => ({
      ...{ actorPk: pk, actorName: longName, realName: longName, action: 'update', requestId: hostile(200) },
      changes:
        each % 2 === 0
          ? audited
          : [{ model: 'queue', key: 'x', action: 'update', fields: ['paused'], value: true, reason: hostile(200) }],
    })),
  })
  await execute(
    db,
    sql`WITH made AS (
        INSERT INTO applications (pk, name, slug, group_name, owner, created_by)
        VALUES (gen_random_uuid(), ${hostile(200)}, 'hostile', ${hostile(200)}, ${hostile(100)}, ${pk}) RETURNING pk
      )
      INSERT INTO audit_rows (actor_pk, actor_name, real_name, action, changes, objects)
      SELECT ${pk}, ${longName}, ${longName}, 'apply', jsonb_build_array(jsonb_build_object('model', 'service_core.application',
          'key', pk, 'action', 'update', 'fields', '[]'::jsonb, 'object', jsonb_build_object('name', 'hostile',
            'was', ${hostile(200)}::text, 'owner', ${hostile(100)}::text, 'fields', ${JSON.stringify(fieldsOf(60))}::jsonb))),
        ARRAY['service_core.application ' || pk, 'service_core.application=hostile'] FROM made, generate_series(1, 60)`,
  )
  // Each bar has each outcome.
  await execute(
    db,
    sql`INSERT INTO runs (id, title, request_id, state, applied, changes, created_at, started_at, finished_at)
      SELECT gen_random_uuid(), 'apply', 'r', state::run_state, applied, changes::jsonb, at, at + interval '9 ms', at + interval '20 ms'
      FROM generate_series(10, 1440) i, LATERAL (SELECT now() - make_interval(mins => i) AS at) t,
        (VALUES ('done', true, NULL), ('done', true, '[]'), ('done', false, NULL), ('failed', false, NULL),
          ('cancelled', false, NULL)) o(state, applied, changes)`,
  )
  await execute(
    db,
    sql`INSERT INTO workers (id, host, process_id, version, format, slots)
      SELECT gen_random_uuid(), ${hostile(63)} || i, i, '0.3.0', 1, 10 FROM generate_series(1, 200) i`,
  )
  await execute(
    db,
    sql`INSERT INTO servers (id, host, process_id, version, format, slots)
      SELECT gen_random_uuid(), ${hostile(63)} || i, i, '0.3.0', 1, 10 FROM generate_series(1, 200) i`,
  )
  await execute(
    db,
    sql`INSERT INTO tokens (pk, identifier, user_pk, expires, key_hash)
      SELECT gen_random_uuid(), ${hostile(200)} || i, ${pk}, now() + interval '1 day', decode(md5(i::text), 'hex')
      FROM generate_series(1, 60) i`,
  )
  await execute(
    db,
    sql`INSERT INTO applications (pk, name, slug, group_name, owner, created_by)
      SELECT gen_random_uuid(), ${hostile(200)} || i, left(repeat('s', 45) || i, 50), '', ${hostile(100)}, ${pk}
      FROM generate_series(1, 60) i`,
  )
  const rules = Array.from({ length: 60 }, (_, each) => ({
    ...{ name: `${each}${hostile(90)}`, user: longName, owners: [hostile(100)], stacks: [hostile(100)] },
    claims: Object.fromEntries(Array.from({ length: 20 }, (_, claim) => [`${claim}${hostile(90)}`, hostile(500)])),
  }))
  const claim = hostile(300)
  const pipeline = {
    ...{ issuer: longName, rule: longName, subject: claim, repository: claim, ref: claim, commit: claim, job: claim },
    ...{ job_url: claim, actor: claim },
  }
  await execute(
    db,
    sql`WITH made AS (
        INSERT INTO trusted_issuers (pk, name, issuer, audience, algorithms, clock_skew, rules)
        SELECT gen_random_uuid(), i || ${hostile(200)}, i || ${hostile(200)}, ${hostile(200)}, ARRAY['RS256'], 0,
          ${JSON.stringify(rules)}::jsonb FROM generate_series(1, 2) i RETURNING pk, trust_of(trusted_issuers) AS trust
      )
      INSERT INTO exchanged_tokens (pk, key_hash, user_pk, issuer_pk, rule, pipeline, identity, trust, expires)
      SELECT gen_random_uuid(), decode(md5(pk::text || i), 'hex'), ${pk}, pk, ${JSON.stringify(rules[0])}::jsonb,
        ${JSON.stringify(pipeline)}::jsonb, 'x', trust, now() + interval '1 hour' FROM made, generate_series(1, 300) i`,
  )
  const model = 'service_providers_radius.radiusprovider'
  await execute(
    db,
    sql`INSERT INTO audit_rows (actor_name, action, changes, objects)
      SELECT 'seed', 'apply', jsonb_agg(jsonb_build_object('model', ${model}::text, 'key', i, 'action', 'create', 'fields', '[]'::jsonb,
          'object', jsonb_build_object('name', ${hostile(200)} || i))), array_agg(${model} || ' ' || i)
      FROM generate_series(1, 60) i`,
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
  '/admin/runs/',
  '/admin/runs/?period=all&group=cause',
  '/admin/applications/',
  '/admin/applications/hostile/',
  '/admin/workers/',
  '/admin/tokens/',
  '/admin/refusals/',
  '/admin/audit/',
  ...Object.values(ids).map((id) => `/admin/runs/${id}/`),
  `/admin/runs/${ids.applied}/?start=30`,
  `/admin/runs/${ids.applied}/document/`,
  `/admin/runs/${ids.applied}/document/?page=2`,
  `/admin/runs/${ids.applied}/roll-back/?plan=${ids.plan}`,
])('%s is shown, and its tables and texts have an end', async (url) => {
  const { statusCode, body } = await dashboard.send({ method: 'GET', url, headers: { cookie } })
  const unread = body.split(/[<>]/).find((text) => /could not be|takes too long|not in time/.test(text))
  expect([url, statusCode, unread]).toEqual([url, 200, undefined])
  expect(Buffer.byteLength(body)).toBeGreaterThan(10_000)
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(10_000_000)
})

/** All rows of a list, page by page. */
async function walk(first: string, row: RegExp): Promise<string[]> {
  const seen: string[] = []
  let url: string | undefined = first
  for (let pages = 0; url !== undefined && pages < 100; pages += 1) {
    const { body } = await dashboard.send({ method: 'GET', url, headers: { cookie } })
    seen.push(...[...body.matchAll(row)].map(([, id = '']) => id))
    url = /href="([^"]+)">(?:Older|Next)</.exec(body)?.[1]?.replaceAll('&amp;', '&')
  }
  return seen
}

test('the pages of a list have each row once, the newest first', async () => {
  const keys = (rows: readonly { readonly pk: bigint }[]) => rows.map(({ pk }) => String(pk))
  const order = { orderBy: { pk: 'desc' }, select: { pk: true } } as const
  expect(await walk('/admin/refusals/', /<tr id="refusal-(\d+)"/g)).toEqual(
    keys(await service.db.refusal.findMany(order)),
  )
  expect(await walk('/admin/audit/', /<tr id="audit-(\d+)"/g)).toEqual(keys(await service.db.auditRow.findMany(order)))
})

test('a document whose characters take most bytes is shown whole, page by page', async () => {
  const parts = await walk(`/admin/runs/${ids.applied}/document/`, /<pre>([^<]*)<\/pre>/g)
  expect(parts.length).toBeGreaterThan(5)
  expect(parts.join('').replaceAll('&lt;', '<').match(/<+/g)).toEqual(
    Array.from({ length: 100 }, (_, each) => '<'.repeat(each === 99 ? 100_000 : 3_000)),
  )
})
