import { hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Tx } from '../db/client.ts'
import { Problem } from '../errors.ts'
import { withExample } from '../example.ts'
import { type Headers, noStore } from './headers.ts'

/** Entity tags of single objects: a client that has the current text of one need not get it again. */

export const etagHeaders = z.object({
  'If-Match': z.string().optional().meta({
    description: 'The `ETag` that the object must still have: else the answer is a 412.',
  }),
  'If-None-Match': z.string().optional().meta({
    description: 'The `ETag` of an answer that the client has: when it is still current, the answer is a 304.',
  }),
})

/** The tag of a text, the same in every process. Two callers who see different texts get different tags. */
export const etagOf = (text: string): string => `"${hash('sha256', text, 'base64url')}"`

/** Whether a header, a list of tags or `*`, names one of these. A weak tag does not count (RFC 9110, section 13.1.1). */
const isMatched = (header: string, etags: readonly (string | null)[]): boolean =>
  header.trim() === '*' || header.split(',').some((each) => etags.includes(each.trim()))

/** Whether `If-None-Match` names this tag. A weak tag counts too (RFC 9110, section 13.1.2). */
const names = (header: string | undefined, etag: string | null): boolean =>
  header !== undefined && isMatched(header.replaceAll('W/"', '"'), [etag])

/** Whether `If-None-Match` has the tag of this text. */
export const hasTag = (header: string | undefined, text: string): boolean => names(header, etagOf(text))

/** The headers of a change of one object whose reads have a tag. */
export const matchHeaders = z.object({
  'If-Match': withExample(
    z.string().optional(),
    '"Jhg7nK2T6yq8eE3xH0b7Qm1cV5rL9sW4dZ2uF6aP0Yk"',
    'The `ETag` of the object as the client has read it: when it is another one now, the answer is a 412, and nothing is changed.',
  ),
  'If-None-Match': z.string().optional().meta({
    description: 'An `ETag` that the object must not have, or `*` for an object that must not be there: else a 412.',
  }),
})

/**
 * Judges `If-Match` and `If-None-Match` for an object that is changed or deleted (RFC 9110, section 13.2.2).
 *
 * @param displayName its name in messages
 * @param tagsOf the tags with which reads answer the object to this caller as it is now, null for a text that is so long
 *   that it has none; no item: the caller may not read it
 * @returns a function that judges them in the transaction that has locked the object: it returns the reason why the object is not
 *   changed, or null. undefined when neither header was sent
 */
export function preconditionOf(
  headers: Headers,
  displayName: string,
  tagsOf: (tx: Tx) => Promise<readonly (string | null)[]>,
): ((tx: Tx) => Promise<string | null>) | undefined {
  const { match, noneMatch } = { match: headers['if-match'], noneMatch: headers['if-none-match'] }
  if (match === undefined && noneMatch === undefined) return undefined
  return async (tx) => {
    const found = await tagsOf(tx)
    const etags = found.filter((etag) => etag !== null)
    if (match !== undefined && !isMatched(String(match), etags)) {
      if (found.length === 0)
        return `You may not read the ${displayName}, so \`If-Match\` cannot be compared: leave it out, or ask for the permission to view it.`
      return etags.length === 0
        ? `The ${displayName} is so long that it has no \`ETag\`, so \`If-Match\` cannot be compared: leave it out to change the ${displayName} as it is.`
        : `The ${displayName} is not as \`If-Match\` has it: read it again, and send the new \`ETag\` if you still want to change it.`
    }
    if (noneMatch === undefined) return null
    if (String(noneMatch).trim() === '*')
      return `The ${displayName} exists: \`If-None-Match: *\` is for what does not. Leave it out to change what is there.`
    return etags.some((etag) => names(String(noneMatch), etag))
      ? `The ${displayName} is still as \`If-None-Match\` has it: send this \`ETag\` as \`If-Match\` to change it as you have read it.`
      : null
  }
}

/** A cache may keep it for the same caller, and must ask again. */
const ofCaller = {
  type: 'application/json; charset=utf-8',
  headers: { 'cache-control': 'private, no-cache', vary: 'Authorization, Impersonate-User' },
}

/** No cache may keep it. */
export const neverStored = { ...ofCaller, headers: { ...ofCaller.headers, 'cache-control': noStore } }

type Sent = {
  readonly type: string
  readonly headers: Readonly<Record<string, string>>
  readonly tagged?: (text: string) => string
}

/**
 * Answers with this text and its tag, or with 304 when `If-None-Match` has the tag. A text that is so long that it is streamed
 * has no tag: it would have to be made twice.
 *
 * @param displayName its name in messages
 * @param headers those beside the tag
 * @param tagged returns the part of the text that the tag is of
 * @throws {Problem} `precondition_failed` when `If-Match` has another tag, which is judged first (RFC 9110, section 13.2.2)
 */
export function sendTagged(
  reply: FastifyReply,
  text: string | Readable,
  displayName: string,
  { type, headers, tagged = (whole) => whole }: Sent = ofCaller,
): FastifyReply {
  const etag = text instanceof Readable ? null : etagOf(tagged(text))
  const { 'if-match': match, 'if-none-match': noneMatch } = reply.request.headers
  const isRefused = match !== undefined && !isMatched(match, [etag])
  // No tag of the request is that of a text without one; `*` matches it all the same.
  const isKnown = names(noneMatch, etag)
  if (text instanceof Readable && (isRefused || isKnown)) text.destroy()
  if (isRefused) {
    const why =
      etag === null
        ? `The ${displayName} is so long that it has no \`ETag\`: leave \`If-Match\` out to read it.`
        : `The ${displayName} is not as \`If-Match\` has it any more: leave it out to read it.`
    throw new Problem('precondition_failed', why)
  }
  reply.headers({ ...(etag !== null && { etag }), ...headers })
  return isKnown ? reply.code(304).send() : reply.type(type).send(text)
}

/**
 * Answers with the written object, and with the tag that a read of it has, unless it is streamed. No cache may keep it.
 *
 * @param read the text of a read, where it is another one
 */
export function sendWritten(reply: FastifyReply, written: string | Readable, read = written): FastifyReply {
  if (typeof read === 'string') reply.header('etag', etagOf(read))
  return reply.type('application/json; charset=utf-8').send(written)
}
