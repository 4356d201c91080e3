import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { MigrationList } from '@prisma/schema-engine-wasm'

const prismaFolder = new URL('../../prisma/', import.meta.url)

export const readSchema = (): Promise<string> => readFile(new URL('schema.prisma', prismaFolder), 'utf8')

/** `prisma/migrations`. */
export const migrationsFolder = new URL('migrations/', prismaFolder)

/** The names of the migrations in a folder, in order. */
export async function migrationNames(folder: URL = migrationsFolder): Promise<string[]> {
  const found = await readdir(folder, { withFileTypes: true })
  return found
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

const outsideMark = '-- Outside of a transaction'

/**
 * Whether a migration runs outside of a transaction, because its first line says so: an index that is built while writes go
 * on, or a change in portions (docs/adr/0039-large-tables-migrate-outside-of-a-transaction.md).
 */
export const isOutside = (script: string): boolean => script.startsWith(outsideMark)

/** The text of a migration. */
export const migrationScript = (name: string, folder: URL = migrationsFolder): Promise<string> =>
  readFile(new URL(`${name}/migration.sql`, folder), 'utf8')

/** A folder of migrations as Prisma's schema engine takes it. */
export async function migrationsList(folder: URL = migrationsFolder): Promise<MigrationList> {
  const names = await migrationNames(folder)
  return {
    baseDir: fileURLToPath(folder),
    lockfile: { path: './migration_lock.toml', content: 'provider = "postgresql"\n' },
    shadowDbInitScript: '',
    migrationDirectories: await Promise.all(
      names.map(async (name) => ({
        path: name,
        migrationFile: {
          path: 'migration.sql',
          content: { tag: 'ok' as const, value: await migrationScript(name, folder) },
        },
      })),
    ),
  }
}

/** Includes everything in a comparison or a migration. */
export const noFilter = { externalTables: [], externalEnums: [] }
