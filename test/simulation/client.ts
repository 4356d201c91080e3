import { didNotHappen, isConnectionLost, isTransient } from '../../src/db/errors.ts'
import { isFinished } from '../../src/runs/life.ts'
import { cancelled, type Stage } from './ledgers.ts'
import { live } from './life.ts'
import { type Answer, endOf, type Row } from './watch.ts'
import type { Process, Reply } from './world.ts'

/**
 * The API's part in a run: recorded, enqueued, awaited, cancelled, answered. It is a model of src/submissions/submission.ts and
 * src/runs/subscribe.ts, step by step.
 */

const applyWaitMs = 10_000
const cancelMs = 2_500
const cancelLockMs = 2_000
const recordWithinMs = 2_000
const commitsWithinMs = 1_000
const answersWithinMs = 950
const tryAgainMs = 200
const pollAfterMs = [200, 200, 400, 800, 1_000]

/** One submission, by one process of the API. */
export async function submit(stage: Stage, process: Process, id: string): Promise<void> {
  const { world, queue, watch, flaw } = stage
  const endsAt = world.now() + applyWaitMs
  const stop = { isStopped: false }
  const enqueue = () =>
    queue.enqueue(process, id, 1).catch(() => {
      stop.isStopped = true
      stage.heard.get(id)?.()
    })
  if (flaw === 'enqueued before it is recorded') await enqueue()
  const recordedFrom = world.now()
  try {
    const recording = insert(stage, process, id, world.now() + recordWithinMs)
    if (!(await world.inTime(process, recording, answersWithinMs))) return watch.answered(id, 'cancelled')
  } catch (error) {
    if (didNotHappen(error)) return watch.answered(id, 'cancelled')
    const lastTryAt = Math.max(recordedFrom + recordWithinMs + commitsWithinMs, endsAt - cancelMs)
    return watch.answered(id, await cancelUnrecorded(stage, process, id, lastTryAt))
  }
  const awaited = awaitEnd(stage, process, id, endsAt - cancelMs, stop)
  if (flaw !== 'enqueued before it is recorded') void enqueue()
  watch.answered(id, await awaited)
}

export const newRow = (id: string, now: number): Row => ({
  ...{ id, state: 'queued', attempts: 1, createdAt: now, enqueuedAt: now, applied: null, reason: null, logs: [] },
  failedAttempts: [],
})

/** @returns false when the database got it too late, and wrote nothing */
function insert({ world, database }: Stage, process: Process, id: string, notAfter: number): Promise<boolean> {
  return database.ask(process, 'record', (reply) => {
    if (world.now() >= notAfter) return reply.ok(false)
    if (database.rows.has(id)) return reply.fail(new Error('there is such a run already'))
    database.insert(newRow(id, world.now()), false)
    reply.ok(true)
  })
}

async function awaitEnd(
  stage: Stage,
  process: Process,
  id: string,
  untilMs: number,
  stop: { readonly isStopped: boolean },
): Promise<Answer> {
  const { world, heard } = stage
  for (let polls = 0; world.now() < untilMs && !stop.isStopped; polls += 1) {
    const pause = world.sleep(process, Math.min(pollAfterMs[polls] ?? 1_000, untilMs - world.now()))
    await Promise.race([pause, new Promise<void>((resolve) => heard.set(id, () => world.wake(process, resolve)))])
    if (stop.isStopped) break
    const row = await read(stage, process, id).catch(() => undefined)
    if (row === null) return 'cancelled'
    if (row !== undefined && isFinished(row.state)) return endOf(row)
  }
  const end = await cancelOrRead(stage, process, id, (reply) => cancel(stage, id, reply))
  return end === 'locked' ? 'unknown' : end
}

/** @returns null when there is no such run */
const read = ({ database, world }: Stage, process: Process, id: string): Promise<Row | null> =>
  world.inTime(
    process,
    database.ask(process, 'read', (reply) => {
      const row = database.rows.get(id)
      reply.ok(row === undefined ? null : { ...row })
    }),
    answersWithinMs,
  )

async function cancelOrRead(
  stage: Stage,
  process: Process,
  id: string,
  attempt: (reply: Reply<boolean>) => void,
): Promise<Answer | 'locked'> {
  try {
    if (await stage.database.ask<boolean>(process, 'cancel', attempt)) return 'cancelled'
    const row = await read(stage, process, id)
    return row === null ? 'cancelled' : endOf(row)
  } catch (error) {
    if (isConnectionLost(error)) return 'unknown'
    if (!isTransient(error)) throw error
    return stage.flaw === 'refused cancel is not read' ? 'cancelled' : 'locked'
  }
}

/** Cancels a queued run, once no transaction has locked its row. */
export function cancel({ database, flaw }: Stage, id: string, reply: Reply<boolean>): void {
  const act = () => {
    const row = database.rows.get(id)
    const isCancelled =
      row !== undefined && (flaw === 'cancel without a state check' || live(row, 'cancel').state !== row.state)
    if (isCancelled) database.write(id, cancelled('no worker took it in time'))
    reply.ok(isCancelled)
  }
  if (flaw === 'cancel without a lock') act()
  else database.whenFree(id, cancelLockMs, () => true, reply.fail, act)
}

/** The record may have arrived, or arrive later: its row is written as cancelled. */
async function cancelUnrecorded(stage: Stage, process: Process, id: string, lastTryAt: number): Promise<Answer> {
  const { world, database } = stage
  for (;;) {
    const isLast = world.now() > lastTryAt
    const end = await cancelOrRead(stage, process, id, (reply) => {
      if (database.rows.has(id)) return cancel(stage, id, reply)
      database.insert({ ...newRow(id, world.now()), ...cancelled('the database went away') }, true)
      reply.ok(true)
    })
    if (end === 'locked') return 'unknown'
    if (end !== 'unknown' || isLast) return end
    await world.sleep(process, tryAgainMs)
  }
}
