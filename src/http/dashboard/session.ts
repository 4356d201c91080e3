import { createHmac, timingSafeEqual } from 'node:crypto'

/**
 * Sessions that nobody stores: the cookie says by which token until when, signed. Whether that token still holds, whose
 * it is and what he may do is looked up at every request, so that a session never outlives its token or its right.
 */
export type Sessions = {
  /** @returns the cookie's value: `<token pk>.<expiry, seconds since 1970>.<signature>` */
  issue(tokenPk: string): string
  /** @returns the token's pk; undefined for a missing, altered or expired session alike */
  read(cookie: string | undefined): string | undefined
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
    issue(tokenPk) {
      const claim = `${tokenPk}.${nowS() + sessionLifetimeS}`
      return `${claim}.${sign(claim).toString('base64url')}`
    },
    read(cookie) {
      const [, pk, expiry, signature] = /^([\da-f-]{36})\.(\d{1,12})\.([\w-]{43})$/.exec(cookie ?? '') ?? []
      if (pk === undefined || expiry === undefined || signature === undefined) return undefined
      if (!timingSafeEqual(sign(`${pk}.${expiry}`), Buffer.from(signature, 'base64url'))) return undefined
      return Number(expiry) > nowS() ? pk : undefined
    },
  }
}
