import { inTime } from '../db/in-time.ts'
import type { Actor } from '../permissions.ts'
import type { Conditions, Engine } from '../plan/engine.ts'
import { type RetryKey, requestDigest, runUnderKey } from '../runs/idempotency.ts'
import { awaitOther } from '../runs/subscribe.ts'
import { unknown } from '../runs/why.ts'
import type { Delivery, LeftMs, Submitted, Submitter } from './submission.ts'
import { outcome } from './wait.ts'

/** A submission that is sent again under its `Idempotency-Key` joins the run of the first. */

/**
 * Waits for the run that was submitted under the same key.
 *
 * @returns undefined when there is none
 * @throws {Problem} `idempotency_key_reused`
 */
export async function joinRun(
  { db, runs }: Submitter,
  submitterPk: number | null,
  retryKey: RetryKey | undefined,
  { isAsync }: Pick<Delivery, 'isAsync'>,
  leftMs: LeftMs,
): Promise<Submitted | undefined> {
  if (retryKey === undefined || submitterPk === null) return undefined
  const first = await inTime(runUnderKey(db, submitterPk, retryKey))
  if (first === undefined) return undefined
  return outcome(first, await awaitOther(db, runs, first, isAsync ? 0 : leftMs()), unknown)
}

/** @param text the blueprint as it is recorded */
export function retryKeyOf(
  { keyring }: Engine,
  conditions: Conditions,
  text: string,
  { key, message }: Delivery,
  { ceiling }: Actor,
): RetryKey | undefined {
  if (key === null) return undefined
  // A message and a reset are left out when they are absent, and no stack is no prune, as version 0.2.0 has it.
  const { reset, stack, ...usual } = conditions
  const others = { ...usual, prune: stack ?? false, ...(reset && { reset }), ...(message !== null && { message }) }
  const digest = (parts: object) => requestDigest(keyring, text, JSON.stringify(parts))
  if (ceiling === undefined) return { key, request: digest(others) }
  // Tokens of one user may be bound differently. Each token of one rule has the same ceiling.
  return { key, request: digest({ ...others, ceiling: [...ceiling].sort() }), former: digest(others) }
}
