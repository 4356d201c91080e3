import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { startEmbedded } from '../db/embedded.ts'
import { migrationsFolder, migrationsList, noFilter, readSchema } from '../db/migrations.ts'
import { loadSchemaEngine } from '../db/schema-engine.ts'
import { openDataDir } from '../standalone/data-dir.ts'

/**
 * For developers: `npm run migration -- add_something` writes the SQL that leads from the migrations to
 * `schema.prisma` into a new migration. What Prisma's schema cannot say (checks, trigram indexes) is added by hand.
 */

/** Indexes that Prisma makes end in `_idx` or `_key`; the others were written by hand, and it would drop them. */
const handMade = /-- DropIndex\nDROP INDEX "\w*(?<!_idx|_key)";\n*/g

const [name = ''] = process.argv.slice(2)
if (!/^[a-z][a-z0-9_]{2,60}$/.test(name)) {
  process.stderr.write('Name the migration after what it does, in snake_case: npm run migration -- add_something\n')
  process.exit(1)
}
const script = await difference()
if (script === null) {
  process.stdout.write('The migrations lead to prisma/schema.prisma already.\n')
  process.exit(0)
}
const timestamp = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)
const folder = join(fileURLToPath(migrationsFolder), `${timestamp}_${name}`)
mkdirSync(folder)
writeFileSync(join(folder, 'migration.sql'), script)
process.stdout.write(`${script}\nWritten to ${join(folder, 'migration.sql')}: read it before you commit it.\n`)
process.exit(0)

/** Worked out in a database of its own, thrown away afterwards. */
async function difference(): Promise<string | null> {
  const place = mkdtempSync(join(tmpdir(), 'gatewright-migration-'))
  // A folder beside the closed one: PostgreSQL's own user must be able to enter it.
  const dataDir = `${place}-data`
  openDataDir(dataDir)
  try {
    const postgres = await startEmbedded(dataDir, (_, work) => work())
    const { hostname, port, username, password, pathname } = new URL(postgres.url)
    // Part by part: a whole URL would win over the shadow database's name.
    const server = { host: hostname, port: Number(port), user: username, password, database: pathname.slice(1) }
    const engine = await loadSchemaEngine(new pg.Pool(server))
    const schema = { files: [{ path: 'schema.prisma', content: await readSchema() }] }
    const { stdout } = await engine
      .diff({
        from: { tag: 'migrations', ...(await migrationsList()) },
        to: { tag: 'schemaDatamodel', ...schema },
        script: true,
        exitCode: null,
        filters: noFilter,
      })
      .finally(() => postgres.stop())
    const wanted = (stdout ?? '').replaceAll(handMade, '').trim()
    return /^(-- This is an empty migration\.)?$/.test(wanted) ? null : `${wanted}\n`
  } finally {
    rmSync(place, { recursive: true, force: true })
    rmSync(dataDir, { recursive: true, force: true })
  }
}
