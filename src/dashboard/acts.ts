import { auditRow } from '../apply/audit.ts'
import type { Db } from '../db/client.ts'
import type { Actor } from '../permissions.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { applyQueue } from '../queue/define.ts'
import { answered } from '../queue/enqueue.ts'
import type { Pause } from '../queue/pause.ts'

/**
 * The acts of operators on the queue. Each act has an audit row with the operator's name, the object and the value. The row is
 * written first: it records the request, also of an act that then fails. `nothingToDo` says when none is called for.
 */
export const acts = { pause, resume, clear } as const

export type Act = keyof typeof acts

/** The state that an act changes. @property failed the number of failed jobs */
export type QueueState = { readonly pause: Pause | null; readonly failed: number }

/** @property reason the operator's reason; null when none was given */
type Operator = { readonly actor: Actor; readonly requestId: string; readonly reason: string | null }

/** The longest reason, in characters: the column has no more. */
export const longestReason = 200

async function pause(db: Db, queue: ApplyQueue, operator: Operator): Promise<void> {
  const { name } = applyQueue
  const { actor, reason } = operator
  await db.$transaction([
    record(db, operator, { action: 'pause_queue', field: 'paused', value: true }),
    db.queuePause.deleteMany({ where: { queue: name } }),
    db.queuePause.create({ data: { queue: name, pausedBy: actor.username, reason } }),
  ])
  await answered(queue.pause())
}

async function resume(db: Db, queue: ApplyQueue, operator: Operator): Promise<void> {
  await record(db, operator, { action: 'resume_queue', field: 'paused', value: false })
  await answered(queue.resume())
  await db.queuePause.deleteMany({ where: { queue: applyQueue.name } })
}

/** Jobs that are removed at once: during one removal, the store does nothing else. */
const removedAtOnce = 1_000
const maxRemovals = 10

/** Removes the failed jobs. Their runs stay. */
async function clear(db: Db, queue: ApplyQueue, operator: Operator, { failed }: QueueState): Promise<void> {
  await record(db, operator, { action: 'clear_failed_jobs', field: 'failed_jobs', value: failed })
  for (let round = 0; round < maxRemovals; round += 1) {
    const removed = await answered(queue.clean(0, removedAtOnce, 'failed'))
    if (removed.length < removedAtOnce) return
  }
}

type QueueChange = { readonly action: string; readonly field: string; readonly value: boolean | number }

function record(db: Db, { actor, requestId, reason }: Operator, { action, field, value }: QueueChange) {
  const why = reason !== null && { reason }
  const changes = [{ model: 'queue', key: applyQueue.name, action: 'update', fields: [field], value, ...why }] as const
  return db.auditRow.create({ data: auditRow({ actor, requestId, action, changes }) })
}
