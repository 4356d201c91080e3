import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import fastifyCompress, { type FastifyCompressOptions } from '@fastify/compress'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { weightOf } from './headers.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The answer may show a secret. */
    secret?: true
    /** The answer is one of few texts, the same for all callers until the process ends, and has a tag. */
    constant?: true
  }
}

/** Shorter answers would hardly get shorter. */
const fromBytes = 1_024
/** Longer answers are compressed in another thread, while they are sent. */
const inThisThreadUpTo = 16_384

// This level is twice as fast as the next one, for a few percent more.
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }

const [br, gz] = [promisify(brotliCompress), promisify(gzip)]
const encodings = { br: (text: string) => br(text, brotliOptions), gzip: (text: string) => gz(text) } as const

const options: FastifyCompressOptions = {
  encodings: ['br', 'gzip'],
  threshold: fromBytes,
  syncThreshold: inThisThreadUpTo,
  brotliOptions,
  globalDecompression: false,
}

/**
 * Compresses answers for clients that take it, streamed ones too, but none with a secret. An attacker who reads the network, and
 * whose text the answer repeats, can guess the secret by the length of the compressed answer (https://www.breachattack.com). A
 * route that may show a secret declares `config.secret`.
 *
 * Call it before the routes are registered.
 */
export function compressAnswers(app: FastifyInstance): void {
  const constant = compressOnce()
  app.addHook('onRoute', (route) => {
    if (route.config?.secret === true || route.config?.constant === true) route.compress = false
    if (route.config?.constant === true) route.onSend = [constant, route.onSend ?? []].flat()
  })
  // The plugin is called and not registered: a registered one would see no route.
  fastifyCompress(app, options, (error) => {
    if (error !== undefined) throw error
  })
}

/** Compresses each constant text once in each encoding. All requests for a tag get the same bytes. */
function compressOnce() {
  const kept = new Map<string, Promise<Buffer>>()
  return async ({ headers }: FastifyRequest, reply: FastifyReply, text: unknown): Promise<unknown> => {
    reply.header('vary', [reply.getHeader('vary') ?? [], 'Accept-Encoding'].flat().join(', '))
    const tag = reply.getHeader('etag')
    // An error has no tag.
    if (typeof text !== 'string' || text.length < fromBytes || tag === undefined) return text
    const weight = (encoding: string) => weightOf(encoding, String(headers['accept-encoding'] ?? ''))
    const encoding = weight('gzip') > weight('br') ? 'gzip' : 'br'
    if (weight(encoding) === 0) return text
    reply.header('content-encoding', encoding)
    return kept.getOrInsertComputed(`${encoding} ${tag}`, () => encodings[encoding](text))
  }
}
