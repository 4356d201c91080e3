import { crc32 } from 'node:zlib'
import { base62, randomText } from './ids.ts'

export const tokenIntents = ['verification', 'api', 'recovery', 'app_password'] as const
export type TokenIntent = (typeof tokenIntents)[number]

const letters: Readonly<Record<TokenIntent, string>> = { verification: 'v', api: 'a', recovery: 'r', app_password: 'p' }

/** Base62 characters: 178 bits that cannot be guessed. */
export const randomLength = 30

/** A new token's secret. Only its SHA-256 is stored. */
export const newSecret = (intent: TokenIntent): string => secretOf(intent, randomText(randomLength))

/**
 * `gw_<intent letter>_`, 30 random base62 characters, and 6 of their CRC32, by which a secret scanner recognises a token.
 *
 * The letter is the intent, which is fixed. The row alone decides what the token permits.
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
