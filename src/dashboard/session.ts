import type { FastifyReply, FastifyRequest } from 'fastify'
import { basePath } from './pages.ts'

/**
 * A session is a signed cookie with the pk of its token, and its expiry; the server stores nothing. Each request checks
 * the token, its owner and the owner's permissions again, so a session never outlives them.
 */

/** A working day. */
export const sessionLifetimeS = 8 * 3_600

const cookieName = 'gatewright_queues'
const nowS = () => Math.floor(Date.now() / 1_000)

/** @param secure whether the cookie is for TLS alone */
export const openSession = (reply: FastifyReply, tokenPk: string, secure: boolean): FastifyReply =>
  reply.setCookie(cookieName, `${tokenPk}.${nowS() + sessionLifetimeS}`, {
    path: basePath,
    httpOnly: true,
    sameSite: 'strict',
    secure,
    maxAge: sessionLifetimeS,
    signed: true,
  })

export const closeSession = (reply: FastifyReply): FastifyReply => reply.clearCookie(cookieName, { path: basePath })

/** @returns the pk of the token; undefined for a missing, altered or expired session alike */
export function tokenOfSession(request: FastifyRequest): string | undefined {
  const { valid, value } = request.unsignCookie(request.cookies[cookieName] ?? '')
  const [, pk, expiry] = /^([\da-f-]{36})\.(\d{1,12})$/.exec(valid ? value : '') ?? []
  return Number(expiry) > nowS() ? pk : undefined
}
