export const isReading = (method: string): boolean => method === 'GET' || method === 'HEAD'

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
