import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { reasonOf, StartError } from '../start-error.ts'

/** @throws {StartError} when `DATA_DIR` cannot be written */
export function openDataDir(dataDir: string): void {
  try {
    mkdirSync(dirname(dataDir), { recursive: true })
    if (makeFolder(dataDir)) {
      // As root, PostgreSQL's own user must pass through it; what is in it is closed to others file by file.
      chmodSync(dataDir, process.getuid?.() === 0 ? 0o711 : 0o700)
    }
    const probe = join(dataDir, `probe-${process.pid}`)
    writeFileSync(probe, '')
    rmSync(probe)
  } catch (error) {
    throw new StartError(
      `DATA_DIR ${dataDir} cannot be written (${explain(error)}): choose another with DATA_DIR=<folder>.`,
      { cause: error },
    )
  }
}

/** @returns false when there is one already */
function makeFolder(path: string): boolean {
  try {
    mkdirSync(path)
    return true
  } catch (error) {
    if (reasonOf(error) === 'EEXIST') return false
    throw error
  }
}

const explanations: Record<string, string> = {
  EACCES: 'it, or a folder above it, is closed to this user',
  EPERM: 'it, or a folder above it, is closed to this user',
  ENOTDIR: 'a file is in its place',
  EEXIST: 'a file is in its place',
  EROFS: 'its file system is read-only',
  ENOSPC: 'its disk is full',
}

const explain = (error: unknown): string => explanations[reasonOf(error)] ?? reasonOf(error)

/** @throws {StartError} when the API could not listen there; asked before anything is made or started */
export async function checkPort(port: number, host: string): Promise<void> {
  const probe = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject)
      probe.listen(port, host, resolve)
    })
  } catch (error) {
    throw portError(port, host, error)
  }
  await new Promise((resolve) => probe.close(resolve))
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
