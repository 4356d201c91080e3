import { hash, randomFillSync } from 'node:crypto'

const pool = Buffer.alloc(8_192)
let used = pool.length

/**
 * Random bytes of the system's source. They are fetched in larger pieces, because a call for twelve costs
 * as much as one for thousands; what was handed out is wiped from the piece.
 */
export function randomBytes(count: number): Buffer {
  if (count > pool.length) return randomFillSync(Buffer.alloc(count))
  if (used + count > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const bytes = Buffer.from(pool.subarray(used, used + count))
  pool.fill(0, used, used + count)
  used += count
  return bytes
}

/** A version 7 UUID (RFC 9562): its first 48 bits are the time in milliseconds, so new rows lie together in an index. */
export function uuid7(): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(Date.now(), 0, 6)
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` characters of base62 from the system's random source, without modulo bias. */
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
