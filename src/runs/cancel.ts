import { auditRow } from '../apply/audit.ts'
import type { Db } from '../db/client.ts'
import { inTime, noAnswer } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import { runPath } from '../paths.ts'
import { type Actor, allows, isOutOfBonds } from '../permissions.ts'
import { notifyEnded } from './ended.ts'
import { cancelRun } from './ledger.ts'
import { isWithinCeiling, mayReadRun, noSuchRun, optionsOf } from './options.ts'
import { cancelOrRead, type WaitResult } from './subscribe.ts'
import type { Tally } from './tally.ts'
import { cancelledBy } from './why.ts'

/** A user cancels a run that waits: it is not applied, and the answer to its submitter does not ask for a repetition. */

const select = { submitterPk: true, options: true, kind: true, mode: true } as const

/**
 * Cancels a run for its submitter, or with `manage_queue` for a caller who may see it. A token that is bound to stacks cancels runs
 * of these alone. The row keeps who it was; while impersonating, the real user.
 *
 * @throws {Problem} `not_found`, `permission_denied`, `unavailable`; `conflict` when a worker has it, and when it has ended
 */
export async function cancelForUser(
  { db, tally }: { readonly db: Db; readonly tally: Tally },
  id: string,
  actor: Actor,
  requestId: string,
): Promise<void> {
  const run = await inTime(db.run.findUnique({ where: { id }, select }))
  if (run === null || !mayReadRun(run, actor)) throw noSuchRun(actor)
  requireCancel(run, actor)
  const by = (actor.impersonator ?? actor).username
  const end = await cancelOrRead(db, id, async (tx) => {
    if (!(await cancelRun(tx, id, cancelledBy(by), by))) return false
    const changes = [{ model: 'run', key: id, action: 'update', fields: ['state'] }] as const
    await tx.auditRow.create({ data: auditRow({ actor, action: 'cancel_run', changes, requestId, runId: id }) })
    return true
  })
  if (end !== 'cancelled') throw refusal(id, end)
  const { kind, mode } = run
  tally.ended({ kind, mode, outcome: 'cancelled', reason: 'user' })
  notifyEnded(db, id)
}

function requireCancel(run: { readonly submitterPk: number | null; readonly options: unknown }, actor: Actor): void {
  if (isOutOfBonds(actor, optionsOf(run)?.stack ?? null))
    throw new Problem('permission_denied', 'The token is bound to other stacks.')
  const isOwn = actor.pk !== null && run.submitterPk === actor.pk
  if ((isOwn && isWithinCeiling(run, actor.ceiling)) || allows(actor, 'manage_queue')) return
  const which = isOwn ? 'a run that had more rights than this token' : "another user's run"
  throw new Problem('permission_denied', `To cancel ${which} you need the permission manage_queue.`)
}

function refusal(id: string, end: Exclude<WaitResult, 'cancelled'>): Problem {
  if (end === 'vanished') return noSuchRun()
  if (end === 'unknown') return noAnswer()
  if (end === 'locked')
    return new Problem(
      'conflict',
      `A worker has this run: it can no longer be cancelled. Its outcome will stand at ${runPath(id)}.`,
    )
  const { state, applied, cancelledBy } = end
  const done = applied === true ? 'applied' : 'not applied'
  const outcome = state === 'done' ? done : cancelledBy === null ? state : `${state} by ${cancelledBy}`
  return new Problem('conflict', `This run has ended: ${outcome}. What became of it stands at ${runPath(id)}.`)
}
