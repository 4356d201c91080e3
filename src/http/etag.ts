import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'

/** Entity tags of single objects: a client that has the current text of one need not get it again. */

export const etagHeaders = z.object({
  'If-None-Match': z.string().optional().meta({
    description: 'The `ETag` of an answer that the client has: when it is still current, the answer is a 304.',
  }),
})

/** Of the text: the same in every process. Two callers who see different texts get different tags. */
export const etagOf = (text: string): string => `"${hash('sha256', text, 'base64url')}"`

/** RFC 9110, section 13.1.2: a list of tags, of which a weak one counts too, or `*`. What is neither is ignored. */
function names(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false
  if (header.trim() === '*') return true
  return [...header.matchAll(/(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g)].some(([, tag]) => tag === etag)
}

export const matchHeaders = z.object({
  'If-Match': z
    .string()
    .optional()
    .meta({
      description:
        'The `ETag` of the object as the client has read it: when it is another one now, the answer is a 412.',
      examples: ['"Jhg7nK2T6yq8eE3xH0b7Qm1cV5rL9sW4dZ2uF6aP0Yk"'],
    }),
})

/** RFC 9110, section 13.1.1: a list of tags, of which a weak one does not count, or `*`. What is neither matches nothing. */
export function isMatched(header: string, etag: string): boolean {
  if (header.trim() === '*') return true
  return header.split(',').some((each) => each.trim() === etag)
}

/**
 * Answers with this JSON text and its tag, or with 304 when `If-None-Match` has the tag. A cache may keep it for the
 * same caller, and must ask again.
 */
export function sendTagged(reply: FastifyReply, text: string): FastifyReply {
  const etag = etagOf(text)
  reply.headers({
    etag,
    'cache-control': 'private, no-cache',
    vary: 'Authorization, Impersonate-User',
  })
  if (names(reply.request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(text)
}
