import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { migrationsFolder } from '../../src/db/migrations.ts'
import { withLogin } from '../../src/db/roles.ts'
import { uuid7 } from '../../src/ids.ts'
import { emptyDatabase, needs, within } from '../support/kit.ts'
import { folderOf } from '../support/migrations-folder.ts'
import { lastRelease } from '../support/release.ts'

/** The migrations of the last release. */
function releasedMigrations(commit: string): Record<string, string> {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 100_000_000 })
  const names = git('ls-tree', '-d', '--name-only', `${commit}:prisma/migrations`).trim().split('\n')
  const textOf = (name: string) => readFileSync(new URL(`${name}/migration.sql`, migrationsFolder), 'utf8')
  return Object.fromEntries(names.map((name) => [name, textOf(name)]))
}

test.runIf(needs('history'))(
  'the login of API and worker records runs of the last release before it gets its rights on new tables',
  async () => {
    const [url, user] = [await emptyDatabase(), `beside_${uuid7().replaceAll('-', '')}`]
    await migrate(url, folderOf(releasedMigrations(lastRelease().commit)).url)
    await within(url, (client) =>
      client.query(`CREATE ROLE ${user} LOGIN PASSWORD 'service';
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${user};
        GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO ${user}`),
    )
    await migrate(url)
    await within(withLogin(url, { user, password: 'service' }), async (client) => {
      const id = uuid7()
      await client.query(
        `INSERT INTO runs (id, title, kind, request_id, blueprint) VALUES ($1, 'apply beside', 'ldap', 'r', 'sealed')`,
        [id],
      )
      const ended =
        "UPDATE runs SET state = 'done', applied = true, finished_at = now(), blueprint = NULL WHERE id = $1"
      expect((await client.query(ended, [id])).rowCount).toBe(1)
      const audited = "INSERT INTO audit_rows (actor_name, action, run_id, changes) VALUES ('ada', 'apply', $1, '[]')"
      expect((await client.query(audited, [id])).rowCount).toBe(1)
      for (const table of ['users', 'groups', 'applications', 'providers', 'tokens', 'roles'])
        await client.query(`UPDATE ${table} SET pk = pk`)
    })
  },
)
