import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { reader } from '../db/engine-tx.ts'
import { Problem } from '../errors.ts'
import { denied, maxTokenLength, notAuthenticated } from '../http/access.ts'
import { noteFailure } from '../http/access-log.ts'
import type { Api } from '../http/api.ts'
import { isReading } from '../http/headers.ts'
import { html } from '../http/html.ts'
import type { Door } from '../http/plausible.ts'
import { storable } from '../models/syntax.ts'
import { type Actor, allows, mayManageQueue } from '../permissions.ts'
import { actorOfToken, requireUnbound } from '../rights/actor.ts'
import { boardPath, loginFor, loginPath, logoutPath, nextQuery, nowPath, timesPath } from './addresses.ts'
import { pageRoute, type Shell, sendPage } from './frame.ts'
import { closeSession, openSession, tokenOfSession, type WithCookies } from './session.ts'

/** @returns the user of the session; null unless its token authenticates, and its owner may view the queue */
export async function operator(db: Db, request: WithCookies): Promise<Actor | null> {
  const pk = await tokenOfSession(db, request)
  const session = pk === undefined ? null : await actorOfToken(reader(db), { pk })
  return session !== null && allows(session.actor, 'view_queue') ? session.actor : null
}

const credentials = z.object({ access_token: z.string().trim().min(1).max(maxTokenLength) })

export function loginRoutes(app: Api, db: Db, { plausible, countFailedLogin }: Door): void {
  app.get(loginPath, pageRoute({ querystring: nextQuery }), async (request, reply) => {
    const { next } = request.query
    if ((await operator(db, request)) !== null) return reply.redirect(next, 303)
    return sendPage(reply, loginPage(null, next))
  })

  app.post(loginPath, pageRoute({ querystring: nextQuery }), async (request, reply) => {
    const { next } = request.query
    const sent = credentials.safeParse(request.body)
    const secret = sent.data?.access_token ?? ''
    const isPlausible = await plausible(secret)
    const session = isPlausible ? await actorOfToken(reader(db), { secret }) : null
    if (session === null) {
      countFailedLogin(request)
      noteFailure(request, await notAuthenticated(db, isPlausible ? secret : null), 401)
      reply.code(401).header('WWW-Authenticate', 'Bearer')
      return sendPage(reply, loginPage('This access token is not valid.', next))
    }
    const { actor, tokenPk } = session
    request.actor = actor
    if (tokenPk === null || !allows(actor, 'view_queue')) {
      noteFailure(request, denied(['view_queue']), 403)
      const why =
        tokenPk === null
          ? 'The access token of a job opens no session.'
          : 'The user of this access token may not view the queue.'
      return sendPage(reply.code(403), loginPage(why, next))
    }
    await openSession(db, reply, tokenPk)
    return reply.redirect(next, 303)
  })

  app.get(logoutPath, pageRoute({}), async (request, reply) => {
    const actor = await operator(db, request)
    if (actor === null) return reply.redirect(loginPath, 303)
    return sendPage(reply, logoutPage(actor))
  })

  app.post(logoutPath, pageRoute({}), async (request, reply) => {
    const actor = await operator(db, request)
    if (actor !== null) request.actor = actor
    await closeSession(db, request, reply)
    return reply.redirect(loginPath, 303)
  })
}

/**
 * @param alert the reason why the last login was refused, one sentence
 * @param next the address to which a login leads
 */
const loginPage = (alert: string | null, next: string): Shell => ({
  title: 'Log in',
  heading: 'Log in with an access token',
  actor: null,
  width: 'narrow',
  content: html`${alert !== null && html`<p class="alert" role="alert" id="alert">${alert}</p>`}
<form method="post" action="${loginPath}${next !== nowPath && `?next=${encodeURIComponent(next)}`}">
<label for="access_token">Access token</label>
<input id="access_token" name="access_token" type="password" required maxlength="512" autofocus autocomplete="current-password" autocapitalize="none" spellcheck="false"${alert !== null && html` aria-invalid="true"`} aria-describedby="${alert !== null && 'alert '}hint">
<p class="quiet" id="hint">The token of a superuser, or of a user who may view the queue. It is not stored. The session ends after 8 hours, or when the token is no longer valid.</p>
<button type="submit">Log in</button>
</form>`,
})

const logoutPage = (actor: Actor): Shell => ({
  title: 'Log out',
  actor,
  within: logoutPath,
  width: 'narrow',
  content: html`<p>You are logged in as ${actor.username}. ${mayManageQueue(actor) ? 'You may view the queue, pause and resume it.' : 'You may view the queue, but not act on it.'}</p>
<form method="post" action="${logoutPath}" class="choice"><a class="button" href="${nowPath}">Cancel</a><button type="submit">Log out</button></form>`,
})

/**
 * Requires a session: without one, a page leads to the login, and the login back to the page. An act on the queue needs
 * `manage_queue`.
 */
export const requireSession = (db: Db) => async (request: FastifyRequest, reply: FastifyReply) => {
  const { method, url } = request
  const { url: route, config } = request.routeOptions
  const actor = await operator(db, request)
  if (actor === null) {
    if (!url.startsWith(`${boardPath}/api/`)) return reply.redirect(isReading(method) ? loginFor(url) : loginPath, 303)
    throw new Problem('not_authenticated', 'You are logged out. Reload the page to log in again.')
  }
  request.actor = actor
  // The document itself decides who may submit it, and a zone is that of the caller alone.
  const isAct = !isReading(method) && config.takes !== 'run' && route !== timesPath
  if (isAct) requireActs(actor)
  // Keys of this form do not exist, and PostgreSQL refuses them.
  if (Object.values(request.params ?? {}).some((each) => storable(String(each)) !== undefined))
    throw new Problem('not_found', 'There is nothing here.')
}

/** @throws {Problem} `permission_denied` for an operator who may not act on the queue */
export function requireActs(actor: Actor): void {
  if (!allows(actor, 'manage_queue')) throw denied(['manage_queue'])
  requireUnbound(actor)
}
