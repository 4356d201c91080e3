import { setTimeout as delay } from 'node:timers/promises'
import type { Db } from '../db/client.ts'
import { throwProblem } from '../db/errors.ts'
import { isMigrated } from '../db/migrate.ts'
import type { Logger } from '../log.ts'
import { StartError } from '../start-error.ts'
import { reportWaiting } from './heartbeat.ts'

const everyMs = 1_000
/** A supervisor starts the worker again after this time, and the new one waits too. */
const waitsMs = 60_000

/**
 * Waits until an API of this version has migrated the database. Meanwhile, an API of an earlier version reports that it must be
 * replaced first.
 *
 * @throws {StartError} after a minute; {Problem} `unavailable` when the database is away
 */
export async function untilMigrated(db: Db, log: Logger, withinMs = waitsMs): Promise<void> {
  const deadline = performance.now() + withinMs
  for (let isLogged = false; !(await isMigrated(db).catch(throwProblem)); isLogged = true) {
    if (performance.now() > deadline)
      throw new StartError(
        'The database lacks migrations of this version: start an API of this version first, which applies them.',
      )
    if (!isLogged)
      log.warn('waiting for the migrations of this version: start an API of this version, which applies them')
    // The table is missing too in a database of version 0.1.0.
    await reportWaiting(db).catch(() => {})
    await delay(everyMs)
  }
}
