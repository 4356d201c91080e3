import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Db } from '../db/client.ts'
import { Problem } from '../errors.ts'
import { actorByToken } from '../models/actor.ts'
import { type Access, type Actor, allows, type Permission } from '../permissions.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Who may call this route. A route without it does not start. */
    permission?: Access
  }
  interface FastifyRequest {
    /** Who calls: set on every route that is not open to anyone. */
    actor: Actor
  }
}

/** Longer than any token that was ever made, and short enough to hash without a thought. */
export const maxTokenLength = 512

/** Every route says who may call it, and this asks. */
export function guardRoutes(app: FastifyInstance, db: Db): void {
  app.decorateRequest('actor')
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => void routes.push(route))
  // At the end of the start, because a plugin's own hooks may still say it.
  app.addHook('onReady', async () => {
    const open = routes
      .filter(({ config }) => config?.permission === undefined)
      .map(({ method, url }) => `${method} ${url}`)
    if (open.length > 0) throw new Error(`routes without a permission do not start: ${open.join(', ')}`)
  })
  app.addHook('onRequest', async (request) => {
    const { permission } = request.routeOptions.config
    if (permission === 'anyone' || request.is404) return
    request.actor = await authenticate(db, request)
    if (permission === undefined || permission === 'authenticated') return
    const needed: readonly Permission[] = typeof permission === 'string' ? [permission] : permission
    if (!needed.some((each) => allows(request.actor, each))) throw denied(needed)
  })
}

export const denied = (needed: readonly Permission[]): Problem =>
  new Problem('permission_denied', `You lack the permission ${needed.join(' or ')}.`)

async function authenticate(db: Db, request: FastifyRequest): Promise<Actor> {
  const [, secret] = /^Bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '') ?? []
  const actor = secret === undefined || secret.length > maxTokenLength ? null : await actorByToken(db, secret)
  // One text for all: which of the reasons it is would help only a guesser.
  if (actor === null)
    throw new Problem('not_authenticated', 'Send a valid access token: Authorization: Bearer <ACCESS_TOKEN>.')
  return actor
}
