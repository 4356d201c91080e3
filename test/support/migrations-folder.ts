import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { freshFolder } from './folder.ts'

/** A folder with these migrations; write it again to change them. */
export function folderOf(migrations: Record<string, string>): {
  url: URL
  write(migrations: Record<string, string>): void
} {
  const folder = freshFolder()
  const write = (given: Record<string, string>) => {
    for (const [name, text] of Object.entries(given)) {
      mkdirSync(join(folder, name), { recursive: true })
      writeFileSync(join(folder, name, 'migration.sql'), text)
    }
  }
  write(migrations)
  return { url: pathToFileURL(`${folder}/`), write }
}
