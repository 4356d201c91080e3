import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'

/**
 * A secret that lives in a file which only its owner may read: read from there, or made and put there. The file is
 * whole from the moment it exists.
 */
export function keepSecret(file: string, make: () => string): string {
  if (!existsSync(file)) {
    const half = `${file}.half`
    writeFileSync(half, `${make()}\n`, { mode: 0o600, flush: true })
    renameSync(half, file)
  }
  return readFileSync(file, 'utf8').trim()
}
