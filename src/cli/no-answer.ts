import { reasonOf } from '../start-error.ts'
import { type HttpProxy, whyNotThrough } from './proxy.ts'

/** Why there is no answer, in words of the caller's side: what to do, and the code for those who search for it. */

/** By the code of the error; of OpenSSL's, of which the name alone is the same on every Node, a part of it. */
const explained: readonly (readonly [RegExp, string])[] = [
  [
    /UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|SELF_SIGNED_CERT/,
    'its certificate is signed by an unknown authority: set NODE_EXTRA_CA_CERTS to a file with the certificate of that authority',
  ],
  [/CERT_HAS_EXPIRED/, 'its certificate has expired: it needs a new one'],
  [/CERT_NOT_YET_VALID/, 'its certificate is not valid yet: check the clocks of both machines'],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'its certificate is for another host: set GATEWRIGHT_URL to the name that it is for',
  ],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|EPROTO/,
    'it speaks no TLS on this port, and https:// needs a port that does',
  ],
  [
    /^HPE_INVALID|^UND_ERR_SOCKET_TLS/,
    'it speaks no HTTP on this port: if it speaks TLS, the URL starts with https://',
  ],
  [/redirect/i, 'it redirects: set GATEWRIGHT_URL to the address it redirects to'],
]

const neverSent = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/
const untrusted = /CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL|EPROTO/

type NoAnswer = {
  readonly message: string
  readonly isSent: boolean
  readonly isFinal: boolean
  readonly cause: unknown
}

/** @param error of `fetch` @param proxy through which the service is asked */
export function noAnswer(url: string, error: unknown, proxy: HttpProxy | null = null): NoAnswer {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const isTimeout = error instanceof Error && error.name === 'TimeoutError'
  const reason = isTimeout ? 'no answer in time' : reasonOf(cause)
  const notThrough = proxy && whyNotThrough(proxy, url, cause)
  if (notThrough !== null) return { ...notThrough, isSent: false, cause }
  const [, words] = explained.find(([code]) => code.test(reason)) ?? []
  const isSent = !neverSent.test(reason) && !untrusted.test(reason)
  return {
    message: words === undefined ? `${url} does not answer (${reason})` : `${url} cannot be used (${reason}): ${words}`,
    isSent,
    isFinal: reason === 'ENOTFOUND' || untrusted.test(reason) || /redirect/i.test(reason),
    cause,
  }
}
