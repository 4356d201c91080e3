import { isUtf8 } from 'node:buffer'
import type { FastifyHelmetOptions } from '@fastify/helmet'
import type { FastifyInstance } from 'fastify'

/** Sources as Content-Security-Policy spells them. */
export const none = ["'none'"]
export const self = ["'self'"]

/** A Content-Security-Policy that allows only the listed sources, and no frames. */
export const policy = (directives: Readonly<Record<string, readonly string[]>>) => ({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      'default-src': none,
      'base-uri': none,
      'form-action': none,
      ...directives,
      'frame-ancestors': none,
    },
  },
})

/** The headers of every answer. Pages set a policy that allows more. */
export const securityHeaders: FastifyHelmetOptions = {
  ...policy({}),
  xFrameOptions: { action: 'deny' },
  // Helmet's default is `no-referrer`: browsers then send `Origin: null` with the dashboard's forms.
  referrerPolicy: { policy: 'same-origin' },
  // The proxy that terminates TLS decides this: the header binds every port of the host.
  strictTransportSecurity: false,
}

export const isReading = (method: string): boolean => method === 'GET' || method === 'HEAD'

export type Headers = Readonly<Record<string, string | string[] | undefined>>

/** The text of a request's header: Node decodes headers as Latin-1, and clients send other characters as UTF-8. */
export function headerText(value: string | string[]): string {
  const text = String(value)
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : text
}

/** A text as the value of a header, for `headerText`. */
export const headerOf = (text: string): string => Buffer.from(text).toString('latin1')

export const noStore = 'no-store'

/**
 * No cache keeps an answer, except one with a time of its own: an object with its entity tag, or a public file. A browser could
 * show a kept one to the next user, and an error could outlive its reason (RFC 9111, section 4.2.2).
 */
export function forbidCaching(app: FastifyInstance): void {
  app.addHook('onSend', (_, reply, payload, done) => {
    if (reply.statusCode >= 400 || !reply.hasHeader('Cache-Control')) reply.header('Cache-Control', noStore)
    done(null, payload)
  })
}

/** The weight of a type or encoding that a request names itself; 0 when it does not. */
export function weightOf(name: string, accept: string): number {
  for (const range of accept.toLowerCase().split(',')) {
    const [first, ...parameters] = range.split(';').map((part) => part.trim())
    if (first !== name) continue
    const weight = parameters.find((each) => each.startsWith('q='))?.slice(2)
    return weight === undefined ? 1 : Number(weight) || 0
  }
  return 0
}
