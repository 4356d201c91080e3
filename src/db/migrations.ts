import { existsSync } from 'node:fs'
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

/**
 * The former migrations that one replaces, by its file `replaces.txt`; most replace none
 * (docs/adr/0121-squashed-migrations-name-what-they-replace.md). An empty line stands between the ways that states took: a database
 * of such a state has all of one way.
 */
export async function replacedNames(name: string, folder: URL = migrationsFolder): Promise<string[][]> {
  const file = new URL(`${name}/replaces.txt`, folder)
  if (!existsSync(file)) return []
  return (await readFile(file, 'utf8'))
    .trim()
    .split('\n\n')
    .map((way) => way.split('\n'))
}
