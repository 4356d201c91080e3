import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { atEnd } from './at-end.ts'

/** An empty folder, removed after the test file. PostgreSQL's own user may enter it, should the tests run as root. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-test-'))
  chmodSync(folder, 0o711)
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Writes files into a folder. @returns the path of each */
export const writerTo =
  (folder: string) =>
  (name: string, text: string | Buffer): string => {
    const path = join(folder, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }

/** A fresh folder with these files: path to text. */
export function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = freshFolder()
  const write = writerTo(folder)
  for (const [name, text] of Object.entries(files)) write(name, text)
  return folder
}
