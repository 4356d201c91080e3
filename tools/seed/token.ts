import { createHmac } from 'node:crypto'
import type { Keyring } from '../../src/db/seal.ts'
import { base62 } from '../../src/ids.ts'
import { randomLength, secretOf, type TokenIntent } from '../../src/token-secret.ts'

export type SeededSecrets = (identifier: string, intent?: TokenIntent) => string

/**
 * The secrets of seeded tokens, computed from a token's identifier and the installation's SECRET_KEY. A benchmark that
 * has the key can compute any of them:
 *
 *     seededSecrets(keyring(SECRET_KEY))('s1-reader')
 *
 * They do not follow from the seed alone: then anyone could compute them.
 */
export function seededSecrets(keyring: Pick<Keyring, 'derive' | 'digests'>): SeededSecrets {
  const key = keyring.derive('seeded tokens')
  return (identifier, intent = 'api') => {
    const digest = createHmac('sha512', key).update(identifier).digest()
    const random = [...digest.subarray(0, randomLength)].map((byte) => base62[byte % 62]).join('')
    return secretOf(intent, random, keyring)
  }
}
