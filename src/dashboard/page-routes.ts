import { z } from 'zod'
import { inTime } from '../db/in-time.ts'
import { readProcesses } from '../db/presence.ts'
import { denied } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { shownOnly } from '../models/fields.ts'
import { storable } from '../models/syntax.ts'
import { allows } from '../permissions.ts'
import { readPause } from '../queue/pause.ts'
import { actPage, isDue } from './act-pages.ts'
import { type Act, acts, longestReason } from './acts.ts'
import { actPath, nowPath, workersPath } from './addresses.ts'
import { pageRoute, sendPage } from './frame.ts'
import { nowPage } from './now/page.ts'
import { openNow, type Sources } from './now/read.ts'
import { workersPage } from './workers.ts'

/** The operators' own pages. The hook of the scope requires the session, and `manage_queue` for an act. */

const sentReason = z.object({ reason: z.string().trim().default('') })

export async function pageRoutes(app: Api, sources: Sources): Promise<void> {
  const { db, queue } = sources
  const processes = async () => ({
    workers: await readProcesses(db, 'workers'),
    servers: await readProcesses(db, 'servers'),
  })
  const readNow = openNow(sources)
  app.get(nowPath, pageRoute({ querystring: z.strictObject({}) }), async ({ actor }, reply) =>
    sendPage(reply, nowPage(await readNow(actor), actor)),
  )

  app.get(workersPath, pageRoute({}), async ({ actor }, reply) =>
    sendPage(reply, workersPage(await inTime(processes()), actor)),
  )

  for (const name of Object.keys(acts) as Act[]) {
    app.get(actPath(name), pageRoute({}), async ({ actor }, reply) => {
      if (!allows(actor, 'manage_queue')) throw denied(['manage_queue'])
      return sendPage(reply, actPage(name, await readPause(queue, db), actor))
    })
    app.post(actPath(name), pageRoute({}), async ({ actor, id: requestId, body }, reply) => {
      const reason = sentReason.safeParse(body ?? {}).data?.reason ?? ''
      const wrong = whyNoReason(reason)
      if (wrong !== null) return sendPage(reply.code(400), actPage(name, await readPause(queue, db), actor, wrong))
      const operator = { actor, requestId, reason: reason === '' ? null : reason }
      if (isDue(name, await readPause(queue, db))) await acts[name](db, queue, operator)
      return reply.redirect(nowPath, 303)
    })
  }
}

/** Checks a reason. It stands in sentences of one line. */
function whyNoReason(reason: string): string | null {
  if (reason.length > longestReason) return `Say it in at most ${longestReason} characters.`
  return (storable(reason) ?? shownOnly(reason)) === undefined ? null : 'It has a character that cannot be shown.'
}
