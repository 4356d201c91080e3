import type { Needs, Values } from './define.ts'
import { reference } from './fields.ts'
import { keyTypeOf } from './pem.ts'

const typeNames: Readonly<Record<string, string>> = { rsa: 'RSA', ec: 'EC', ed25519: 'Ed25519', dsa: 'DSA' }

type Types = (referring: Values) => readonly string[]

/**
 * A reference to a key pair: the types of its key that fit, and the use for which it needs its private key.
 *
 * @param types returns the types for the referring row; absent: all fit
 * @param beside the fields on which they depend
 * @param otherwise what to write for a key of another type
 * @param does why the private key is needed: `signs`
 */
const pairThat =
  (does?: string) =>
  (types?: Types, beside: readonly string[] = [], otherwise: (type: string) => string = () => ''): Needs => ({
    fields: ['certificate_data', 'key_data'],
    beside,
    misfit({ certificate_data, key_data }, referring) {
      if (key_data === null && does !== undefined)
        return `has no private key: this field takes one that has, because it ${does}.`
      const type = typeof certificate_data === 'string' ? keyTypeOf(certificate_data) : undefined
      const fitting = types?.(referring)
      if (type === undefined || fitting === undefined || fitting.includes(type)) return undefined
      const names = fitting.map((each) => typeNames[each] ?? each)
      return `has a key of the type ${typeNames[type] ?? type}: this field takes ${names.join(', ')}${otherwise(type)}.`
    },
  })

/** A field with a key pair, or none. */
export const keyPair = (needs?: Needs) =>
  reference('certificatekeypair', needs && { needs })
    .nullable()
    .default(null)

export const signing = pairThat('signs')
export const serving = pairThat('serves TLS')
/** A pair that encrypts. Others decrypt, with their private key, so that the pair needs none. */
export const encrypting = pairThat()
