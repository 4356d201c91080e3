import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { migrationNames, migrationsFolder } from '../../src/db/migrations.ts'
import { emptyDatabase, freshFolder, within } from '../support/kit.ts'

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
  const url = await databaseBefore('20261129120102_results_and_histories_of_runs')
  const id = (last: number) => `'00000000-0000-7000-8000-00000000000${last}'`
  await rows(
    url,
    `INSERT INTO shared_results (key, logs, changes) VALUES (${id(9)}, '{one,two}', '[{"action": "unchanged"}]');
    INSERT INTO runs (id, title, request_id, state, finished_at, applied, logs, changes, shared_result) VALUES
      (${id(1)}, 't', 'r', 'done', now(), true, NULL, '[]', ${id(9)}), (${id(2)}, 't', 'r', 'done', now(), true, NULL, '[]', ${id(9)}),
      (${id(3)}, 't', 'r', 'done', now(), true, '{own}', '[{"action": "update"}]', NULL),
      (${id(4)}, 't', 'r', 'queued', NULL, NULL, NULL, NULL, NULL)`,
  )
  await migrate(url)
  const shared = { logs: ['one', 'two'], changes: [{ action: 'unchanged' }] }
  expect(await rows(url, 'SELECT logs, changes FROM runs ORDER BY id')).toEqual([
    shared,
    shared,
    { logs: ['own'], changes: [{ action: 'update' }] },
    { logs: null, changes: null },
  ])
})

test('audit rows become histories, as far as they have the data', async () => {
  const url = await databaseBefore('20261129120102_results_and_histories_of_runs')
  const id = (last: number) => `00000000-0000-7000-8000-00000000000${last}`
  const changes = (...all: readonly object[]) => `'${JSON.stringify(all)}'`
  const application = { model: 'service_core.application', fields: ['name'] }
  await rows(
    url,
    `INSERT INTO applications (pk, name, slug) VALUES ('${id(1)}', 'Shop', 'shop');
    INSERT INTO runs (id, title, request_id, state, finished_at, applied, changes) VALUES ('${id(9)}', 't', 'r', 'done', now(), true,
      ${changes({ model: 'x', action: 'unchanged', key: {}, fields: {} }, { ...application, action: 'create', key: { slug: 'gone' }, fields: {} })});
    INSERT INTO audit_rows (pk, actor_name, action, changes, run_id) VALUES
      (1, 'admin', 'apply', ${changes({ ...application, action: 'create', key: id(2) })}, '${id(9)}'),
      (2, 'admin', 'update', ${changes({ ...application, action: 'update', key: id(1) }, { model: 'path', action: 'read', key: '/x' })}, NULL),
      (3, 'admin', 'delete', ${changes({ ...application, action: 'delete', key: id(3) })}, NULL),
      (4, 'admin', 'update', ${changes({ model: 'service_providers_ldap.ldapprovider', action: 'update', key: 7 })}, NULL),
      (5, 'admin', 'update', ${changes({ ...application, action: 'update', key: id(1) })}, NULL);
    INSERT INTO run_objects (audit_pk, position, model, key, name, action, fields)
      VALUES (5, 0, 'service_core.application', '${id(1)}', 'shop', 'update', '{"name": {"from": "A", "to": "Shop"}}')`,
  )
  await migrate(url)
  const filled =
    'SELECT audit_pk::integer AS audit, key, name, action, change, run_id AS run FROM object_changes ORDER BY 1'
  expect(await rows(url, filled)).toEqual([
    { audit: 1, key: id(2), name: 'gone', action: 'create', change: 1, run: id(9) },
    { audit: 2, key: id(1), name: 'shop', action: 'update', change: null, run: null },
    { audit: 3, key: id(3), name: id(3), action: 'delete', change: null, run: null },
    { audit: 4, key: '7', name: '7', action: 'update', change: null, run: null },
    { audit: 5, key: id(1), name: 'shop', action: 'update', change: null, run: null },
  ])
})
