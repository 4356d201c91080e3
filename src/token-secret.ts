import { crc32 } from 'node:zlib'
import { randomText } from './ids.ts'

export const tokenIntents = ['verification', 'api', 'recovery', 'app_password'] as const
export type TokenIntent = (typeof tokenIntents)[number]

const letters: Readonly<Record<TokenIntent, string>> = { verification: 'v', api: 'a', recovery: 'r', app_password: 'p' }

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/**
 * A new token's secret: `gw_<intent letter>_`, 30 random base62 characters and 6 of their CRC32, so that a scanner can
 * tell a real one from a look-alike. Only its SHA-256 is stored (decisions.md 4).
 *
 * The letter tells what the token was made for. A later change of the intent leaves it: whoever holds the secret keeps
 * it, and what it opens is decided by the row alone.
 */
export function newSecret(intent: TokenIntent): string {
  const random = randomText(30)
  return `gw_${letters[intent]}_${random}${checksum(random)}`
}

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < 6; place += 1) {
    digits = `${base62[rest % 62]}${digits}`
    rest = Math.floor(rest / 62)
  }
  return digits
}
