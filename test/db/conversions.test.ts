import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { migrationNames, migrationsFolder } from '../../src/db/migrations.ts'
import { emptyDatabase } from '../support/database.ts'
import { freshFolder } from '../support/folder.ts'
import { within } from '../support/template.ts'

/** Rows of earlier versions that a migration converts. */

const rows = async (url: string, text: string) => (await within(url, (client) => client.query(text))).rows

/** An empty database with the migrations until this one. */
async function databaseBefore(name: string): Promise<string> {
  const url = await emptyDatabase()
  const folder = freshFolder()
  for (const each of (await migrationNames()).filter((other) => other < name))
    cpSync(fileURLToPath(new URL(each, migrationsFolder)), join(folder, each), { recursive: true })
  await migrate(url, pathToFileURL(`${folder}/`))
  return url
}

test('runs that shared their log and changes have them again', async () => {
  const url = await databaseBefore('20261129120101_runs_have_what_they_shared')
  const id = (last: number) => `'00000000-0000-7000-8000-00000000000${last}'`
  await rows(
    url,
    `INSERT INTO shared_results (key, logs, changes) VALUES (${id(9)}, '{one,two}', '[{"action": "unchanged"}]');
    INSERT INTO runs (id, title, request_id, state, applied, logs, changes, shared_result) VALUES
      (${id(1)}, 't', 'r', 'done', true, NULL, '[]', ${id(9)}), (${id(2)}, 't', 'r', 'done', true, NULL, '[]', ${id(9)}),
      (${id(3)}, 't', 'r', 'done', true, '{own}', '[{"action": "update"}]', NULL), (${id(4)}, 't', 'r', 'queued', NULL, NULL, NULL, NULL)`,
  )
  await migrate(url)
  const shared = { logs: ['one', 'two'], changes: [{ action: 'unchanged' }] }
  expect(await rows(url, 'SELECT logs, changes FROM runs ORDER BY id')).toEqual([
    ...[shared, shared],
    { logs: ['own'], changes: [{ action: 'update' }] },
    { logs: null, changes: null },
  ])
})
