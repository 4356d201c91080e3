import type { FastifyReply, FastifyRequest } from 'fastify'
import { check } from '../apply/check.ts'
import { type EngineReader, reader } from '../db/engine-tx.ts'
import { noAnswer, patience } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import type { Actor } from '../permissions.ts'
import type { Plan } from '../plan/compile.ts'
import type { Conditions } from '../plan/engine.ts'
import { limitTime } from '../time-limit.ts'
import type { Submitter } from './submission.ts'

/** The check of a document within its request: it ends when the client goes away, and when the time is up. */

/**
 * The most entries of a document that the API checks. A longer one is checked by the worker alone, and answered with 202 at once:
 * its check would take longer than a client waits on a busy machine.
 */
export const maxChecked = 2_000

type Checking = { readonly plan: Plan; readonly actor: Actor; readonly conditions: Conditions; readonly leftMs: number }

export const isLarge = ({ steps }: Plan): boolean => steps.length > maxChecked

/** @throws {Problem} those of `check`, and `unavailable` when the time is up */
export async function checkInTime(
  { db, engine, applyWaitMs }: Submitter,
  request: Pick<FastifyRequest, 'keepShare'>,
  reply: Pick<FastifyReply, 'raw'>,
  { plan, actor, conditions, leftMs }: Checking,
): Promise<void> {
  if (isLarge(plan)) return plan.errors.throwIfAny()
  const stop = new AbortController()
  const gone = () => stop.abort(new Problem('unavailable', 'The client went away before its document was checked.'))
  const asked = clocked(reader(db))
  const work = check(asked.reader, engine, plan, actor, conditions, stop.signal)
  request.keepShare(work)
  reply.raw.once('close', gone)
  try {
    await limitTime(work, leftMs, () => {
      const late = asked.waitsMs() >= patience() ? noAnswer() : slow(applyWaitMs)
      stop.abort(late)
      throw late
    })
  } finally {
    reply.raw.off('close', gone)
  }
}

function slow(applyWaitMs: number): Problem {
  const detail = `The check of this document was not done within ${applyWaitMs / 1_000} s. Nothing was changed: try again when the service has less to do, or send it in smaller parts.`
  return new Problem('unavailable', detail, { retryAfterS: 5 })
}

/** A reader that measures for how long the database has not answered. */
function clocked(inner: EngineReader): { readonly reader: EngineReader; waitsMs(): number } {
  const waiting = new Set<{ readonly since: number }>()
  return {
    reader: {
      ...inner,
      query: async (row, statement) => {
        const asked = { since: performance.now() }
        waiting.add(asked)
        return inner.query(row, statement).finally(() => waiting.delete(asked))
      },
    },
    waitsMs: () => Math.max(0, ...[...waiting].map(({ since }) => performance.now() - since)),
  }
}
