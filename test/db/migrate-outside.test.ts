import { expect, test } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { emptyDatabase, until, within } from '../support/kit.ts'
import { folderOf } from '../support/migrations-folder.ts'

/** Migrations of large tables: outside of a transaction, and without locks for which others wait long. */

const rows = async (url: string, text: string) => (await within(url, (client) => client.query(text))).rows

const outside = (sql: string) => `-- Outside of a transaction: for a test.\n${sql}`

const table =
  'CREATE TABLE books (pk int PRIMARY KEY, title text); INSERT INTO books SELECT g, g FROM generate_series(1, 9) g'

test('an index that could not be built is built by the next start', async () => {
  const url = await emptyDatabase()
  const folder = folderOf({
    '1_books': `${table}; UPDATE books SET title = '1' WHERE pk = 2`,
    '2_titles': outside('CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "books_title" ON books (title);'),
    '3_more': 'CREATE TABLE more (a int)',
  })
  await expect(migrate(url, folder.url)).rejects.toThrow(/2_titles failed, and the next start goes on with it/)
  const indexes = "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('books_title')"
  expect(await rows(url, indexes)).toEqual([{ valid: false }])
  await rows(url, "UPDATE books SET title = '2' WHERE pk = 2")
  expect(await migrate(url, folder.url)).toEqual(['2_titles', '3_more'])
  expect(await rows(url, indexes)).toEqual([{ valid: true }])
  expect(await migrate(url, folder.url)).toEqual([])
})

test('a migration of several indexes goes on with the one that is missing', async () => {
  const url = await emptyDatabase()
  const index = (name: string) => `CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS "books_${name}" ON books (${name});`
  const folder = folderOf({
    '1_books': `${table}; ALTER TABLE books ADD COLUMN pages int DEFAULT 1`,
    '2_indexes': outside(`${index('title')}\n\n-- The second.\n${index('pages')}`),
  })
  await expect(migrate(url, folder.url)).rejects.toThrow(/2_indexes failed, and the next start goes on with it/)
  const valid = `SELECT to_regclass('books_title')::oid AS oid, indisvalid AS valid FROM pg_index
    WHERE indexrelid IN (to_regclass('books_title'), to_regclass('books_pages')) ORDER BY indexrelid`
  const [first, second] = await rows(url, valid)
  expect([first?.valid, second?.valid]).toEqual([true, false])
  await rows(url, 'UPDATE books SET pages = pk')
  expect(await migrate(url, folder.url)).toEqual(['2_indexes'])
  expect(await rows(url, valid)).toEqual([first, { ...second, valid: true }])
})

const portions = outside(`DO $$
DECLARE done int := 0;
BEGIN
  WHILE done < 9 LOOP
    UPDATE books SET title = (100 / (7 - pk))::text WHERE pk > done AND pk <= done + 2 AND title = pk::text;
    COMMIT;
    done := done + 2;
  END LOOP;
END $$;`)

test('a migration in portions keeps those that were done, and goes on', async () => {
  const url = await emptyDatabase()
  const folder = folderOf({ '1_books': table, '2_portions': portions })
  await expect(migrate(url, folder.url)).rejects.toThrow(
    /2_portions failed, and the next start goes on.*division by zero/s,
  )
  const left = 'SELECT count(*)::int AS rows FROM books WHERE title = pk::text'
  expect(await rows(url, left)).toEqual([{ rows: 3 }])
  await rows(url, 'DELETE FROM books WHERE pk = 7')
  expect(await migrate(url, folder.url)).toEqual(['2_portions'])
  expect(await rows(url, left)).toEqual([{ rows: 0 }])
})

test('a process that is killed in the middle leaves what the next start repeats', async () => {
  const url = await emptyDatabase()
  const slow = outside('DO $$ BEGIN UPDATE books SET title = title; COMMIT; PERFORM pg_sleep(60); END $$;')
  const folder = folderOf({ '1_books': table, '2_slow': slow })
  const failure = expect(migrate(url, folder.url)).rejects.toThrow(/2_slow/)
  const kill = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event = 'PgSleep'`
  await until('the migration to run', async () => (await rows(url, kill)).length > 0, { withinMs: 10_000 })
  await failure
  folder.write({ '2_slow': outside('DO $$ BEGIN UPDATE books SET title = title; COMMIT; END $$;') })
  expect(await migrate(url, folder.url)).toEqual(['2_slow'])
})

test('a migration that waits for a lock does not make others wait behind it', async () => {
  const url = await emptyDatabase()
  const folder = folderOf({ '1_books': table })
  await migrate(url, folder.url)
  folder.write({ '2_pages': 'ALTER TABLE books ADD COLUMN pages int' })
  let migrating = Promise.resolve<string[]>([])
  await within(url, async (reader) => {
    await reader.query('BEGIN; SELECT 1 FROM books')
    migrating = migrate(url, folder.url)
    migrating.catch(() => {})
    const waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    await until('the migration to wait', async () => (await rows(url, waits)).length > 0, { withinMs: 10_000 })
    // It would wait for the end of the transaction of `reader`, which comes after it.
    expect(await rows(url, 'SELECT count(*)::int AS rows FROM books')).toEqual([{ rows: 9 }])
    await reader.query('COMMIT')
  })
  expect(await migrating).toEqual(['2_pages'])
})
