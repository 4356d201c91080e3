/** What every answer of the dashboard carries. */
export const pageHeaders: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  // Not no-referrer: browsers would then send `Origin: null` with our own forms.
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

/**
 * Nothing from other hosts, no inline scripts, no frames.
 *
 * @param styles the directives for styles, where a page needs more than style sheets of this host
 */
export const contentPolicy = (styles = "style-src 'self'"): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    styles,
    "img-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')

/**
 * Browsers say where a request that may change something comes from. The scheme is left out: behind a proxy that ends
 * TLS it is not known here, and a cookie that is SameSite=Strict does not cross schemes either.
 *
 * @returns false also when the request does not say
 */
export function isSameOrigin(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined || host === undefined || !URL.canParse(origin)) return false
  const { protocol, host: from } = new URL(origin)
  return (protocol === 'http:' || protocol === 'https:') && from === host.toLowerCase()
}
