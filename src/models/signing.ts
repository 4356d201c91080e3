import type { Needs, Values } from './define.ts'
import { keyTypeOf } from './pem.ts'

const typeNames: Readonly<Record<string, string>> = { rsa: 'RSA', ec: 'EC', ed25519: 'Ed25519', dsa: 'DSA' }

type Types = (referring: Values) => readonly string[]

/**
 * Of a reference to a pair: the types of its key that fit, and what for it needs its private key.
 *
 * @param types given the referring row; all without it
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

export const signing = pairThat('signs')
export const serving = pairThat('serves TLS')
/** What is encrypted is read by others, with their private key. */
export const encrypting = pairThat()
