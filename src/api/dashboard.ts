import { readFile } from 'node:fs/promises'
import cookie from '@fastify/cookie'
import formbody from '@fastify/formbody'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Keyring } from '../db/seal.ts'
import { catalogue, Problem } from '../errors.ts'
import { denied, maxTokenLength } from '../http/access.ts'
import type { Api } from '../http/api.ts'
import { type Board, openBoard } from '../http/dashboard/board.ts'
import { contentPolicy, isSameOrigin, pageHeaders } from '../http/dashboard/headers.ts'
import {
  basePath,
  icon,
  iconPath,
  loginPage,
  loginPath,
  logoutPage,
  logoutPath,
  ownPagePolicy,
} from '../http/dashboard/pages.ts'
import { type Sessions, sessionLifetimeS, signedSessions } from '../http/dashboard/session.ts'
import { actorOfSession } from '../models/actor.ts'
import { type Actor, allows } from '../permissions.ts'
import type { ApplyQueue } from '../queue/backend.ts'

/**
 * /admin/queues/: Bull Board for operators, behind a login of ours. Whoever may `view_queue` sees it, whoever may
 * `manage_queue` acts. Nothing that can be done here touches the data: a job only rings for a run.
 */

type Parts = { readonly db: Db; readonly keyring: Keyring; readonly queue: ApplyQueue }

/** The session is asked instead of a bearer token, by the hooks below. */
const config = { permission: 'anyone' } as const
const cookieName = 'gatewright_queues'
const html = 'text/html; charset=utf-8'

export function dashboardRoutes(app: Api, { db, keyring, queue }: Parts): void {
  const sessions = signedSessions(keyring.derive('dashboard session'))
  app.register(async (scope: Api) => {
    await scope.register(cookie)
    scope.addHook('onRequest', async ({ method, headers }, reply) => {
      reply.headers(pageHeaders).header('Content-Security-Policy', contentPolicy())
      if (!isReading(method) && !isSameOrigin(headers.origin, headers.host))
        throw new Problem('permission_denied', 'This takes a request from a page of this host.')
    })
    scope.setErrorHandler((error, _request, reply) => {
      if (!(error instanceof Problem)) throw error
      const { code, message } = error
      // The board shows `error`; the rest is what every other path answers.
      return reply
        .code(catalogue[code])
        .type('application/json; charset=utf-8')
        .send({ error: message, detail: message, code })
    })
    scope.get(iconPath, { config }, async (_request, reply) =>
      reply.type('image/svg+xml').header('Cache-Control', 'private, max-age=86400').send(icon),
    )
    await scope.register(async (scope: Api) => loginRoutes(scope, db, sessions))
    await scope.register(async (scope: Api) => boardRoutes(scope, db, sessions, openBoard(queue)))
  })
}

const isReading = (method: string) => method === 'GET' || method === 'HEAD'

/** @returns who is logged in, as long as the token of his login is valid, and he is active and may look */
async function operator(db: Db, sessions: Sessions, { cookies }: FastifyRequest): Promise<Actor | null> {
  const pk = sessions.read(cookies[cookieName])
  const session = pk === undefined ? null : await actorOfSession(db, { pk })
  return session !== null && allows(session.actor, 'view_queue') ? session.actor : null
}

const credentials = z.object({ access_token: z.string().trim().min(1).max(maxTokenLength) })

async function loginRoutes(scope: Api, db: Db, sessions: Sessions): Promise<void> {
  await scope.register(formbody, { bodyLimit: 4_096 })
  const show = (reply: FastifyReply, page: string) =>
    reply.type(html).header('Content-Security-Policy', ownPagePolicy).send(page)

  scope.get(loginPath, { config }, async (request, reply) => {
    if ((await operator(db, sessions, request)) !== null) return reply.redirect(`${basePath}/`, 303)
    return show(reply, loginPage(null))
  })

  scope.post(loginPath, { config }, async (request, reply) => {
    const sent = credentials.safeParse(request.body)
    const session = sent.success ? await actorOfSession(db, { secret: sent.data.access_token }) : null
    if (session === null) {
      reply.code(401).header('WWW-Authenticate', 'Bearer')
      return show(reply, loginPage('This access token is not valid.'))
    }
    const { actor, tokenPk } = session
    request.actor = actor
    if (!allows(actor, 'view_queue'))
      return show(reply.code(403), loginPage('The user of this access token may not view the queue.'))
    // The browser's own word on how it came here: a proxy may have ended TLS.
    const secure = request.headers.origin?.startsWith('https:') === true
    reply.setCookie(cookieName, sessions.issue(tokenPk), {
      path: basePath,
      httpOnly: true,
      sameSite: 'strict',
      secure,
      maxAge: sessionLifetimeS,
    })
    return reply.redirect(`${basePath}/`, 303)
  })

  scope.get(logoutPath, { config }, async (request, reply) => {
    const actor = await operator(db, sessions, request)
    if (actor === null) return reply.redirect(loginPath, 303)
    return show(reply, logoutPage(actor.username, allows(actor, 'manage_queue')))
  })

  scope.post(logoutPath, { config }, async (_request, reply) =>
    reply.clearCookie(cookieName, { path: basePath }).redirect(loginPath, 303),
  )
}

const maxJobsPerPage = 100

/** The board checks its own parameters; this one it does not bound. */
const boardQuery = z.looseObject({
  jobsPerPage: z
    .string()
    .refine((text) => Number(text) <= maxJobsPerPage, `At most ${maxJobsPerPage}.`)
    .optional(),
})

async function boardRoutes(scope: Api, db: Db, sessions: Sessions, board: Board): Promise<void> {
  scope.addHook('onRequest', async (request, reply) => {
    const actor = await operator(db, sessions, request)
    if (actor === null) {
      if (!request.url.startsWith(`${basePath}/api/`)) return reply.redirect(loginPath, 303)
      throw new Problem('not_authenticated', 'You are logged out. Reload the page to log in again.')
    }
    request.actor = actor
    if (!isReading(request.method) && !allows(actor, 'manage_queue')) throw denied(['manage_queue'])
  })

  for (const path of board.pagePaths) {
    scope.get(`${basePath}${path}`, { config, schema: { querystring: z.looseObject({}) } }, async ({ actor }, reply) =>
      reply
        .type(html)
        .header('Content-Security-Policy', board.policy(allows(actor, 'manage_queue')))
        .send(board.page(actor.username)),
    )
  }
  scope.get(
    `${basePath}/static/*`,
    { config, schema: { params: z.object({ '*': z.string() }), querystring: z.looseObject({}) } },
    async ({ params }, reply) => {
      const file = board.files.get(params['*'])
      if (file === undefined) throw new Problem('not_found', 'There is nothing here.')
      return reply
        .type(file.type)
        .header('Cache-Control', file.caching)
        .send(await readFile(file.path))
    },
  )
  const schema = { params: z.record(z.string(), z.string()), querystring: boardQuery }
  for (const { method, route, handler } of board.routes) {
    for (const path of [route].flat()) {
      scope.route({
        method: [method].flat().map((each) => each.toUpperCase()),
        url: `${basePath}${path}`,
        config,
        schema,
        handler: async ({ actor, params, query, body, log }, reply) => {
          const request = {
            queues: board.queues(allows(actor, 'manage_queue')),
            uiConfig: board.uiConfig,
            params,
            query,
            body: Object(body),
            headers: {},
          }
          const answer = await Promise.resolve(handler(request)).catch((error: unknown) => {
            log.warn({ err: error }, 'the queue did not answer the dashboard')
            throw new Problem(
              'unavailable',
              `The queue is away, or refused: ${error instanceof Error ? error.message : error}`,
              { cause: error },
            )
          })
          return reply.code(answer.status ?? 200).send(answer.body)
        },
      })
    }
  }
}
