import { hash, randomBytes } from 'node:crypto'

/** `uuid7`: a version 7 UUID (RFC 9562). It starts with the time, so that new rows are neighbours in an index. */
export { randomBytes, randomUUIDv7 as uuid7 } from 'node:crypto'

export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` random base62 characters, without modulo bias. */
export function randomText(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += base62[byte % 62]
    }
  }
  return text
}

export const sha256 = (text: string): Buffer => hash('sha256', text, 'buffer')

/** The form of an `X-Request-Id` that a client may send. */
export const requestIdForm = /^[\w.:/+=-]{1,128}$/
