import { constants } from 'node:zlib'
import fastifyCompress, { type FastifyCompressOptions } from '@fastify/compress'
import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer may show a secret. */
    secret?: true
  }
}

/** Shorter answers would hardly get shorter. */
const fromBytes = 1_024
/** Longer answers are compressed in another thread, while they are sent. */
const inThisThreadUpTo = 16_384

const options: FastifyCompressOptions = {
  encodings: ['br', 'gzip'],
  threshold: fromBytes,
  syncThreshold: inThisThreadUpTo,
  // Twice as fast as the next level, for a few percent more.
  brotliOptions: { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } },
  globalDecompression: false,
}

/**
 * Compresses answers for clients that take it, streamed ones too, but none with a secret: from the length of a compressed
 * text, a reader of the network can guess what a secret has in common with what it can make the answer repeat
 * (https://www.breachattack.com). A route that may show one says `config.secret`. Streams of events have an end of their own
 * for each message, and stay as they are.
 *
 * Call it before the routes are registered.
 */
export function compressAnswers(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.secret === true) route.compress = false
  })
  // Called, not registered: a registered plugin would see no route.
  fastifyCompress(app, options, (error) => {
    if (error !== undefined) throw error
  })
}
