import { hash, randomBytes } from 'node:crypto'

/** `uuid7`: a version 7 UUID (RFC 9562). It starts with the time, so that new rows are neighbours in an index. */
export { randomBytes, randomUUIDv7 as uuid7 } from 'node:crypto'

export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` random base62 characters: those of base64url without two. Of three bytes at a time, all are as frequent. */
export function randomText(length: number): string {
  let text = ''
  while (text.length < length)
    text += randomBytes(3 * length)
      .toString('base64url')
      .replaceAll(/[-_]/g, '')
  return text.slice(0, length)
}

export const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')

/** The form of an `X-Request-Id` that a client may send. */
export const requestIdForm = /^[\w.:/+=-]{1,128}$/
