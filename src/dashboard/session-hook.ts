import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../db/client.ts'
import { Problem } from '../errors.ts'
import { denied } from '../http/access.ts'
import { storable } from '../models/syntax.ts'
import { allows } from '../permissions.ts'
import { boardPath, loginFor, loginPath } from './addresses.ts'
import { operator } from './login.ts'
import { isReading } from './origin.ts'

/**
 * Requires a session: without one, a page leads to the login, and the login back to the page. An act on the queue needs
 * `manage_queue`.
 *
 * @param hasActs false: these routes change only the caller's own view
 */
export const requireSession =
  (db: Db, hasActs = true) =>
  async (request: FastifyRequest, reply: FastifyReply) => {
    const { method, url } = request
    const actor = await operator(db, request)
    if (actor === null) {
      if (!url.startsWith(`${boardPath}/api/`))
        return reply.redirect(isReading(method) ? loginFor(url) : loginPath, 303)
      throw new Problem('not_authenticated', 'You are logged out. Reload the page to log in again.')
    }
    request.actor = actor
    // The document itself decides who may submit it.
    const isAct = hasActs && !isReading(method) && request.routeOptions.config.takes !== 'run'
    if (isAct && !allows(actor, 'manage_queue')) throw denied(['manage_queue'])
    // Keys of this form do not exist, and PostgreSQL refuses them.
    if (Object.values(request.params ?? {}).some((each) => storable(String(each)) !== undefined))
      throw new Problem('not_found', 'There is nothing here.')
  }
