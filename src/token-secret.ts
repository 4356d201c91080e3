import { crc32 } from 'node:zlib'
import { base62, randomText } from './ids.ts'

export const tokenIntents = ['verification', 'api', 'recovery', 'app_password'] as const
export type TokenIntent = (typeof tokenIntents)[number]

const letters: Readonly<Record<TokenIntent, string>> = { verification: 'v', api: 'a', recovery: 'r', app_password: 'p' }

/** Base62 characters: 142 bits that cannot be guessed. */
export const randomLength = 24
const checkLength = 6

/** The keys of SECRET_KEY, and of SECRET_KEY_PREVIOUS while it is set. */
type Keys = { digests(purpose: string, text: string): readonly Buffer[] }

/** Makes a new token's secret. Only its SHA-256 is stored. */
export const newSecret = (intent: TokenIntent, keys: Keys): string => secretOf(intent, randomText(randomLength), keys)

/**
 * Makes the secret: `gw_<intent letter>_`, 24 random base62 characters, 6 that only a holder of SECRET_KEY can make of them, by
 * which a forged token costs no query, and 6 of a CRC32 of these 30, by which a secret scanner recognises a token.
 *
 * The letter is the intent, which is fixed. The row alone decides what the token permits.
 */
export function secretOf(intent: TokenIntent, random: string, keys: Keys): string {
  const start = `gw_${letters[intent]}_`
  const text = `${random}${keyedChecks(`${start}${random}`, keys)[0]}`
  return `${start}${text}${lastDigits(crc32(text))}`
}

const form = /^(gw_[varp]_[\dA-Za-z]{24})([\dA-Za-z]{6})[\dA-Za-z]{6}$/

/** Whether a secret was made under one of these keys. Others are older, chosen by an operator, or forged. */
export function isKeyed(secret: string, keys: Keys): boolean {
  const [, text, check = ''] = form.exec(secret) ?? []
  return text !== undefined && keyedChecks(text, keys).includes(check)
}

const keyedChecks = (text: string, keys: Keys): string[] =>
  keys.digests('tokens', text).map((digest) => lastDigits(digest.readUIntBE(0, 6)))

/** The last digits of a number in base62. */
function lastDigits(number: number): string {
  let rest = number
  let digits = ''
  for (let place = 0; place < checkLength; place += 1) {
    digits = `${base62[rest % 62]}${digits}`
    rest = Math.floor(rest / 62)
  }
  return digits
}
