import type { FastifyBaseLogger } from 'fastify'
import { z } from 'zod'
import { bounded } from '../db/bounded.ts'
import type { Db } from '../db/client.ts'
import { isMigrated } from '../db/migrate.ts'
import { sql } from '../db/sql.ts'
import type { Api } from '../http/api.ts'
import { probe, statementWithinMs } from '../http/probe.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { sinceConsumptionS } from '../queue/heartbeat.ts'

/**
 * GET /-/health/live/ and /-/health/ready/, for whoever restarts processes and steers traffic: without a token, and
 * without a word that would help a stranger.
 */

const check = z.object({ ok: z.boolean(), detail: z.string() })
const checks = z.object({ database: check, migrations: check, queue: check, worker: check })

const live = z.object({ status: z.literal('ok') })
const ready = z.object({ status: z.literal('ready'), checks })
/** Shaped as every other 503, with the checks beside. */
const notReady = z.object({
  status: z.literal('not_ready'),
  detail: z.string(),
  code: z.literal('unavailable'),
  checks,
})

type Check = z.infer<typeof check>
type Checks = z.infer<typeof checks>

const retryAfterS = 2

export function healthRoutes(app: Api, db: Db, queue: ApplyQueue): void {
  // That it answers is the answer: a database that is away is no reason to restart this process.
  app.get('/-/health/live/', { config: { permission: 'anyone' }, schema: { response: { 200: live } } }, () => ({
    status: 'ok' as const,
  }))

  const inspect = inspector(db, queue, app.log)
  app.get(
    '/-/health/ready/',
    { config: { permission: 'anyone' }, schema: { response: { 200: ready, 503: notReady } } },
    async (_, reply) => {
      const found = await inspect()
      reply.header('Cache-Control', 'no-store')
      const wrong = Object.values(found).filter(({ ok }) => !ok)
      if (wrong.length === 0) return { status: 'ready' as const, checks: found }
      const detail = `Not ready. ${wrong.map((each) => each.detail).join(' ')}`
      reply.code(503).header('Retry-After', retryAfterS)
      return { status: 'not_ready' as const, detail, code: 'unavailable' as const, checks: found }
    },
  )
}

const well = (detail: string): Check => ({ ok: true, detail })
const ill = (detail: string): Check => ({ ok: false, detail })

const cannotTell = 'cannot be told while the database does not answer.'

/** All four at once, each bounded: together they take no longer than the slowest. */
function inspector(db: Db, queue: ApplyQueue, log: FastifyBaseLogger): () => Promise<Checks> {
  const quick = bounded(db, statementWithinMs)

  /** What changes is logged, with its cause; what stays as it was is not told again for each probe. */
  function part<Answer>(
    name: keyof Checks,
    ask: () => Promise<Answer>,
    judge: (answer: Answer) => Check,
    silent: string,
    // For so long it may be starting beside this process: nobody needs to be told that it is not well yet.
    startsWithinS = 0,
  ) {
    const question = probe(ask)
    const toldFrom = performance.now() + startsWithinS * 1_000
    let last = true
    return async (): Promise<Check> => {
      let cause: unknown
      const found = await question().then(judge, (error: unknown) => {
        cause = error
        return ill(silent)
      })
      if (found.ok !== last && (found.ok || performance.now() > toldFrom)) {
        log[found.ok ? 'info' : 'warn']({ part: name, ...(cause !== undefined && { err: cause }) }, found.detail)
        last = found.ok
      }
      return found
    }
  }

  const lookAtDatabase = part(
    'database',
    () => quick.query(sql`SELECT 1`),
    () => well('PostgreSQL answers.'),
    'PostgreSQL does not answer: does it run, and is DATABASE_URL right?',
  )
  const lookAtMigrations = part(
    'migrations',
    () => isMigrated(quick),
    judgeMigrations,
    `Whether all migrations are applied ${cannotTell}`,
  )
  const lookAtQueue = part(
    'queue',
    () => queue.getJobCounts('waiting'),
    () => well('The queue answers.'),
    'The queue does not answer: does its server run, and is REDIS_URL, or else DATABASE_URL, right?',
  )
  const lookAtWorker = part(
    'worker',
    () => sinceConsumptionS(quick),
    judgeWorker,
    `When a worker last took a job ${cannotTell}`,
    consumedWithinS,
  )
  return async () => {
    const [database, migrations, answering, worker] = await Promise.all([
      lookAtDatabase(),
      lookAtMigrations(),
      lookAtQueue(),
      lookAtWorker(),
    ])
    return { database, migrations, queue: answering, worker }
  }
}

const judgeMigrations = (all: boolean): Check =>
  all
    ? well('All migrations are applied.')
    : ill('Migrations of this version are missing in the database: start the API again, which applies them.')

/** Five canaries missed. A worker that stops consuming is seen within this and a probe's period. */
const consumedWithinS = 10

function judgeWorker(sinceS: number | null): Check {
  if (sinceS === null) return ill('No worker has ever taken a job: start one.')
  if (sinceS <= consumedWithinS) return well('A worker takes jobs.')
  return ill(
    `No worker has taken a job for ${Math.round(sinceS)} s, though there is one every other second: it is stopped, stuck or cut off from the queue.`,
  )
}
