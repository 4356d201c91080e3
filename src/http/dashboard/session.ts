import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Sessions that nobody stores: the cookie says who until when, signed. It says nothing about rights, which are looked
 * up at every request, so that a deactivated user is out at once.
 */
export type Sessions = {
  /** @returns the cookie's value: `<user pk>.<expiry, seconds since 1970>.<signature>` */
  issue(userPk: number): string
  /** @returns the user's pk; undefined for a missing, altered or expired session alike */
  read(cookie: string | undefined): number | undefined
}

/** A working day. */
export const sessionLifetimeS = 8 * 3_600

/**
 * @param key 32 bytes that serve no other purpose
 * @param nowS seconds since 1970
 */
export function signedSessions(key: Buffer, nowS: () => number = () => Math.floor(Date.now() / 1_000)): Sessions {
  const sign = (claim: string) => createHmac('sha256', key).update(claim).digest()
  return {
    issue(userPk) {
      const claim = `${userPk}.${nowS() + sessionLifetimeS}`
      return `${claim}.${sign(claim).toString('base64url')}`
    },
    read(cookie) {
      const [, pk, expiry, signature] = /^(\d{1,10})\.(\d{1,12})\.([\w-]{43})$/.exec(cookie ?? '') ?? []
      if (pk === undefined || expiry === undefined || signature === undefined) return undefined
      if (!timingSafeEqual(sign(`${pk}.${expiry}`), Buffer.from(signature, 'base64url'))) return undefined
      return Number(expiry) > nowS() ? Number(pk) : undefined
    },
  }
}
