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
const notReady = z.object({ status: z.literal('not_ready'), detail: z.string(), code: z.literal('unavailable'), checks })

type Check = z.infer<typeof check>
type Checks = z.infer<typeof checks>

const retryAfterS = 2

export function healthRoutes(app: Api, db: Db, queue: ApplyQueue): void {
  // That it answers is the answer: a database that is away is no reason to restart this process.
  app.get('/-/health/live/', { config: { permission: 'anyone' }, schema: { response: { 200: live } } }, () => ({ status: 'ok' as const }))

  const lookAtAll = inspect(db, queue)
  app.get(
    '/-/health/ready/',
    { config: { permission: 'anyone' }, schema: { response: { 200: ready, 503: notReady } } },
    async ({ log }, reply) => {
      const found = await lookAtAll((part, error) => console.log(part, String(error), String((error as Error).cause ?? '')) ?? log.warn({ err: error, part }, 'not ready'))
      reply.header('Cache-Control', 'no-store')
      const wrong = Object.values(found).filter(({ ok }) => !ok)
      if (wrong.length === 0) return { status: 'ready' as const, checks: found }
      const detail = `Not ready. ${wrong.map((each) => each.detail).join(' ')}`
      return reply.code(503).header('Retry-After', retryAfterS).send({ status: 'not_ready', detail, code: 'unavailable', checks: found })
    },
  )
}

const well = (detail: string): Check => ({ ok: true, detail })
const ill = (detail: string): Check => ({ ok: false, detail })

const cannotTell = 'cannot be told while the database does not answer.'

/** All four at once, each bounded: together they take no longer than the slowest. */
function inspect(db: Db, queue: ApplyQueue): (report: (part: string, error: unknown) => void) => Promise<Checks> {
  const quick = bounded(db, statementWithinMs)
  const ask = {
    database: probe(() => quick.query(sql`SELECT 1`)),
    migrations: probe(() => isMigrated(quick)),
    queue: probe(() => queue.getJobCounts('waiting')),
    worker: probe(() => sinceConsumptionS(quick)),
  }
  return async (report) => {
    const or = (part: keyof Checks, detail: string) => (error: unknown) => {
      report(part, error)
      return ill(detail)
    }
    const [database, migrations, answered, worker] = await Promise.all([
      ask.database().then(() => well('PostgreSQL answers.'), or('database', 'PostgreSQL does not answer: does it run, and is DATABASE_URL right?')),
      ask.migrations().then(judgeMigrations, or('migrations', `Whether all migrations are applied ${cannotTell}`)),
      ask.queue().then(() => well('The queue answers.'), or('queue', 'The queue does not answer: does its server run, and is REDIS_URL, or else DATABASE_URL, right?')),
      ask.worker().then(judgeWorker, or('worker', `When a worker last consumed ${cannotTell}`)),
    ])
    return { database, migrations, queue: answered, worker }
  }
}

const judgeMigrations = (all: boolean): Check =>
  all ? well('All migrations are applied.') : ill('Migrations of this version are missing in the database: start the API again, which applies them.')

/** Five canaries missed. A worker that stops consuming is seen within this and a probe's period. */
const consumedWithinS = 10

function judgeWorker(sinceS: number | null): Check {
  if (sinceS === null) return ill('No worker has ever taken a job: start one.')
  if (sinceS <= consumedWithinS) return well('A worker takes jobs.')
  return ill(`No worker has taken a job for ${Math.round(sinceS)} s, though there is one every other second: it is stopped, stuck or cut off from the queue.`)
}
