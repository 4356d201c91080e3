import { createHmac } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Keyring } from '../db/seal.ts'
import type { TokenIntent } from '../token-secret.ts'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const letters: Readonly<Record<TokenIntent, string>> = { verification: 'v', api: 'a', recovery: 'r', app_password: 'p' }

export type SeededSecrets = (identifier: string, intent?: TokenIntent) => string

/**
 * The secrets of seeded tokens. Each follows from the token's identifier and the installation's SECRET_KEY, so whoever
 * has that, such as a benchmark, can work it out for any of them:
 *
 *     seededSecrets(keyring(SECRET_KEY))('s1-reader')
 *
 * From the seed alone it could be guessed: anybody would be in.
 */
export function seededSecrets(keyring: Pick<Keyring, 'derive'>): SeededSecrets {
  const key = keyring.derive('seeded tokens')
  return (identifier, intent = 'api') => {
    const digest = createHmac('sha512', key).update(identifier).digest()
    const random = [...digest.subarray(0, 30)].map((byte) => base62[byte % 62]).join('')
    return `gw_${letters[intent]}_${random}${checksum(random)}`
  }
}

/** Six base62 digits of the CRC32, as every token ends in. */
function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let place = 0; place < 6; place += 1) {
    digits = `${base62[rest % 62]}${digits}`
    rest = Math.floor(rest / 62)
  }
  return digits
}
