import { crc32 } from 'node:zlib'
import { base62, randomText } from './ids.ts'

export const tokenIntents = ['verification', 'api', 'recovery', 'app_password'] as const
export type TokenIntent = (typeof tokenIntents)[number]

const letters: Readonly<Record<TokenIntent, string>> = { verification: 'v', api: 'a', recovery: 'r', app_password: 'p' }

/** Base62 characters of a secret that nobody can guess. */
export const randomLength = 30

/** A new token's secret. Only its SHA-256 is stored (decisions.md 4). */
export const newSecret = (intent: TokenIntent): string => secretOf(intent, randomText(randomLength))

/**
 * `gw_<intent letter>_`, 30 random base62 characters and 6 of their CRC32, so that a scanner can tell a real one from a
 * look-alike.
 *
 * The letter tells what the token was made for. A later change of the intent leaves it: whoever holds the secret keeps
 * it, and what it opens is decided by the row alone.
 */
export const secretOf = (intent: TokenIntent, random: string): string =>
  `gw_${letters[intent]}_${random}${checksum(random)}`

function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < 6; place += 1) {
    digits = `${base62[rest % 62]}${digits}`
    rest = Math.floor(rest / 62)
  }
  return digits
}
