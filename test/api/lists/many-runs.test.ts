import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Prisma } from '../../../src/db/generated/client.ts'
import { runSummary } from '../../../src/views/run.ts'
import { installation, raw, rows, sql, within } from '../../support/kit.ts'
import { column, type Listed, read } from './listing.ts'

/** More runs than the list counts: pages are those of SQL, and `count` says that there are more. */

const most = 10_000
const many = 12_000

const runs: Listed = {
  ...{ path: '/api/v3/blueprints/runs/', by: () => on.admin, view: runSummary, key: 'id', isCapped: true },
}

/** Kinds, modes, reasons and states of any share; several runs are of one time. */
const made: Prisma.Sql = sql`
  INSERT INTO runs (id, title, kind, slug, mode, state, applied, reason, request_id, created_at, finished_at, logs)
  SELECT gen_random_uuid(), CASE WHEN plan THEN 'plan ' ELSE 'apply ' END || kind || ' shop-' || i % 900, kind, 'shop-' || i % 900,
    CASE WHEN plan THEN 'plan' ELSE 'apply' END::run_mode, state::run_state, CASE state WHEN 'done' THEN NOT plan END,
    CASE state WHEN 'failed' THEN CASE WHEN i % 3 = 0 THEN 'timeout' ELSE 'server_error' END WHEN 'cancelled' THEN 'cancelled' END,
    'request ' || i, '2026-11-01'::timestamptz + make_interval(secs => i / 3), CASE WHEN state <> 'queued' THEN '2026-11-02'::timestamptz END, '{}'
  FROM (SELECT i, i % 50 = 7 AS plan, CASE WHEN i < 300 THEN 'radius' WHEN i % 4 = 0 THEN 'saml' ELSE 'oauth2' END AS kind,
      CASE WHEN i % 90 = 1 THEN 'queued' WHEN i < 400 THEN 'failed' WHEN i % 100 = 3 THEN 'cancelled' ELSE 'done' END AS state
    FROM generate_series(1, ${many}::integer) i) made`

const on = await installation({ workers: 'none' })
await within(on.url, async (client) => {
  await client.query(made)
  await client.query('ANALYZE runs')
})

const orders = { created_at: 'created_at', title: 'title', state: 'state', id: 'id' }
const orderOf = (field: keyof typeof orders, descending: boolean) => {
  const direction = descending ? 'DESC' : 'ASC'
  const fields = field === 'id' ? ['id'] : [...new Set([orders[field], 'created_at', 'id'])]
  return fields.map((each) => `${each} ${direction}`).join(', ')
}

const asked = fc.record({
  narrowing: fc.constantFrom<[Record<string, string | string[]>, string]>(
    [{}, 'true'],
    [{ kind: 'radius' }, "kind = 'radius'"],
    [{ kind: 'oauth2' }, "kind = 'oauth2'"],
    [{ mode: 'plan' }, "mode = 'plan'"],
    [{ mode: 'apply' }, "mode = 'apply'"],
    [{ state: 'queued' }, "state = 'queued'"],
    [{ state: ['failed', 'cancelled'] }, "state IN ('failed', 'cancelled')"],
    [{ state: 'done' }, "state = 'done'"],
    [{ reason: 'timeout' }, "reason = 'timeout'"],
    [{ created_before: '2026-11-01T01:00:00Z' }, "created_at < '2026-11-01T01:00:00Z'"],
    [{ created_after: '2026-11-01T00:02:00Z' }, "created_at >= '2026-11-01T00:02:00Z'"],
    [{ search: 'SHOP' }, "title LIKE '%shop%'"],
    [{ search: 'apply shop-77' }, "title LIKE '%apply%' AND title LIKE '%shop-77%'"],
    [{ search: 'op-8', kind: 'saml' }, "title LIKE '%op-8%' AND kind = 'saml'"],
    [{ search: 'no such' }, 'false'],
  ),
  field: fc.constantFrom<keyof typeof orders>('created_at', 'title', 'state', 'id'),
  descending: fc.boolean(),
  place: fc.double({ min: 0, max: 1, noNaN: true }),
  page_size: fc.integer({ min: 1, max: 1_000 }),
})

test('pages are those of SQL, in any order and with any filter', async () => {
  await fc.assert(
    fc.asyncProperty(asked, async ({ narrowing: [parameters, condition], field, descending, place, page_size }) => {
      const text = `SELECT id FROM runs WHERE ${condition} ORDER BY ${orderOf(field, descending)}`
      const all = (await rows<{ id: string }>(on.db, raw(text))).map(({ id }) => id)
      const last = Math.max(1, Math.ceil(all.length / page_size))
      const page = 1 + Math.floor(place * (last - 1))
      const ordering = `${descending ? '-' : ''}${field}`
      const { pagination, results } = await read(runs, { ...parameters, ordering, page, page_size })
      expect(results.map(({ id }) => id)).toEqual(all.slice((page - 1) * page_size, page * page_size))
      const counted = Math.max(most, page * page_size)
      expect(pagination).toMatchObject({
        count: Math.min(all.length, counted + 1),
        count_is_exact: all.length <= counted,
        next: page < last ? page + 1 : 0,
      })
    }),
    { numRuns: 25 },
  )
})

test('a title is found as soon as a run has it, and until the last run is deleted', async () => {
  const found = () => column(runs, 'title', { search: 'needle' })
  const add = () =>
    on.db.run.create({ data: { id: crypto.randomUUID(), title: 'apply blueprint Needle', requestId: 'of needle' } })
  expect(await found()).toEqual([])
  await add()
  await add()
  expect(await found()).toEqual(['apply blueprint Needle', 'apply blueprint Needle'])
  await on.db.run.deleteMany({ where: { requestId: 'of needle' } })
  expect(await found()).toEqual([])
})
