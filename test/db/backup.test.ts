import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { backUp } from '../../src/db/backup.ts'
import { openBackup } from '../../src/db/backup-file.ts'
import { migrate } from '../../src/db/migrate.ts'
import { load } from '../../src/db/restore.ts'
import { StartError } from '../../src/start-error.ts'
import { emptyDatabase, freshDatabase, freshFolder, secretKey, tablesOf, within, writerTo } from '../support/kit.ts'

/** The rows of a backup, without the programs around them: test/e2e/backup.test.ts has these. */

const { url, db } = await freshDatabase({ isInstalled: true })
const file = writerTo(freshFolder())

/** Texts that the form of the file could take for its own, in rows of some hundred kilobytes. */
const odd = [
  '\\.',
  '\\.\n',
  'a\n\\.\nb',
  '\t\r\n\\N',
  '{"table":"users"}',
  `${'\\.\n'.repeat(100_000)}`,
  'ÄÖ 😀 " \' \\x41',
]

await within(url, async (client) => {
  await client.query(`INSERT INTO users (uuid, username, attributes)
    SELECT gen_random_uuid(), 'user-' || n, jsonb_build_object('n', n, 'noise', md5(n::text)) FROM generate_series(1, 3000) n`)
  for (const [index, text] of odd.entries()) {
    await client.query('INSERT INTO users (uuid, username, name, attributes) VALUES (gen_random_uuid(), $1, $2, $3)', [
      ...[`odd-${index}`, text, JSON.stringify({ text })],
    ])
    await client.query('INSERT INTO metric_sums (series, value) VALUES ($1, 0.1)', [text.slice(0, 100) + index])
  }
  await client.query("DELETE FROM users WHERE username = 'user-3000'")
  await client.query(`INSERT INTO groups (pk, name, parent)
    SELECT ('00000000-0000-4000-8000-' || lpad((2000 - n)::text, 12, '0'))::uuid, 'group-' || n,
      CASE WHEN n > 1 THEN ('00000000-0000-4000-8000-' || lpad((2001 - n)::text, 12, '0'))::uuid END
    FROM generate_series(1, 100) n`)
  await client.query(`INSERT INTO roles (pk, name, permissions, owners)
    VALUES (gen_random_uuid(), 'odd', ARRAY['view_user', 'a"b,{}'], ARRAY['team-a'])`)
  // A number of a transaction that this PostgreSQL has not reached.
  await client.query(`INSERT INTO runs (id, title, request_id, state, applied, finished_at, changed_in)
    VALUES (gen_random_uuid(), 'apply', 'r', 'done', true, now(), 1000000000000)`)
  await client.query(`INSERT INTO dashboard_sessions (pk, token_pk, expires)
    SELECT gen_random_uuid(), pk, now() + interval '1 hour' FROM tokens LIMIT 1`)
  await client.query(`WITH issuer AS (
      INSERT INTO trusted_issuers (pk, name, issuer, audience, clock_skew, rules)
      VALUES (gen_random_uuid(), 'ci', 'https://ci.example', 'iam', 60, '[]') RETURNING pk)
    INSERT INTO exchanged_tokens (pk, key_hash, user_pk, issuer_pk, rule, pipeline, identity, trust, expires)
    SELECT gen_random_uuid(), '', user_pk, issuer.pk, '{}', '{}', 'job', '', now() + interval '1 hour' FROM tokens, issuer LIMIT 1`)
})

async function written(key: string | null = null, onPart: () => Promise<unknown> = async () => {}): Promise<Buffer> {
  const parts: Buffer[] = []
  await backUp(url, key, async (part) => {
    parts.push(Buffer.from(part))
    await onPart()
  })
  return Buffer.concat(parts)
}

let count = 0
const stored = (bytes: Buffer) => file(`${count++}.gz`, bytes)

async function restored(bytes: Buffer, target?: string): Promise<string> {
  const backup = await openBackup(stored(bytes))
  const to = target ?? (await emptyDatabase())
  await migrate(to, undefined, undefined, backup.header.migrations)
  await load(to, backup)
  return to
}

test('every row and sequence is restored, but for what processes say of themselves, sessions and tokens of jobs', async () => {
  const bytes = await written()
  const target = await restored(bytes)
  const [before, after] = [await tablesOf(url), await tablesOf(target)]
  expect(before.dashboard_sessions).toHaveLength(1)
  expect(before.exchanged_tokens).toHaveLength(1)
  expect(after).toEqual({ ...before, dashboard_sessions: [], exchanged_tokens: [], consumer_changes: [] })
  const sequences = 'SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = $$public$$ ORDER BY 1'
  const [own, others] = [await within(url, (c) => c.query(sequences)), await within(target, (c) => c.query(sequences))]
  expect(others.rows).toEqual(own.rows)
})

test('in the restored database, triggers and foreign keys are on, and every change is visible', async () => {
  const target = await restored(await written())
  await within(target, async (client) => {
    const counted =
      "SELECT sum(rows)::integer AS rows, (SELECT count(*)::integer FROM users) AS users FROM row_counts WHERE table_name = 'users'"
    const { rows: before } = await client.query(counted)
    await client.query("INSERT INTO users (uuid, username) VALUES (gen_random_uuid(), 'another')")
    const { rows: after } = await client.query(counted)
    expect(after).toEqual([{ rows: before[0].rows + 1, users: before[0].users + 1 }])
    expect(before[0].rows).toBe(before[0].users)
    const stranger = "INSERT INTO memberships VALUES ('00000000-0000-4000-8000-000000000000', 999999)"
    await expect(client.query(stranger)).rejects.toMatchObject({ code: '23503' })
    const visible = 'SELECT pg_visible_in_snapshot(changed_in::text::xid8, pg_current_snapshot()) AS it FROM runs'
    expect((await client.query(visible)).rows).toEqual([{ it: true }])
    expect((await client.query("SELECT rights FROM roles WHERE name = 'odd'")).rows[0].rights).not.toEqual([])
  })
})

test('it is one snapshot, whatever is written meanwhile', async () => {
  let pairs = 0
  const pair = () =>
    within(url, (client) => {
      pairs += 1
      return client.query(`INSERT INTO roles (pk, name, permissions) VALUES (gen_random_uuid(), 'pair-${pairs}', '{}');
        INSERT INTO users (uuid, username) VALUES (gen_random_uuid(), 'pair-${pairs}')`)
    })
  await pair()
  const target = await restored(await written(null, pair))
  expect(pairs).toBeGreaterThan(3)
  const found = await within(target, (client) =>
    client.query(
      "SELECT name FROM roles WHERE name ~ 'pair' UNION ALL SELECT username FROM users WHERE username ~ 'pair'",
    ),
  )
  expect(found.rows).toEqual([{ name: 'pair-1' }, { name: 'pair-1' }])
})

test('the first line says what is in the file, and has no secret', async () => {
  const [first, second] = gunzipSync(await written(secretKey))
    .toString('utf8')
    .split('\n')
  expect(JSON.parse(first ?? '')).toMatchObject({ gatewrightBackup: 1, version: expect.any(String), hasKey: true })
  expect(first).not.toContain(secretKey)
  expect(JSON.parse(second ?? '')).toEqual({ secretKey })
  const opened = await openBackup(stored(await written(secretKey)))
  expect(opened.secretKey).toBe(secretKey)
  expect((await openBackup(stored(await written()))).secretKey).toBe(null)
  expect(gunzipSync(await written()).toString('utf8')).not.toContain(secretKey)
})

const bytes = await written()
const edited = (change: (text: string) => string) => gzipSync(change(gunzipSync(bytes).toString('utf8')))
const flipped = (at: number) => Buffer.from(bytes.map((byte, index) => (index === at ? byte ^ 0x10 : byte)))

test.each<[string, Buffer, RegExp]>([
  ['an empty file', Buffer.alloc(0), /is damaged, or is no backup/],
  ['another file', readFileSync(join(import.meta.dirname, '../../package.json')), /incorrect header check/],
  ['another compressed file', gzipSync('{"a":1}\n'), /a line has another form/],
  ['a compressed file without lines', gzipSync('a'.repeat(2_000_000)), /a line is too long/],
  ['a file that ends after its beginning', bytes.subarray(0, 200), /is damaged/],
  ['a file that ends in the middle', bytes.subarray(0, bytes.length / 2), /unexpected end of file/],
  ['a file without its last byte', bytes.subarray(0, -1), /unexpected end of file/],
  ['another byte in the middle', flipped(Math.floor(bytes.length / 2)), /is damaged/],
  ['another checksum', flipped(bytes.length - 8), /incorrect data check/],
  ['rows without the last line', edited((text) => text.slice(0, text.lastIndexOf('{"rows"'))), /its end is missing/],
  [
    'a row that PostgreSQL refuses',
    edited((text) => text.replace(/^(?=.*\tuser-7\t)/m, 'x')),
    /is damaged.*invalid input syntax/,
  ],
  ['a missing row', edited((text) => text.replace(/^.*\tuser-7\t.*\n/m, '')), /rows are missing/],
  [
    'a missing table',
    edited((text) => text.replace(/^\{"table":"users","columns"[\s\S]*?\n\\\.\n/m, '')),
    /rows are missing/,
  ],
  ['something after the last line', edited((text) => `${text}more\n`), /something follows its end/],
  [
    'a newer form',
    edited((text) => text.replace('"gatewrightBackup":1,', '"gatewrightBackup":2,')),
    /is of a newer version of Gatewright \(\d/,
  ],
  [
    'a migration of a newer version',
    edited((text) => text.replace('"migrations":[', '"migrations":["99990101000000_later",')),
    /is of a newer version/,
  ],
])('%s is refused, and nothing is kept of it', async (_, damaged, why) => {
  const target = await emptyDatabase()
  const failure = await restored(damaged, target).catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(StartError)
  expect(String(failure)).toMatch(why)
  const kept = Object.entries(await tablesOf(target)).filter(([, rows]) => rows.length > 0)
  expect(kept).toEqual([])
})

test('a database of a newer version, and one without tables, are not backed up', async () => {
  const empty = backUp(await emptyDatabase(), null, async () => {})
  await expect(empty).rejects.toThrow('The database has no tables yet')
  const newer = await emptyDatabase()
  await migrate(newer)
  await within(newer, (client) =>
    client.query(
      "UPDATE _prisma_migrations SET migration_name = '99990101000000_later' WHERE migration_name ~ 'first$'",
    ),
  )
  await expect(backUp(newer, null, async () => {})).rejects.toThrow('newer version of Gatewright')
  expect(await db.user.count()).toBeGreaterThan(3_000)
})
