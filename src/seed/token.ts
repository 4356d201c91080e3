import { createHmac } from 'node:crypto'
import type { Keyring } from '../db/seal.ts'
import { base62 } from '../ids.ts'
import { randomLength, secretOf, type TokenIntent } from '../token-secret.ts'

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
    return secretOf(intent, [...digest.subarray(0, randomLength)].map((byte) => base62[byte % 62]).join(''))
  }
}
