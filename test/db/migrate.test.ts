import { writeFileSync } from 'node:fs'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { connect } from '../../src/db/client.ts'
import { isMigrated, MigrationError, migrate } from '../../src/db/migrate.ts'
import { migrationNames, replacedNames } from '../../src/db/migrations.ts'
import { loadSchemaEngine, migrationsList, noFilter } from '../../tools/migration/schema-engine.ts'
import { atEnd, emptyDatabase, until, within } from '../support/kit.ts'
import { folderOf } from '../support/migrations-folder.ts'

const rows = async (url: string, text: string) => (await within(url, (client) => client.query(text))).rows
const books = (url: string) =>
  rows(url, 'SELECT migration_name, finished_at IS NOT NULL AS finished FROM _prisma_migrations ORDER BY 1')

test('an empty database gets every migration, and the next start none', async () => {
  const url = await emptyDatabase()
  const { db } = connect(url, { applicationName: 'gatewright-test', max: 1 })
  atEnd(() => db.$disconnect())
  expect(await isMigrated(db)).toBe(false)
  expect(await migrate(url)).toEqual(await migrationNames())
  expect(await isMigrated(db)).toBe(true)
  expect(await migrate(url)).toEqual([])
})

test("the history is Prisma's: its own engine finds nothing missing, failed or edited", async () => {
  const url = await emptyDatabase()
  await migrate(url)
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  atEnd(() => pool.end())
  const engine = await loadSchemaEngine(pool)
  const migrations = { migrationsList: await migrationsList(), filters: noFilter }
  expect(await engine.diagnoseMigrationHistory({ ...migrations, optInToShadowDatabase: false })).toMatchObject({
    hasMigrationsTable: true,
    history: null,
    failedMigrationNames: [],
    editedMigrationNames: [],
  })
  expect(await engine.applyMigrations(migrations)).toEqual({ appliedMigrationNames: [] })
})

test('of starts at once, one migrates and the others wait', async () => {
  const url = await emptyDatabase()
  const applied = await Promise.all([migrate(url), migrate(url), migrate(url)])
  expect(applied.filter((names) => names.length > 0)).toEqual([await migrationNames()])
})

test('a migration that fails leaves nothing of itself, and is applied after it is fixed', async () => {
  const url = await emptyDatabase()
  const folder = folderOf({
    '1_good': 'CREATE TABLE good (a int)',
    '2_bad': 'CREATE TABLE half (a int); SELECT 1 FROM nowhere',
  })
  const failure = migrate(url, folder.url)
  await expect(failure).rejects.toThrow(MigrationError)
  await expect(failure).rejects.toThrow(/2_bad failed.*nothing of it was kept.*nowhere/s)
  expect(await books(url)).toEqual([{ migration_name: '1_good', finished: true }])
  expect(await rows(url, "SELECT to_regclass('half') AS half")).toEqual([{ half: null }])
  folder.write({ '2_bad': 'CREATE TABLE half (a int)' })
  expect(await migrate(url, folder.url)).toEqual(['2_bad'])
})

test('semicolons in texts, comments and functions do not end statements', async () => {
  const url = await emptyDatabase()
  const sql = `-- one; two
    CREATE FUNCTION three() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RETURN 3; END $$;
    CREATE TABLE texts AS SELECT 'a;b' AS text`
  await migrate(url, folderOf({ '1_semicolons': sql }).url)
  expect(await rows(url, 'SELECT text, three() FROM texts')).toEqual([{ text: 'a;b', three: 3 }])
})

test('a connection that breaks in the middle leaves nothing behind', async () => {
  const url = await emptyDatabase()
  const folder = folderOf({ '1_slow': 'CREATE TABLE half (a int); SELECT pg_sleep(60)' })
  const failure = expect(migrate(url, folder.url)).rejects.toThrow(MigrationError)
  const kill = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'CREATE TABLE half%'`
  await until('the migration to run', async () => (await rows(url, kill)).length > 0, { withinMs: 10_000 })
  await failure
  folder.write({ '1_slow': 'CREATE TABLE half (a int)' })
  expect(await migrate(url, folder.url)).toEqual(['1_slow'])
})

const record = (columns: string, values: string) =>
  `INSERT INTO _prisma_migrations (id, checksum, migration_name, ${columns}) VALUES (gen_random_uuid()::text, '', '99990101000000_later', ${values})`

test('a database of a newer version is not changed', async () => {
  const url = await emptyDatabase()
  await migrate(url)
  await rows(url, record('finished_at', 'now()'))
  await expect(migrate(url)).rejects.toThrow(/newer version of Gatewright.*99990101000000_later/)
})

describe('a migration that replaces others', () => {
  const former = { '1_first': 'CREATE TABLE a (a int)', '2_second': 'CREATE TABLE b (a int)' }
  const later = { '5_later': 'CREATE TABLE c (a int)' }

  /** The same as `former`, in one migration. */
  function squashed(): URL {
    const { url } = folderOf({ '3_both': Object.values(former).join(';'), ...later })
    writeFileSync(new URL('3_both/replaces.txt', url), '1_first\n2_second\n')
    return url
  }

  test('is applied to an empty database', async () => {
    const url = await emptyDatabase()
    expect(await migrate(url, squashed())).toEqual(['3_both', '5_later'])
    expect(await migrate(url, squashed())).toEqual([])
  })

  test('is recorded, and not run, in a database that has them, and their rows stay', async () => {
    const url = await emptyDatabase()
    await migrate(url, folderOf(former).url)
    expect(await migrate(url, squashed())).toEqual(['5_later'])
    const names = ['1_first', '2_second', '3_both', '5_later']
    expect(await books(url)).toEqual(names.map((name) => ({ migration_name: name, finished: true })))
    expect(await migrate(url, squashed())).toEqual([])
  })

  test('is recorded in a database that came another way', async () => {
    const url = await emptyDatabase()
    await migrate(url, folderOf({ '0_other': former['1_first'], '0_way': former['2_second'] }).url)
    const folder = squashed()
    writeFileSync(new URL('3_both/replaces.txt', folder), '1_first\n2_second\n\n0_other\n0_way\n')
    expect(await migrate(url, folder)).toEqual(['5_later'])
  })

  test('is refused by a database that has only some of them, and nothing is changed', async () => {
    const url = await emptyDatabase()
    await migrate(url, folderOf({ '1_first': former['1_first'] }).url)
    const failure = migrate(url, squashed())
    await expect(failure).rejects.toThrow(MigrationError)
    await expect(failure).rejects.toThrow(
      /some of the migrations that 3_both replaces, and lacks 2_second: first start/,
    )
    expect(await books(url)).toEqual([{ migration_name: '1_first', finished: true }])
  })

  test('is in the folder, and what it replaces is not, and is replaced once', async () => {
    const known = await migrationNames()
    // Ways to one state may share a name; two migrations may not.
    const replaced = (await Promise.all(known.map((name) => replacedNames(name)))).flatMap((ways) => [
      ...new Set(ways.flat()),
    ])
    expect(replaced.length).toBeGreaterThan(0)
    expect(new Set([...known, ...replaced]).size).toBe(known.length + replaced.length)
  })
})

test('a migration that another program left half done is named', async () => {
  const url = await emptyDatabase()
  const { url: folder } = folderOf({ '1_first': 'SELECT 1' })
  await migrate(url, folder)
  await rows(url, "UPDATE _prisma_migrations SET finished_at = NULL, logs = 'column is missing'")
  await expect(migrate(url, folder)).rejects.toThrow(/1_first once failed.*prisma migrate resolve.*column is missing/)
})

test('a foreign database is not changed', async () => {
  const url = await emptyDatabase()
  await rows(url, 'CREATE TABLE guests (a int)')
  const failure = migrate(url)
  await expect(failure).rejects.toThrow(MigrationError)
  await expect(failure).rejects.toThrow('tables of another program')
  const there = "SELECT to_regclass('applications') AS applications, to_regclass('_prisma_migrations') AS history"
  expect(await rows(url, there)).toEqual([{ applications: null, history: null }])
})

test('a database that is away is reported', async () => {
  await expect(migrate('postgresql://nobody@127.0.0.1:1/nothing')).rejects.toMatchObject({
    name: 'Problem',
    code: 'unavailable',
  })
})
