import { readdir, readFile } from 'node:fs/promises'

export const migrationsFolder = new URL('../../prisma/migrations/', import.meta.url)

export async function migrationNames(folder: URL = migrationsFolder): Promise<string[]> {
  const found = await readdir(folder, { withFileTypes: true })
  return found
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort()
}

const outsideMark = '-- Outside of a transaction'

/**
 * Whether a migration runs outside of a transaction, because its first line says so: indexes that are built while writes go
 * on, or a change in portions (docs/adr/0039-large-tables-migrate-outside-of-a-transaction.md).
 */
export const isOutside = (script: string): boolean => script.startsWith(outsideMark)

/** PostgreSQL would run several in one transaction. An empty line stands between them, and none in them. */
export const outsideStatements = (script: string): string[] => script.split('\n\n')

export const migrationScript = (name: string, folder: URL = migrationsFolder): Promise<string> =>
  readFile(new URL(`${name}/migration.sql`, folder), 'utf8')
