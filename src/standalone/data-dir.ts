import { accessSync, chmodSync, constants, mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
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
    // PostgreSQL does not run as root: its user has to enter. The files in it are closed one by one.
    if (isNew) chmodSync(dataDir, process.getuid?.() === 0 ? 0o711 : 0o700)
    accessSync(dataDir, constants.W_OK | constants.X_OK)
  } catch (error) {
    const reason = dataDirErrors[reasonOf(error)] ?? reasonOf(error)
    throw new StartError(`DATA_DIR ${dataDir} cannot be written (${reason}): choose another with DATA_DIR=<folder>.`, {
      cause: error,
    })
  }
}

/** Finds out early, before anything is made or started. @throws {StartError} when the API cannot listen there */
export async function checkPort(port: number, host: string): Promise<void> {
  const server = createServer()
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve))
  } catch (error) {
    throw portError(port, host, error)
  }
  await new Promise((resolve) => server.close(resolve))
}

export function portError(port: number, host: string, error: unknown): StartError {
  const code = reasonOf(error)
  const sentences: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is taken by another program: stop that one, or choose another port with PORT=<number>.`,
    EACCES: `Port ${port} on ${host} is not for this user: choose one above 1023 with PORT=<number>.`,
    EADDRNOTAVAIL: `HOST ${host} is not an address of this machine.`,
    ENOTFOUND: `HOST ${host} is not known to this machine.`,
  }
  return new StartError(sentences[code] ?? `Port ${port} on ${host} cannot be listened on (${code}).`, { cause: error })
}
