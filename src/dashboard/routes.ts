import { readFile } from 'node:fs/promises'
import { STATUSES } from '@bull-board/api/constants/statuses'
import cookie from '@fastify/cookie'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Keyring } from '../db/seal.ts'
import { catalogue, Problem } from '../errors.ts'
import { denied } from '../http/access.ts'
import { noteFailure } from '../http/access-log.ts'
import type { Api } from '../http/api.ts'
import { icon } from '../http/icon.ts'
import type { Limiter } from '../http/rate-limit.ts'
import { storable } from '../models/syntax.ts'
import { allows } from '../permissions.ts'
import type { ApplyQueue } from '../queue/backend.ts'
import { readPause } from '../queue/pause.ts'
import { boardFiles, boardPage, boardPolicy, isServed, openBoard, queuesOf, uiConfig } from './board.ts'
import { listFiles } from './files.ts'
import { loginRoutes, operator } from './login.ts'
import { manageRoutes } from './manage.ts'
import { isReading, isSameOrigin } from './origin.ts'
import { basePath, iconPath, loginPath, pagePolicy } from './pages.ts'

/**
 * /admin/queues/: Bull Board for operators, behind our login. `view_queue` permits viewing, `manage_queue` permits the
 * acts of `manage.ts`. No act changes a run: a job only names it, and its row decides.
 */

type Parts = { readonly db: Db; readonly keyring: Keyring; readonly queue: ApplyQueue; readonly limiter: Limiter }

/** The hooks below ask for a session instead of a bearer token. */
const config = { permission: 'anyone' } as const

export function dashboardRoutes(app: Api, { db, keyring, queue, limiter }: Parts): void {
  app.register(async (scope: Api) => {
    await scope.register(cookie, { secret: keyring.derive('dashboard session') })
    scope.addHook('onRequest', async ({ method, headers }) => {
      if (!isReading(method) && !isSameOrigin(headers.origin, headers.host))
        throw new Problem('permission_denied', 'This takes a request from a page of this host.')
    })
    scope.setErrorHandler((error, request, reply) => {
      if (!(error instanceof Problem)) throw error
      const { code, message } = error
      noteFailure(request, error, catalogue[code])
      // The board shows `error`; the rest is what every other path answers.
      return reply
        .code(catalogue[code])
        .type('application/json; charset=utf-8')
        .send({ error: message, detail: message, code })
    })
    scope.get(iconPath, { config }, async (_request, reply) =>
      reply.type('image/svg+xml').header('Cache-Control', 'private, max-age=86400').send(icon),
    )
    await scope.register(async (scope: Api) => loginRoutes(scope, db, limiter))
    await scope.register(async (scope: Api) => boardRoutes(scope, db, queue))
  })
}

const maxJobsPerPage = 100

const canDecode = (text: string): boolean => {
  try {
    return decodeURIComponent(text) !== ''
  } catch {
    return false
  }
}

/** The board sets no limit to its pages, and passes the others on to the queue, which fails at what it does not know. */
const boardQuery = z.looseObject({
  activeQueue: z
    .string()
    .refine((text) => text === '' || canDecode(text), 'Is not percent-encoded.')
    .optional(),
  status: z.enum(['', ...Object.values(STATUSES)], 'Unknown status.').optional(),
  jobsPerPage: z
    .string()
    .refine((text) => Number(text) <= maxJobsPerPage, `At most ${maxJobsPerPage}.`)
    .optional(),
})
const schema = { params: z.record(z.string(), z.string()), querystring: boardQuery }

async function boardRoutes(app: Api, db: Db, queue: ApplyQueue): Promise<void> {
  app.addHook('onRequest', async (request, reply) => {
    const actor = await operator(db, request)
    if (actor === null) {
      if (!request.url.startsWith(`${basePath}/api/`)) return reply.redirect(loginPath, 303)
      throw new Problem('not_authenticated', 'You are logged out. Reload the page to log in again.')
    }
    request.actor = actor
    if (!isReading(request.method) && !allows(actor, 'manage_queue')) throw denied(['manage_queue'])
    // No row can have such a key, and PostgreSQL refuses it.
    if (Object.values(request.params ?? {}).some((each) => storable(String(each)) !== undefined))
      throw new Problem('not_found', 'There is nothing here.')
  })

  const board = openBoard()
  for (const path of [board.pages.route].flat())
    app.get(`${basePath}${path}`, { config, schema }, async ({ actor }, reply) => {
      reply.helmet(boardPolicy)
      return reply.type('text/html; charset=utf-8').send(boardPage(board, actor.username))
    })

  const files = listFiles(boardFiles)
  // helmet writes into `config`, so this route has one of its own.
  const options = { config: { ...config }, helmet: pagePolicy("'self'"), schema }
  app.get(`${basePath}/static/*`, options, async ({ params }, reply) => {
    const file = files.get(params['*'] ?? '')
    if (file === undefined) throw new Problem('not_found', 'There is nothing here.')
    return reply
      .type(file.type)
      .header('Cache-Control', file.caching)
      .send(await readFile(file.path))
  })

  for (const { route, handler } of board.routes.filter(isServed))
    for (const path of [route].flat())
      app.get(`${basePath}${path}`, { config, schema }, async ({ params, query }, reply) => {
        const queues = queuesOf(queue, await readPause(queue, db))
        const request = { queues, uiConfig, params, query, body: {}, headers: {} }
        const answer = await Promise.resolve(handler(request)).catch((error: unknown) => {
          const reason = error instanceof Error ? error.message : error
          throw new Problem('unavailable', `The queue is away, or refused: ${reason}`, { cause: error })
        })
        return reply.code(answer.status ?? 200).send(answer.body)
      })
  // Everything else that the board can do has no purpose here.
  app.route({
    method: ['DELETE', 'GET', 'PATCH', 'POST', 'PUT'],
    url: `${basePath}/api/*`,
    config,
    handler: async () => {
      throw new Problem('not_found', 'There is nothing here.')
    },
  })
  await manageRoutes(app, db, queue)
}
