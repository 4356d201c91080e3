import { auditRow } from '../apply/audit.ts'
import type { Db } from '../db/client.ts'
import type { Actor } from '../permissions.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { applyQueue } from '../queue/define.ts'
import { answered } from '../queue/enqueue.ts'

/**
 * The acts of operators on the queue. Each act has an audit row with the operator's name, the object and the value. The row is
 * written first: it records the request, also of an act that then fails. `isDue` says whether one is called for.
 */
export const acts = { pause, resume } as const

export type Act = keyof typeof acts

/** @property reason the operator's reason; null when none was given */
type Operator = { readonly actor: Actor; readonly requestId: string; readonly reason: string | null }

/** The longest reason, in characters: the column has no more. */
export const longestReason = 200

async function pause(db: Db, queue: ApplyQueue, operator: Operator): Promise<void> {
  const { name } = applyQueue
  const { actor, reason } = operator
  await db.$transaction([
    record(db, operator, 'pause_queue', true),
    db.queuePause.deleteMany({ where: { queue: name } }),
    db.queuePause.create({ data: { queue: name, pausedBy: actor.username, reason } }),
  ])
  await answered(queue.pause())
}

async function resume(db: Db, queue: ApplyQueue, operator: Operator): Promise<void> {
  await record(db, operator, 'resume_queue', false)
  await answered(queue.resume())
  await db.queuePause.deleteMany({ where: { queue: applyQueue.name } })
}

function record(db: Db, { actor, requestId, reason }: Operator, action: string, isPaused: boolean) {
  const row = { model: 'queue', key: applyQueue.name, action: 'update', fields: ['paused'] } as const
  const changes = [{ ...row, value: isPaused, ...(reason !== null && { reason }) }]
  return db.auditRow.create({ data: auditRow({ actor, requestId, action, changes }) })
}
