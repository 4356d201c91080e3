import { beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type Db, type Tx, transaction } from '../../src/db/client.ts'
import { query } from '../../src/db/raw.ts'
import { find } from '../../src/lists/find.ts'
import type { ListSpec } from '../../src/lists/listed.ts'
import { cappedFor, toSorted } from '../../src/lists/page.ts'
import { runList } from '../../src/lists/runs.ts'
import { userText } from '../../src/lists/tables.ts'
import { system } from '../../src/permissions.ts'
import { userView } from '../../src/views/user.ts'
import { freshDatabase, loadEngine, until, within } from '../support/kit.ts'

/** How many rows of their tables PostgreSQL reads for a page of a long list: what an index answers alone reads none. */

const many = 30_000

let db: Db
let runs: ListSpec<'Run'>
const users: ListSpec<'User'> = {
  ...{ path: '/core/users/', summary: 'List users', permission: 'view_user', view: userView, search: userText },
  ...{ count: 'kept', order: { username: 'username', uuid: 'uuid' }, defaultOrder: 'username', filters: {} },
}

beforeAll(async () => {
  const fresh = await freshDatabase()
  db = fresh.db
  runs = runList((await loadEngine()).registry)
  await within(fresh.url, async (client) => {
    // Rows of a commit that is not on the disk yet are not marked as visible to all.
    await client.query('SET synchronous_commit = on')
    await client.query(`INSERT INTO runs (id, title, state, request_id, options, created_at, finished_at)
      SELECT gen_random_uuid(), 'apply saml shop-' || i % 3000, 'done', 'request ' || i,
        CASE i % 3000 WHEN 0 THEN jsonb_build_object('pipeline', jsonb_build_object('commit', 'abcdef0' || i)) ELSE '{}' END,
        now() - make_interval(secs => i), now()
      FROM generate_series(1, ${many}) i`)
    await client.query(
      `INSERT INTO users (uuid, username) SELECT gen_random_uuid(), 'user' || i FROM generate_series(1, ${many}) i`,
    )
    // A transaction that is open elsewhere keeps rows from being marked.
    const isMarked = async () => {
      await client.query('VACUUM ANALYZE runs, users')
      const text = `SELECT FROM pg_class WHERE relname IN ('runs', 'users') AND relallvisible < relpages`
      return (await client.query(text)).rowCount === 0
    }
    await until('all rows to be marked as visible', isMarked)
  })
})

const readRow = z.object({ rows: z.int() })
async function rowsRead(tx: Tx): Promise<number> {
  const [row] = await query(tx, readRow, {
    text: `SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::integer AS rows
      FROM pg_stat_xact_user_tables WHERE relname IN ('runs', 'users')`,
    values: [],
  })
  return row?.rows ?? 0
}

/** @returns keys of the page, and how many rows were read to find and count them */
function ask(spec: ListSpec, asked: Readonly<Record<string, unknown>>) {
  const { page = 1, ordering = spec.defaultOrder, search = '', ...sent } = asked
  const filters = Object.entries(sent).flatMap(([name, value]) => {
    const filter = spec.filters[name]
    return filter === undefined ? [] : [{ name, filter, value: filter.schema.parse(value) }]
  })
  const terms = String(search).split(' ').filter(Boolean)
  const paged = { page: Number(page), page_size: 100 }
  return transaction(
    db,
    async (tx) => {
      const before = await rowsRead(tx)
      const { keys } = await find(tx, spec, {
        ...{ filters, terms, actor: system, ordering: toSorted(String(ordering)), isPlain: false, ...paged },
        ...(spec.count === 'capped' && { mostCounted: cappedFor(paged) }),
      })
      return { keys: keys.length, rows: (await rowsRead(tx)) - before }
    },
    { isolationLevel: 'RepeatableRead', plans: 'auto' },
  )
}

test.each([{}, { page: 100 }, { ordering: 'created_at', page: 50 }, { ordering: 'id', page: 50 }])(
  'runs by %j: none, but those that are counted',
  async (asked) => {
    const { keys, rows } = await ask(runs, asked)
    // The count of a whole list ends at its limit.
    expect(rows).toBeLessThanOrEqual(10_001)
    expect(keys).toBe(100)
  },
)

test.each([
  ['abcdef0', 10],
  ['abcdef03000', 2],
])('runs of a commit that begins with %s: these %d', async (commit, number) => {
  expect(await ask(runs, { commit })).toEqual({ keys: number, rows: number })
})

test.each(['username', '-username', 'uuid'])('a page of users in the middle, by %s: none', async (ordering) => {
  expect(await ask(users, { ordering, page: many / 200 })).toEqual({ keys: 100, rows: 0 })
})
