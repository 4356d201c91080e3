import type { Needs, Values } from './define.ts'
import { keyTypeOf } from './pem.ts'

const typeNames: Readonly<Record<string, string>> = { rsa: 'RSA', ec: 'EC', ed25519: 'Ed25519', dsa: 'DSA' }

/**
 * Of a reference to a pair that signs: it has a private key, of a type that the algorithm takes.
 *
 * @param types of keys that fit, given the referring row
 * @param beside the fields on which they depend
 * @param otherwise what to write for a key of another type
 */
export const signing = (
  types: (referring: Values) => readonly string[],
  beside: readonly string[] = [],
  otherwise: (type: string) => string = () => '',
): Needs => ({
  fields: ['certificate_data', 'key_data'],
  beside,
  misfit({ certificate_data, key_data }, referring) {
    if (key_data === null) return 'has no private key: this field takes one that has, because it signs.'
    const type = typeof certificate_data === 'string' ? keyTypeOf(certificate_data) : undefined
    const fitting = types(referring)
    if (type === undefined || fitting.includes(type)) return undefined
    const names = fitting.map((each) => typeNames[each] ?? each)
    return `has a key of the type ${typeNames[type] ?? type}: this field takes ${names.join(', ')}${otherwise(type)}.`
  },
})
