import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrationNames, migrationsFolder } from '../../src/db/migrations.ts'
import { startEmbedded } from '../../src/standalone/embedded.ts'
import { runProgram, StartError } from '../../src/start-error.ts'
import { loadComparingEngine, migrationsList, noFilter, readSchema } from './schema-engine.ts'
import { timestampAfter } from './timestamp.ts'

/**
 * A tool for developers: `npm run migration -- add_something` writes a migration with the SQL from the existing
 * migrations to `schema.prisma`. What that schema cannot say (checks, trigram indexes) is added by hand.
 */

/**
 * Prisma names its indexes `..._idx` or `..._key`. It would drop the others, which were written by hand, and make those anew
 * that hold columns beside (`INCLUDE`).
 */
const handMade = /-- (?:DropIndex\nDROP|CreateIndex\nCREATE UNIQUE) INDEX "\w*(?<!_idx|_key)"[^;]*;\n*/g

await runProgram(main)
process.exit(0)

async function main(): Promise<void> {
  const [name = ''] = process.argv.slice(2)
  if (!/^[a-z][a-z0-9_]{2,60}$/.test(name))
    throw new StartError('Name the migration after what it does, in snake_case: npm run migration -- add_something')
  const script = await difference()
  if (script === null) {
    process.stdout.write('The migrations match prisma/schema.prisma already.\n')
    return
  }
  const timestamp = timestampAfter((await migrationNames()).at(-1) ?? '', new Date())
  const folder = join(fileURLToPath(migrationsFolder), `${timestamp}_${name}`)
  mkdirSync(folder)
  writeFileSync(join(folder, 'migration.sql'), script)
  process.stdout.write(`${script}\nWritten to ${join(folder, 'migration.sql')}: read it before you commit it.\n`)
}

/** Computed in a temporary database. @returns null when there is no difference */
async function difference(): Promise<string | null> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gatewright-migration-'))
  // PostgreSQL does not run as root: its user has to enter.
  chmodSync(dataDir, 0o711)
  try {
    const postgres = await startEmbedded(dataDir, (_, work) => work())
    const engine = await loadComparingEngine(postgres.url)
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
    const statements = (stdout ?? '').replaceAll(handMade, '').trim()
    return /^(-- This is an empty migration\.)?$/.test(statements) ? null : `${statements}\n`
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}
