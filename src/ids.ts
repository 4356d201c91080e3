import { hash, randomBytes, randomUUIDv7 } from 'node:crypto'

export { randomBytes }

/** A version 7 UUID (RFC 9562). It starts with the time, so that new rows are neighbours in an index. */
export const uuid7 = (): string => randomUUIDv7()

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

/** What a client may send as `X-Request-Id`. */
export const requestIdForm = /^[\w.:/+=-]{1,128}$/
