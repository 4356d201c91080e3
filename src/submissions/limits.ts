import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import { type Actor, mayWriteAnything } from '../permissions.ts'
import { queuedEntriesOf } from '../runs/queued.ts'
import type { Backlog } from './backlog.ts'
import type { Delivery, Submission, Submitter } from './submission.ts'

/** The limits on all submissions, and on those of one user. */

/**
 * Refuses submissions while too many are waiting, before they cost anything: authentication would wait for a connection to
 * the database behind those that were admitted.
 */
export function refuseWhileFull(app: FastifyInstance, backlog: Backlog): void {
  app.addHook('onRequest', async (request: Arriving) => {
    if (request.routeOptions.config.takes !== 'run') return
    request[arrived] = backlog.arrive({ mayJoin: request.headers['idempotency-key'] !== undefined })
  })
  const hasArrived = async (request: Arriving) => request[arrived]?.()
  // The first hook comes after authentication. The others are for requests that are refused or cut off before.
  app.addHook('preParsing', hasArrived)
  app.addHook('onResponse', hasArrived)
  app.addHook('onRequestAbort', hasArrived)
}

const arrived = Symbol('arrived')
type Arriving = FastifyRequest & { [arrived]?: () => void }

/** The most entries of a short run: short runs go before longer ones. */
export const fewEntries = 100

/** @throws {Problem} `too_many_requests` when this user has submitted too much already */
export async function refuseMore(
  { db, queuedEntries }: Submitter,
  { blueprint }: Submission,
  actor: Actor,
  { isAsync }: Delivery,
): Promise<void> {
  if (actor.pk === null) return
  if (isAsync) await refuseQueued(db, actor.pk, Math.max(blueprint.entries.length, fewEntries), queuedEntries)
  if (!mayWriteAnything(actor)) await refuseReader(db, actor.pk)
}

/** Refuses more queued entries of one user: nothing else limits submissions that do not wait. */
async function refuseQueued(db: Db, submitter: number, entries: number, most: number): Promise<void> {
  const waiting = await inTime(queuedEntriesOf(db, submitter, fewEntries))
  if (waiting === 0 || waiting + entries <= most) return
  const detail = `Your runs that wait have ${waiting} entries already, where each counts as ${fewEntries} at least, and with these ${entries} there would be more than the ${most} of QUEUED_ENTRIES. Nothing was changed: try again when some have ended.`
  throw new Problem('too_many_requests', detail, { retryAfterS: 5 })
}

/** The limit of a caller who may write nothing: its documents do nothing, and would fill the ledger. */
const mostOfReader = { runs: 200, hours: 24 } as const

async function refuseReader(db: Db, submitterPk: number): Promise<void> {
  const since = new Date(Date.now() - mostOfReader.hours * 3_600_000)
  const runs = await inTime(db.run.count({ where: { submitterPk, createdAt: { gt: since } } }))
  if (runs < mostOfReader.runs) return
  const detail = `A user without a permission to write has at most ${mostOfReader.runs} runs within ${mostOfReader.hours} hours.`
  throw new Problem('too_many_requests', detail, { retryAfterS: 3_600 })
}
