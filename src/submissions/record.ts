import { setTimeout as delay } from 'node:timers/promises'
import { didNotHappen, isConnectionLost, refusesWrites, statementProblem } from '../db/errors.ts'
import { inTime } from '../db/in-time.ts'
import { isKeyTaken } from '../runs/idempotency.ts'
import { type NewRun, recordCancelled, recordRun } from '../runs/ledger.ts'
import { cancelOrRead } from '../runs/subscribe.ts'
import { databaseAway } from '../runs/why.ts'
import type { Admission } from './backlog.ts'
import { joinRun } from './join.ts'
import type { LeftMs, Submitted, Submitter } from './submission.ts'
import { cancelled, cancelMsOf, ended, fieldsOf } from './wait.ts'

/** The record of a run: once, in time or never. */

/** Milliseconds by the clock of the database; more than the API waits for the statement. */
const recordWithinMs = 2_000
/** A statement that began in time may wait for a lock (`apiLockMs`) before it commits. */
const commitsWithinMs = 1_000
const tryAgainMs = 200
const maxKeyTries = 3

type Recording = { readonly admission: Admission; readonly isAsync: boolean; readonly leftMs: LeftMs }

/**
 * Records a run, or joins one that another request records under the same key at the same time.
 *
 * @returns the priority of its job; the answer when the run is that of another request, or could not be recorded
 * @throws {Problem} `cancelled`, `idempotency_key_reused`
 */
export async function record(
  submitter: Submitter,
  run: NewRun,
  { admission, isAsync, leftMs }: Recording,
): Promise<number | Submitted> {
  const { db, engine } = submitter
  for (let tries = 1; ; tries += 1) {
    if (leftMs() < cancelMsOf(submitter)) throw cancelled({ sentence: 'its check took too long' }, { retryAfterS: 1 })
    const from = performance.now()
    try {
      const notAfterMs = admission.databaseNow() + recordWithinMs
      const priority = await inTime(recordRun(db, engine.keyring, run, { notAfterMs, isFlushed: isAsync }))
      if (priority === null) throw cancelled({ sentence: 'the database was too slow' }, { retryAfterS: 1 })
      return priority
    } catch (error) {
      if (!isKeyTaken(error)) {
        const finalAt = from + recordWithinMs + commitsWithinMs
        const lastTryAt = Math.max(finalAt, performance.now() + leftMs() - cancelMsOf(submitter))
        return cancelUnrecorded(submitter, run, { error: statementProblem(error), lastTryAt })
      }
      if (tries === maxKeyTries) throw error
      const joined = await joinRun(submitter, run.submitter.pk, run.retryKey, { isAsync }, leftMs)
      if (joined !== undefined) return joined
    }
  }
}

/**
 * Cancels a run that may exist all the same, or arrive later, so that no worker applies it. Without an answer of the database the
 * outcome is unknown; it is reported when the record can no longer arrive, so that a 404 is final.
 */
async function cancelUnrecorded(
  submitter: Submitter,
  run: NewRun,
  { error, lastTryAt }: { readonly error: unknown; readonly lastTryAt: number },
): Promise<Submitted> {
  const { db, engine, log } = submitter
  if (refusesWrites(error))
    throw cancelled({ sentence: 'the database accepts no changes' }, { retryAfterS: 5, cause: error })
  if (!isConnectionLost(error) || didNotHappen(error)) throw error
  log.debug(fieldsOf(run, error), 'the connection was lost while recording')
  for (;;) {
    const isLast = performance.now() > lastTryAt
    const end = await cancelOrRead(db, run.id, (tx) => recordCancelled(tx, engine.keyring, run, databaseAway))
    if (end !== 'unknown' || isLast) return ended(submitter, run, end, databaseAway, error)
    await delay(tryAgainMs)
  }
}
