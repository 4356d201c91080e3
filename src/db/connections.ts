import { z } from 'zod'
import type { Db } from './client.ts'
import { silentAfterS } from './presence.ts'
import { query } from './raw.ts'

/** The number of connections to PostgreSQL that a process may take: docs/scaling.md has the table. */

/** The storage of the queue: on PostgreSQL it takes connections, too. */
type QueueKind = 'redis' | 'postgres'

/** The most connections of each pool. */
export const poolSizes = {
  api: 16,
  worker: (concurrency: number) => concurrency + 3,
  /** BullMQ's pools, with the queue on PostgreSQL: `queue` adds jobs, `queueWorker` takes them. */
  queue: 8,
  queueWorker: (concurrency: number) => concurrency + 2,
} as const

/** The connection that waits for notifications. */
const listening = 1

export const connectionsOfApi = (queue: QueueKind): number =>
  poolSizes.api + listening + (queue === 'postgres' ? poolSizes.queue : 0)

export const connectionsOfWorker = (concurrency: number, queue: QueueKind): number =>
  poolSizes.worker(concurrency) +
  (queue === 'postgres' ? poolSizes.queueWorker(concurrency) + listening + poolSizes.queue : 0)

const demandRow = z.object({ usable: z.int(), servers: z.int(), workers: z.int(), slots: z.int() })

/**
 * Compares the connections that this process and the others with a heartbeat may take with those that PostgreSQL gives to
 * ordinary logins. A process that is being replaced counts until it has ended, and one that was killed until it is silent.
 *
 * @param own the part of this process, which has sent no heartbeat yet
 * @returns a sentence for the operator; null when there are enough
 */
export async function tooFewConnections(
  db: Db,
  queue: QueueKind,
  own: { readonly concurrency: number | null },
): Promise<string | null> {
  const [found] = await query(db, demandRow, {
    text: `SELECT current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
        - coalesce(current_setting('reserved_connections', true), '0')::integer AS usable,
      (SELECT count(*)::integer FROM servers WHERE seen_at > now() - make_interval(secs => $1)) AS servers,
      count(*)::integer AS workers, coalesce(sum(slots), 0)::integer AS slots
      FROM workers WHERE seen_at > now() - make_interval(secs => $1)`,
    values: [silentAfterS],
  })
  if (found === undefined) return null
  const { usable } = found
  const servers = found.servers + (own.concurrency === null ? 1 : 0)
  const workers = found.workers + (own.concurrency === null ? 0 : 1)
  const slots = found.slots + (own.concurrency ?? 0)
  // Workers with different concurrencies take as many connections as the same number of workers with the mean.
  const taken =
    servers * connectionsOfApi(queue) + (workers === 0 ? 0 : workers * connectionsOfWorker(slots / workers, queue))
  if (taken <= usable) return null
  return `${servers} API and ${workers} worker processes may take ${Math.ceil(taken)} connections to PostgreSQL, and it gives ${usable} (max_connections, without those kept for superusers): raise max_connections, or lower WORKER_CONCURRENCY (docs/scaling.md). Processes that are being replaced are counted, too.`
}
