import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Begins to drain: readiness is 503 from now on, and each connection is closed after its answer. Everything is served as
     * before, until `close`.
     */
    drain(): void
    readonly isDraining: () => boolean
  }
}

/** A client that still receives its answer when the server stops has this time. It is shorter than that of the process. */
const lastAnswersMs = 6_000

/**
 * Closes each connection after its answer while the server drains or shuts down: a proxy must not keep one that is about to
 * be closed, and an open one would delay the end (docs/adr/0093-an-api-drains-before-it-closes.md).
 */
export function prepareDrain(app: FastifyInstance): void {
  let isDraining = false
  const drain = () => {
    isDraining = true
  }
  app.decorate('drain', drain)
  app.decorate('isDraining', () => isDraining)
  app.addHook('preClose', async () => {
    drain()
    setTimeout(() => app.server.closeAllConnections(), lastAnswersMs).unref()
  })
  app.addHook('onSend', (_, reply, payload, done) => {
    if (isDraining) reply.header('Connection', 'close')
    done(null, payload)
  })
}
