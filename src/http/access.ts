import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import type { Db } from '../db/client.ts'
import { reader } from '../db/engine-tx.ts'
import { inTime } from '../db/in-time.ts'
import { ErrorList, Problem } from '../errors.ts'
import { sha256 } from '../ids.ts'
import { type Access, type Actor, allows, allowsSome, type Permission } from '../permissions.ts'
import { actAs, actorOfToken, actorOfUser, expiredToken } from '../rights/actor.ts'
import { headerText } from './headers.ts'
import type { Door } from './plausible.ts'
import type { CountRequest } from './rate-limit.ts'
import { userOf } from './shares.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The permission that the route requires. A server with a route without it does not start. */
    permission?: Access
    /** Requests with this name are counted beside all others of the user. */
    countedAs?: string
  }
  interface FastifyRequest {
    /** The effective user. It is set on every route but those for `anyone`. */
    actor: Actor
  }
}

/** Longer than any token, and short enough to hash. */
export const maxTokenLength = 512

type Guard = Door & {
  /** The names of all permissions: a route that declares another one does not start. */
  readonly known: ReadonlySet<string>
  readonly countRequest: CountRequest
}

/** Authenticates each request, and checks the permission that its route declares. */
export function guardRoutes(app: FastifyInstance, db: Db, guard: Guard): void {
  app.decorateRequest('actor')
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => void routes.push(route))
  // The check waits for all routes: a plugin's own hooks may set the permission.
  app.addHook('onReady', async () => {
    const open = routes
      .filter(({ config }) => config?.permission === undefined)
      .map(({ method, url }) => `${method} ${url}`)
    if (open.length > 0) throw new Error(`routes without a permission do not start: ${open.join(', ')}`)
    const mistyped = routes.flatMap(({ method, url, config }) =>
      namedBy(config)
        .filter((name) => !notNames.has(name) && !guard.known.has(name))
        .map((name) => `${method} ${url}: ${name}`),
    )
    if (mistyped.length > 0) throw new Error(`routes with an unknown permission do not start: ${mistyped.join(', ')}`)
  })
  const actorOf = actorsByToken(db)
  app.addHook('onRequest', async (request, reply) => {
    const { permission } = request.routeOptions.config
    if (permission === 'anyone' || request.is404) return
    const secret = readToken(request)
    const plausible = secret !== null && (await guard.plausible(secret)) ? secret : null
    const real = plausible === null ? null : await actorOf(plausible)
    if (real === null) {
      guard.countFailedLogin(request)
      if (plausible !== null) await guard.countRequest(request, reply, sha256(plausible).toString('base64url'))
      // Every 401 is alike, whether its token was looked up or not.
      reply.removeHeader('RateLimit-Policy').removeHeader('RateLimit')
      throw await notAuthenticated(db, plausible)
    }
    // The real user is set first, so that the log names the user of a request that is refused.
    request.actor = real
    await guard.countRequest(request, reply, `${request.routeOptions.config.countedAs ?? ''}${userOf(real)}`)
    request.actor = await impersonate(db, real, request.headers['impersonate-user'])
    if (permission !== undefined) requireAccess(request.actor, permission)
  })
}

/**
 * The refusal has one message for all reasons: a more exact one would help an attacker. Only a caller who has the whole of an
 * expired token gets that reason (docs/adr/0074-an-expired-token-is-named.md).
 */
export async function notAuthenticated(db: Db, secret: string | null): Promise<Problem> {
  const expired = secret === null ? null : await inTime(expiredToken(reader(db), secret))
  const why =
    expired &&
    `The token ${JSON.stringify(expired.identifier)} expired on ${expired.expires.toISOString().slice(0, 10)}. `
  const remedy = 'Send a valid access token: Authorization: Bearer <ACCESS_TOKEN>.'
  return new Problem('not_authenticated', `${why ?? ''}${remedy}`)
}

/**
 * A permission that holds for rows of one owner opens the route: each row that it shows or writes is judged by itself.
 *
 * @throws {Problem} `permission_denied` for a caller without what a route requires
 */
export function requireAccess(actor: Actor, access: Access): void {
  if (access === 'anyone' || access === 'authenticated') return
  if (access === 'superuser') {
    if (!actor.isSuperuser) throw new Problem('permission_denied', 'Only a superuser may do this.')
    return
  }
  const needed: readonly Permission[] = typeof access === 'string' ? [access] : access
  if (!needed.some((each) => allowsSome(actor, each))) throw denied(needed)
}

const notNames: ReadonlySet<string> = new Set(['anyone', 'authenticated', 'superuser'])

const namedBy = (config: RouteOptions['config']): string[] =>
  [config?.permission ?? [], ...(config?.document?.alsoNeeds ?? []).map(({ permission }) => permission)].flat()

export const denied = (needed: readonly Permission[]): Problem =>
  new Problem('permission_denied', `You lack the permission ${needed.join(' or ')}.`, { missing: needed })

/**
 * Gives a request that has waited the rights of this moment: its token may be gone, and rights may be others.
 *
 * @throws {Problem} also `unavailable` when the database does not answer
 */
export async function authenticateAgain(db: Db, request: FastifyRequest): Promise<void> {
  const { permission } = request.routeOptions.config
  const found = await inTime(actorOfToken(reader(db), { secret: readToken(request) ?? '' }))
  if (found === null)
    throw new Problem('not_authenticated', 'The access token became invalid while the request waited.')
  request.actor = await impersonate(db, found.actor, request.headers['impersonate-user'])
  if (permission !== undefined) requireAccess(request.actor, permission)
}

export const tokenHash = (request: FastifyRequest): Buffer => sha256(readToken(request) ?? '')

/** Simultaneous requests with the same token share one query. It starts when all of them have arrived. */
function actorsByToken(db: Db): (secret: string) => Promise<Actor | null> {
  const open = new Map<string, Promise<Actor | null>>()
  return (secret) => {
    const known = open.get(secret)
    if (known !== undefined) return known
    const answer = setImmediate().then(async () => {
      open.delete(secret)
      return (await inTime(actorOfToken(reader(db), { secret })))?.actor ?? null
    })
    open.set(secret, answer)
    return answer
  }
}

/** The bearer token of a request; null when none could be valid. */
function readToken({ headers }: Pick<FastifyRequest, 'headers'>): string | null {
  const [, secret] = /^Bearer +([\x21-\x7e]+) *$/i.exec(headers.authorization ?? '') ?? []
  return secret === undefined || secret.length > maxTokenLength ? null : secret
}

const maxUsernameLength = 150

/**
 * `Impersonate-User: <username>` makes that user the effective user. Audit rows name both.
 *
 * @throws {Problem} `permission_denied` before the user is looked up: the answer shows nothing to a caller without the permission
 */
async function impersonate(db: Db, real: Actor, username: string | string[] | undefined): Promise<Actor> {
  if (username === undefined) return real
  if (!allows(real, 'impersonate')) throw denied(['impersonate'])
  const name = headerText(username).trim()
  const effective = name.length > maxUsernameLength ? null : await actorOfUser(reader(db), { username: name })
  if (effective === null) {
    const errors = new ErrorList()
    errors.of('header').add(['Impersonate-User'], 'unknown_name', 'There is no active user of this name.')
    throw errors.problem()
  }
  const actor = actAs(real, effective)
  if (actor === null)
    throw new Problem('permission_denied', 'Only a superuser may act as a superuser.', { missing: ['impersonate'] })
  return actor
}
