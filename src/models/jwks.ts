import { createPublicKey } from 'node:crypto'
import { attempt } from '../attempt.ts'
import { isObject } from '../json-object.ts'

const maxKeys = 50
const leastBits = 2_048

/** Members that a key has beside its public part (RFC 7518, section 6), and those of a shared key. */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']

/** @returns what is wrong with a key set that should hold public keys, and no others */
export function faultOfJwks(value: unknown): string | undefined {
  const keys = isObject(value) ? value.keys : undefined
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > maxKeys)
    return `Must be a key set such as {"keys": [{"kty": "RSA", "kid": "..."}]}, with 1 to ${maxKeys} keys.`
  for (const [index, key] of keys.entries()) {
    if (isObject(key) && privateMembers.some((member) => Object.hasOwn(key, member)))
      return `Has a private or shared key at keys[${index}]: it takes public keys alone.`
    const read = isObject(key) && attempt(() => createPublicKey({ key: { ...key }, format: 'jwk' }))
    if (!read) return `Has no public key at keys[${index}] that can be read.`
    // Signatures of shorter ones are not verified (RFC 7518, section 3.3).
    const { modulusLength = leastBits } = read.asymmetricKeyDetails ?? {}
    if (modulusLength < leastBits)
      return `Has a key of ${modulusLength} bits at keys[${index}]: RSA needs ${leastBits}.`
  }
  const kids = new Set(keys.map(({ kid }) => kid).filter((kid) => typeof kid === 'string'))
  if (keys.length > 1 && kids.size < keys.length) return 'Has several keys: each of them must have a kid of its own.'
  return undefined
}
