import { isUtf8 } from 'node:buffer'
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Db } from '../db/client.ts'
import { Faults, Problem } from '../errors.ts'
import { actorByToken, actorOfUser } from '../models/actor.ts'
import { type Access, type Actor, allows, mayActAs, type Permission } from '../permissions.ts'

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
  const actorOf = actorsByToken(db)
  app.addHook('onRequest', async (request) => {
    const { permission } = request.routeOptions.config
    if (permission === 'anyone' || request.is404) return
    request.actor = await impersonate(db, await authenticate(actorOf, request), request.headers['impersonate-user'])
    if (permission === undefined || permission === 'authenticated') return
    if (permission === 'superuser') {
      if (!request.actor.isSuperuser) throw new Problem('permission_denied', 'Only a superuser may do this.')
      return
    }
    const needed: readonly Permission[] = typeof permission === 'string' ? [permission] : permission
    if (!needed.some((each) => allows(request.actor, each))) throw denied(needed)
  })
}

export const denied = (needed: readonly Permission[]): Problem =>
  new Problem('permission_denied', `You lack the permission ${needed.join(' or ')}.`)

type ActorOf = (secret: string) => Promise<Actor | null>

/** Requests with one token that are there together are let in by one question: it is asked when all of them are there. */
function actorsByToken(db: Db): ActorOf {
  const asked = new Map<string, Promise<Actor | null>>()
  return (secret) => {
    const known = asked.get(secret)
    if (known !== undefined) return known
    const answer = setImmediate().then(() => {
      asked.delete(secret)
      return actorByToken(db, secret)
    })
    asked.set(secret, answer)
    return answer
  }
}

async function authenticate(actorOf: ActorOf, request: FastifyRequest): Promise<Actor> {
  const [, secret] = /^Bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '') ?? []
  const actor = secret === undefined || secret.length > maxTokenLength ? null : await actorOf(secret)
  // One text for all: which of the reasons it is would help only a guesser.
  if (actor === null)
    throw new Problem('not_authenticated', 'Send a valid access token: Authorization: Bearer <ACCESS_TOKEN>.')
  return actor
}

/** Longest username, and so the longest name of somebody to act as. */
const maxUsernameLength = 150

/**
 * `Impersonate-User: <username>`: everything is done as that user, who is then the actor; audit rows name both.
 *
 * @throws {Problem} `permission_denied` for whoever may not, before it is told whether there is such a user
 */
async function impersonate(db: Db, real: Actor, username: string | string[] | undefined): Promise<Actor> {
  if (username === undefined) return real
  if (!allows(real, 'impersonate')) throw denied(['impersonate'])
  const name = decodeHeader(username)
  const effective = name.length > maxUsernameLength ? null : await actorOfUser(db, { username: name })
  if (effective === null) {
    const faults = new Faults()
    faults.add(['Impersonate-User'], 'There is no active user of this name.')
    throw new Problem('invalid', 'The request is not valid.', { fields: faults.tree() })
  }
  if (!mayActAs(real, effective)) throw new Problem('permission_denied', 'Only a superuser may act as a superuser.')
  return { ...effective, impersonator: real }
}

/** Headers come as Latin-1; a name beyond that is sent as UTF-8. */
function decodeHeader(value: string | string[]): string {
  const bytes = Buffer.from(String(value).trim(), 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : String(value).trim()
}
