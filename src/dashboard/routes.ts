import cookie from '@fastify/cookie'
import formbody from '@fastify/formbody'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Problem } from '../errors.ts'
import { refuse } from '../http/access-log.ts'
import type { Api } from '../http/api.ts'
import { isReading } from '../http/headers.ts'
import { icon } from '../http/icon.ts'
import { prefersHtml } from '../http/not-found.ts'
import type { Door } from '../http/plausible.ts'
import { toProblem } from '../http/problems.ts'
import { runListOfOperators } from '../lists/runs-of-operators.ts'
import { actPages } from './acts.ts'
import { assetsPath, boardPath, iconPath, nowPath } from './addresses.ts'
import { applicationsPage } from './applications/list.ts'
import { applicationPage } from './applications/one.ts'
import { assets } from './assets.ts'
import { boardRoutes } from './board/routes.ts'
import { changesRoute } from './changes.ts'
import { messagePage, pagePolicy, pageRoute, sendPage } from './frame.ts'
import { loginRoutes, requireSession } from './login.ts'
import { nowPage } from './now/page.ts'
import { openNow } from './now/read.ts'
import { auditPage } from './records/audit.ts'
import { refusalsPage } from './records/refusals.ts'
import { retentionPage } from './records/retention.ts'
import { tokensPage } from './records/tokens.ts'
import { runsPage } from './runs/list.ts'
import { rollBackPages } from './runs/roll-back.ts'
import { runPages } from './runs/run.ts'
import { searchRoute } from './search.ts'
import { isSameOrigin } from './session.ts'
import type { Sources } from './sources.ts'
import { inZoneOfCaller, timesRoutes } from './times.ts'
import { workersPage } from './workers.ts'

/**
 * /admin/: the operators' pages, and Bull Board at /admin/queues/, behind one login. `view_queue` permits viewing,
 * `manage_queue` permits the acts of `acts.ts`. No act changes a run: a job only names it, and its row decides. A roll back is a
 * submission like any other.
 */

type Parts = Omit<Sources, 'db' | 'engine' | 'registry' | 'runs'> & { readonly door: Door }

const pages = [
  ...[retentionPage, auditPage, refusalsPage, boardRoutes, changesRoute, timesRoutes, nowRoute, workersPage, actPages],
  ...[runsPage, runPages, rollBackPages, applicationsPage, applicationPage, searchRoute, tokensPage],
]

/** The hooks below require a session instead of a bearer token. */
const config = () => ({ permission: 'anyone' }) as const

export function dashboardRoutes(app: Api, { door, ...parts }: Parts): void {
  const { db, engine } = parts.submitter
  const { registry } = engine
  const sources = { ...parts, db, engine, registry, runs: runListOfOperators(registry, parts.live.whyOf) }
  app.register(async (scope: Api) => {
    await scope.register(formbody, { bodyLimit: 4_096 })
    await scope.register(cookie, { secret: engine.keyring.derive('dashboard session') })
    scope.addHook('onRequest', async ({ method, headers }) => {
      if (!isReading(method) && !isSameOrigin(headers.origin, headers.host))
        throw new Problem('permission_denied', 'This takes a request from a page of this host.')
    })
    scope.setErrorHandler((error, request, reply) => answerProblem(toProblem(error, request), request, reply))
    scope.addHook('onSend', inZoneOfCaller)
    fileRoutes(scope)
    loginRoutes(scope, db, door)
    await scope.register(async (scope: Api) => {
      scope.addHook('onRequest', requireSession(db))
      for (const add of pages) add(scope, sources)
      scope.get(`${nowPath}*`, pageRoute({}), async () => {
        throw new Problem('not_found', 'There is no page at this address.')
      })
    })
  })
}

function nowRoute(app: Api, sources: Sources): void {
  const readNow = openNow(sources)
  app.get(nowPath, pageRoute({ querystring: z.strictObject({}) }), async ({ actor }, reply) =>
    sendPage(reply, nowPage(await readNow(actor), actor)),
  )
}

/** Answers a problem: a browser gets a page, the board's script and other programs get JSON. */
function answerProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { code, message } = problem
  const status = refuse(problem, request, reply)
  if (prefersHtml(request) && !request.url.startsWith(`${boardPath}/api/`)) {
    reply.helmet(pagePolicy())
    const text = status === 400 ? 'Nothing can be shown for this address: a part of it is not known here.' : message
    return sendPage(reply, messagePage(titles[status] ?? 'This did not work', text))
  }
  // The board shows `error`; the rest is the answer of every other path.
  return reply.type('application/json; charset=utf-8').send({ error: message, detail: message, code })
}

const titles: Readonly<Record<number, string>> = {
  400: 'This address is not right',
  403: 'You may not do this',
  500: 'Something went wrong',
  404: 'There is nothing here',
  503: 'Not available just now',
}

/** Files without facts about the installation: the login page needs them. */
function fileRoutes(app: Api): void {
  // The icon keeps its name: tabs and bookmarks have it.
  app.get(iconPath, { config: config() }, async (_request, reply) =>
    reply.type('image/svg+xml').header('Cache-Control', 'private, max-age=86400').send(icon),
  )
  const byPath = new Map(Object.values(assets).map((asset) => [asset.path, asset]))
  app.get(
    `${assetsPath}:file`,
    { config: config(), schema: { params: z.object({ file: z.string() }) } },
    async ({ params }, reply) => {
      const asset = byPath.get(`${assetsPath}${params.file}`)
      if (asset === undefined) throw new Problem('not_found', 'There is nothing here.')
      const { type, text } = asset
      return reply.type(type).header('Cache-Control', 'public, max-age=31536000, immutable').send(text)
    },
  )
}
