import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { brokenConstraint } from '../db/errors.ts'
import { execute, query } from '../db/raw.ts'
import type { Keyring } from '../db/seal.ts'
import { Problem } from '../errors.ts'

/**
 * `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header): a submission that is sent again under its key gets the outcome
 * of the first. A key belongs to its submitter and is kept for a day. The statement that records the run writes it, so that there
 * is never one without the other.
 */

export const keyHours = 24

/** A key with a digest of what was sent under it. */
export type RetryKey = {
  readonly key: string
  /** A digest of the document, its conditions, and the ceiling of the token. */
  readonly request: Buffer
  /** The digest without the ceiling, as runs before format 8 have it. */
  readonly former?: Buffer
}

export const requestDigest = (keyring: Keyring, ...parts: readonly string[]): Buffer =>
  keyring.digest('idempotency', JSON.stringify(parts))

const keyRow = z.object({ run: z.guid(), isSame: z.boolean(), isFree: z.boolean() })

/**
 * The run that was recorded under this key. A run that ended without an effect, and whose answer asked to send it again, frees
 * the key; one that a user cancelled does not.
 *
 * @returns undefined when the key is free
 * @throws {Problem} `idempotency_key_reused` when another document or other conditions were sent under the key
 */
export async function runUnderKey(db: Db, submitter: number, retryKey: RetryKey): Promise<string | undefined> {
  const { key, request, former = request } = retryKey
  const [found] = await query(db, keyRow, {
    text: `SELECT k.run_id AS run, k.request = CASE WHEN r.format < 8 THEN $5::bytea ELSE $3::bytea END AS "isSame",
        r.id IS NULL OR (r.state = 'cancelled' AND r.options->>'cancelled_by' IS NULL) OR (r.state = 'failed' AND r.reason = 'unavailable')
          OR k.created_at < now() - make_interval(hours => $4::integer) AS "isFree"
      FROM idempotency_keys k LEFT JOIN runs r ON r.id = k.run_id
      WHERE k.submitter_pk = $1::integer AND k.key = $2`,
    values: [submitter, key, request, keyHours, former],
  })
  if (found === undefined) return undefined
  if (found.isFree) {
    await execute(db, {
      text: 'DELETE FROM idempotency_keys WHERE submitter_pk = $1::integer AND key = $2 AND run_id = $3::uuid',
      values: [submitter, key, found.run],
    })
    return undefined
  }
  if (found.isSame) return found.run
  throw new Problem(
    'idempotency_key_reused',
    'Something else was sent under this Idempotency-Key in the last 24 hours: take another key.',
  )
}

/** Whether another request recorded a run under the same key at the same time. */
export const isKeyTaken = (error: unknown): boolean =>
  brokenConstraint(error)?.constraint?.includes('idempotency_keys_pkey') === true
