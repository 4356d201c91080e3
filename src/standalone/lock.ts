import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { attempt } from '../attempt.ts'
import { StartError } from '../start-error.ts'

/** https://www.sqlite.org/rescode.html#busy */
const sqliteBusy = 5

/** Open locks are referred to from here, because the garbage collector would close them otherwise. */
const openLocks = new Set<DatabaseSync>()

/**
 * Locks a `DATA_DIR`: one start at a time works on it. The lock is the operating system's, on a file, and ends with this process
 * in any case. Node can take such a lock only through SQLite (ADR 21).
 *
 * @returns a function that releases the lock; null when another process holds it
 */
export function tryLock(dataDir: string): (() => void) | null {
  const database = new DatabaseSync(join(dataDir, 'start.lock'))
  try {
    database.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    database.close()
    if (!(error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy)) throw error
    return null
  }
  openLocks.add(database)
  writeFileSync(pidFile(dataDir), `${process.pid}\n`)
  return () => {
    openLocks.delete(database)
    database.close()
  }
}

/** @throws {StartError} when another process holds the lock */
export function lock(dataDir: string): () => void {
  const release = tryLock(dataDir)
  if (release !== null) return release
  // It is not there yet when the other process has just taken the lock.
  const pid = attempt(() => readFileSync(pidFile(dataDir), 'utf8').trim()) ?? 'unknown'
  throw new StartError(
    `Gatewright already runs on ${dataDir} (process ${pid}): stop that one first, or choose another DATA_DIR.`,
  )
}

const pidFile = (dataDir: string): string => join(dataDir, 'start.pid')
