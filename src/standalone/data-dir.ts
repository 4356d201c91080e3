import { accessSync, chmodSync, constants, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf, StartError } from '../start-error.ts'

const dataDirErrors: Record<string, string> = {
  EACCES: 'it, or a folder above it, is closed to this user',
  EPERM: 'it, or a folder above it, is closed to this user',
  ENOTDIR: 'a file is in its place',
  EEXIST: 'a file is in its place',
  EROFS: 'its file system is read-only',
  ENOSPC: 'its disk is full',
}

/** Makes `DATA_DIR` when it is missing. @throws {StartError} when it cannot be written */
export function openDataDir(dataDir: string): void {
  try {
    const isNew = mkdirSync(dataDir, { recursive: true }) !== undefined
    // PostgreSQL does not run as root: its user has to enter. The files inside are closed one by one.
    if (isNew) chmodSync(dataDir, process.getuid?.() === 0 ? 0o711 : 0o700)
    accessSync(dataDir, constants.W_OK | constants.X_OK)
  } catch (error) {
    const reason = dataDirErrors[reasonOf(error)] ?? reasonOf(error)
    throw new StartError(`DATA_DIR ${dataDir} cannot be written (${reason}): choose another with DATA_DIR=<folder>.`, {
      cause: error,
    })
  }
}

export const secretKeyFile = (dataDir: string): string => join(dataDir, 'secret-key')

/** SECRET_KEY of an installation, or the key that `npm start` generated; null when there is none. */
export function keptKey({ secretKey, dataDir }: { readonly secretKey: string | null; readonly dataDir: string }) {
  const file = secretKeyFile(dataDir)
  return secretKey ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : null)
}
