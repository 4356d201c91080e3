import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { faultOfJwks } from '../../src/models/jwks.ts'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 })
const open = { ...publicKey.export({ format: 'jwk' }), kid: 'a', use: 'sig' }

test('a set of public keys is taken', () => {
  expect(faultOfJwks({ keys: [open] })).toBeUndefined()
  expect(
    faultOfJwks({ keys: [open, { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'b' }], more: 1 }),
  ).toBeUndefined()
  expect(
    faultOfJwks({ keys: Array.from({ length: 50 }, (_, index) => ({ ...open, kid: `${index}` })) }),
  ).toBeUndefined()
  expect(faultOfJwks({ keys: [{ ...open, kid: undefined }] })).toBeUndefined()
})

test.each([null, 'x', [], {}, { keys: {} }, { keys: [] }, { keys: Array.from({ length: 51 }, () => open) }])(
  'what is no set of 1 to 50 keys is refused',
  (value) => {
    expect(faultOfJwks(value)).toBe(
      'Must be a key set such as {"keys": [{"kty": "RSA", "kid": "..."}]}, with 1 to 50 keys.',
    )
  },
)

test.each([
  ['of EC', privateKey.export({ format: 'jwk' })],
  ['of RSA', rsa.privateKey.export({ format: 'jwk' })],
  ['shared', { kty: 'oct', k: 'c2VjcmV0' }],
  ['beside its public part', { ...open, d: 'x' }],
])('a secret is refused: %s', (_, key) => {
  expect(faultOfJwks({ keys: [open, key] })).toBe('Has a private or shared key at keys[1]: it takes public keys alone.')
})

test.each([
  null,
  'x',
  [],
  {},
  { kty: 'oct' },
  { kty: 'EC', crv: 'P-256' },
  { ...open, x: 'AAAA' },
  { ...open, kty: 'XY' },
])('what is no key is refused: %j', (key) => {
  expect(faultOfJwks({ keys: [key] })).toBe('Has no public key at keys[0] that can be read.')
})

test.each([1_024, 2_040])('an RSA key of %i bits is refused: it verifies nothing', (modulusLength) => {
  const short = generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' })
  expect(faultOfJwks({ keys: [short] })).toBe(`Has a key of ${modulusLength} bits at keys[0]: RSA needs 2048.`)
})

test.each(['a', undefined, 1])('a second key with the kid %j is refused: tokens could mean either', (kid) => {
  expect(faultOfJwks({ keys: [open, { ...open, kid }] })).toBe(
    'Has several keys: each of them must have a kid of its own.',
  )
})
