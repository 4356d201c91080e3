import { reasonOf } from '../start-error.ts'
import { type HttpProxy, notConnected, whyNotThrough } from './proxy.ts'

/** The reason why there is no answer, in words for the caller: the remedy, and the code for a search. */

/** The sentences, by the code of the error, or a part of it: only the names of OpenSSL's codes are the same on every Node. */
const explained: readonly (readonly [code: RegExp, words: string, ofService?: string])[] = [
  [
    /UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|SELF_SIGNED_CERT/,
    'its certificate is signed by an unknown authority: set NODE_EXTRA_CA_CERTS to a file with the certificate of that authority',
  ],
  [/CERT_HAS_EXPIRED/, 'its certificate has expired: it needs a new one'],
  [/CERT_NOT_YET_VALID/, 'its certificate is not valid yet: check the clocks of both machines'],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'its certificate is for another host',
    ': set GATEWRIGHT_URL to the name that it is for',
  ],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|EPROTO/,
    'it speaks no TLS on this port, and https:// needs a port that does',
  ],
  [
    /^HPE_INVALID|^UND_ERR_SOCKET_TLS/,
    'it speaks no HTTP on this port: if it speaks TLS, the URL starts with https://',
  ],
  [/redirect/i, 'it redirects', ': set GATEWRIGHT_URL to the address it redirects to'],
]

const untrusted = /CERT|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL|EPROTO/

export type NoAnswer = {
  readonly message: string
  /** Whether the service may have received the request. */
  readonly isSent: boolean
  /** Whether another try makes no difference. */
  readonly isFinal: boolean
}

/** @param error that of `fetch` @param proxy the one in front of the server @param isService whether GATEWRIGHT_URL is its URL */
export function noAnswer(url: string, error: unknown, proxy: HttpProxy | null, isService: boolean): NoAnswer {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const isTimeout = error instanceof Error && error.name === 'TimeoutError'
  const reason = isTimeout ? 'no answer in time' : reasonOf(cause)
  const notThrough = proxy && whyNotThrough(proxy, url, cause)
  if (notThrough !== null) return { ...notThrough, isSent: false }
  const [, words, ofService = ''] = explained.find(([code]) => code.test(reason)) ?? []
  const isSent = !notConnected.test(reason) && !untrusted.test(reason)
  return {
    message:
      words === undefined
        ? `${url} does not answer (${reason})`
        : `${url} cannot be used (${reason}): ${words}${isService ? ofService : ''}`,
    isSent,
    isFinal: reason === 'ENOTFOUND' || untrusted.test(reason) || /redirect/i.test(reason),
  }
}
