import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from './at-end.ts'

/** An empty folder, removed after the test file. PostgreSQL's own user may enter it, should the tests run as root. */
export function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatewright-test-'))
  chmodSync(folder, 0o711)
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
