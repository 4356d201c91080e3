import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { cookiePath } from './addresses.ts'

/**
 * A session is a row with its expiry, named by a signed cookie. Each request checks the row, its token, the token's owner
 * and the owner's permissions again, so a session never outlives them. Logging out deletes the row.
 */

/** Seconds of a working day. */
export const sessionLifetimeS = 8 * 3_600

/** The most sessions of one token. One more ends the oldest. */
const maxSessions = 10

const cookieName = 'gatewright_admin'
export type WithCookies = Pick<FastifyRequest, 'cookies' | 'unsignCookie'>

/**
 * The options of a cookie for all pages. Links from chat and from alerts lead to a page; acts are POST, and their Origin is checked.
 * The browser reports in Origin how it reached this host; a proxy may have ended TLS.
 */
export const cookieOptions = ({ headers: { origin } }: FastifyRequest, maxAge: number) => {
  const secure = origin?.startsWith('https:') === true
  return { path: cookiePath, httpOnly: true, sameSite: 'lax', secure, maxAge } as const
}

export async function openSession(db: Db, reply: FastifyReply, tokenPk: string): Promise<void> {
  const pk = randomUUID()
  const surplus = await db.dashboardSession.findMany({
    where: { tokenPk },
    orderBy: { expires: 'desc' },
    skip: maxSessions - 1,
  })
  await db.dashboardSession.deleteMany({
    where: { OR: [{ expires: { lt: new Date() } }, { pk: { in: surplus.map((each) => each.pk) } }] },
  })
  await db.dashboardSession.create({ data: { pk, tokenPk, expires: new Date(Date.now() + 1_000 * sessionLifetimeS) } })
  void reply.setCookie(cookieName, pk, { ...cookieOptions(reply.request, sessionLifetimeS), signed: true })
}

/** Ends the session on the server too: a copy of its cookie is worthless then. */
export async function closeSession(db: Db, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const pk = sessionOf(request)
  if (pk !== undefined) await db.dashboardSession.deleteMany({ where: { pk } })
  void reply.clearCookie(cookieName, { path: cookiePath })
}

/** @returns the pk of the session's token; undefined for a missing, altered, expired or ended session alike */
export async function tokenOfSession(db: Db, request: WithCookies): Promise<string | undefined> {
  const pk = sessionOf(request)
  if (pk === undefined) return undefined
  const session = await db.dashboardSession.findFirst({ where: { pk, expires: { gt: new Date() } } })
  return session?.tokenPk
}

/** @returns the key of the session that the cookie names; undefined for none */
export function sessionOf(request: WithCookies): string | undefined {
  const { valid, value } = request.unsignCookie(request.cookies[cookieName] ?? '')
  return valid ? z.guid().safeParse(value).data : undefined
}

/**
 * Whether a page of this host sent the request: browsers report the page's origin with every request that may change something.
 * The scheme is not compared. A proxy may have ended TLS, and a cookie with SameSite=Strict does not cross schemes.
 *
 * @returns false also when the request has no origin
 */
export function isSameOrigin(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false
  const { protocol, host: from } = new URL(origin)
  return (protocol === 'http:' || protocol === 'https:') && from === host.toLowerCase()
}
