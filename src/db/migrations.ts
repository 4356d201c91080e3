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

/** A folder of migrations as Prisma's schema engine takes it. */
export async function migrationsList(folder: URL = migrationsFolder): Promise<MigrationList> {
  const names = await migrationNames(folder)
  const read = (name: string) => readFile(new URL(`${name}/migration.sql`, folder), 'utf8')
  return {
    baseDir: fileURLToPath(folder),
    lockfile: { path: './migration_lock.toml', content: 'provider = "postgresql"\n' },
    shadowDbInitScript: '',
    migrationDirectories: await Promise.all(
      names.map(async (name) => ({
        path: name,
        migrationFile: { path: 'migration.sql', content: { tag: 'ok' as const, value: await read(name) } },
      })),
    ),
  }
}

/** Includes everything in a comparison or a migration. */
export const noFilter = { externalTables: [], externalEnums: [] }
