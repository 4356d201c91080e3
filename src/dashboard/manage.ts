import formbody from '@fastify/formbody'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import type { Api } from '../http/api.ts'
import { allows } from '../permissions.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { answered } from '../queue/enqueue.ts'
import { readPause } from '../queue/pause.ts'
import { readWorkers } from '../queue/workers.ts'
import { repairs } from '../runs/ledger.ts'
import { mayReadRun } from '../runs/options.ts'
import { runSummarySelect, runView, toRunSummary } from '../views/run.ts'
import { acts } from './acts.ts'
import { managePage, managePath, messagePage, ownPagePolicy, runPage, runPagePath } from './pages.ts'

/** The pages beside the board: the state of the queue and the acts of operators, and a run. */

const html = 'text/html; charset=utf-8'

/** helmet writes into `config`. The hook of the scope asks for the session, and for `manage_queue` before an act. */
const options = () => ({ config: { permission: 'anyone' } as const, helmet: ownPagePolicy })

export async function manageRoutes(app: Api, db: Db, queue: ApplyQueue): Promise<void> {
  await app.register(formbody, { bodyLimit: 1_024 })

  app.get(managePath, options(), async ({ actor }, reply) => {
    const [pause, { failed = 0 }, workers] = await Promise.all([
      readPause(queue, db),
      answered(queue.getJobCounts('failed')),
      inTime(readWorkers(db)),
    ])
    return reply.type(html).send(managePage({ pause, failed, mayManage: allows(actor, 'manage_queue'), workers }))
  })

  for (const [name, act] of Object.entries(acts))
    app.post(`${managePath}${name}/`, options(), async ({ actor, id: requestId }, reply) => {
      await act(db, queue, { actor, requestId })
      return reply.redirect(managePath, 303)
    })

  app.get(
    runPagePath(':id'),
    { ...options(), schema: { params: z.object({ id: z.guid() }) } },
    async ({ actor, params: { id } }, reply) => {
      const row = await inTime(db.run.findUnique({ where: { id }, select: { ...runSummarySelect, options: true } }))
      if (row === null || !mayReadRun(row, actor)) {
        const why = 'There is no such run, or it is the run of another user and you lack the permission view_run.'
        return reply.code(404).type(html).send(messagePage('Run', why))
      }
      const summary = toRunSummary(row, actor, (await inTime(repairs(db, [row]))).get(id) ?? null)
      const [run = summary] = await inTime(runView.complete(db, [summary]))
      return reply.type(html).send(runPage(run))
    },
  )
}
