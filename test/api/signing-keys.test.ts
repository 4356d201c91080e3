import { expect, test } from 'vitest'
import { selfSigned } from '../../src/models/self-signed.ts'
import { pairs } from '../support/key-pairs.ts'
import { aKeyPair, answered, aProvider, applied, type Entry, installation, name } from '../support/kit.ts'

/** A field that signs takes a pair with a private key, of a type that the algorithm takes. */

const on = await installation()
const { certificate, key } = await selfSigned('sign.example')
const rsa = { certificate_data: certificate, key_data: key }

const put = (entries: readonly Entry[]) => on.admin.apply(entries, { name })
const write = (entries: readonly Entry[]) => applied(put(entries))

const pair = (attrs: object, of = name) => aKeyPair(of, attrs)
const algorithm = (of: string) => `http://www.w3.org/2001/04/xmldsig-more#${of}`
const saml = (attrs: object) =>
  aProvider('saml', name, {
    authorization_flow: 'default-authorization-explicit',
    acs_url: 'https://sp.example/acs',
    ...attrs,
  })
const oauth2 = (attrs: object) =>
  aProvider('oauth2', name, { authorization_flow: 'default-authorization-explicit', ...attrs })
const publicHalf = () => ({ certificate_data: rsa.certificate_data, key_data: null })

/** The same holds in one document, and for a pair that is there, by name and by key. */
async function refused(field: string, why: string, of: object, provider: (of: unknown) => Entry): Promise<void> {
  const error = (what: string, at: number) => ({
    status: 400,
    text: expect.stringContaining('"code":"invalid_combination"'),
    json: {
      entries: { [at]: { [field]: [`The certificate key pair ${what} ${why}`] } },
    },
  })
  expect(await put([pair(of), provider(name)])).toMatchObject(error(`"${name}"`, 1))
  await write([pair(of)])
  expect(await put([provider(name)])).toMatchObject(error(`"${name}"`, 0))
  const { pk } = await on.db.certificateKeyPair.findUniqueOrThrow({ where: { name } })
  expect(await put([provider(pk)])).toMatchObject(error(pk, 0))
}
const ldap = (certificate: unknown) =>
  aProvider('ldap', name, { authorization_flow: 'default-authorization-explicit', certificate })
const proxy = (certificate: unknown) =>
  aProvider('proxy', name, {
    authorization_flow: 'default-authorization-explicit',
    external_host: 'https://a.example.com',
    internal_host: 'http://a.internal',
    certificate,
  })

const noKey = 'has no private key: this field takes one that has, because it signs.'

test('a pair without a private key signs nothing', async () => {
  await refused('signing_kp', noKey, publicHalf(), (signing_kp) => saml({ signing_kp }))
  await refused('signing_key', noKey, publicHalf(), (signing_key) => oauth2({ signing_key }))
  // The public half is enough to encrypt and to verify.
  await write([saml({ encryption_kp: name, verification_kp: name })])
  await write([{ ...oauth2({ encryption_key: name }), identifiers: { name: `${name} o` } }])
})

test('a pair without a private key serves no TLS', async () => {
  const why = 'has no private key: this field takes one that has, because it serves TLS.'
  await refused('certificate', why, publicHalf(), ldap)
  await refused('certificate', why, publicHalf(), proxy)
  await write([pair(pairs.ec), ldap(name), { ...proxy(name), identifiers: { name: `${name} p` } }])
})

test('keys are encrypted for a type that can', async () => {
  const [ec, ed25519] = ['EC', 'Ed25519'].map((type) => `has a key of the type ${type}: this field takes RSA`)
  await refused('encryption_kp', `${ec}.`, pairs.ec, (encryption_kp) => saml({ encryption_kp }))
  await refused('encryption_kp', `${ed25519}.`, pairs.ed25519, (encryption_kp) => saml({ encryption_kp }))
  await refused('encryption_key', `${ed25519}, EC.`, pairs.ed25519, (encryption_key) => oauth2({ encryption_key }))
  await write([pair(pairs.ec), oauth2({ encryption_key: name })])
})

test('SAML: the key has the type of the algorithm', async () => {
  const ec = `has a key of the type EC: this field takes RSA with this signature_algorithm; this key goes with ${['sha1', 'sha256', 'sha384', 'sha512'].map((each) => algorithm(`ecdsa-${each}`)).join(', ')}.`
  await refused('signing_kp', ec, pairs.ec, (signing_kp) => saml({ signing_kp }))
  await write([saml({ signing_kp: name, signature_algorithm: algorithm('ecdsa-sha256') })])
  // Only the algorithm changes.
  await answered(400, put([saml({ signature_algorithm: algorithm('rsa-sha512') })]), {
    entries: { 0: { signature_algorithm: [`The certificate key pair "${name}" ${ec}`] } },
  })
})

test('SAML: nothing signs with Ed25519, and OAuth2 does', async () => {
  const why = 'has a key of the type Ed25519: this field takes RSA.'
  await refused('signing_kp', why, pairs.ed25519, (signing_kp) => saml({ signing_kp }))
  await write([oauth2({ signing_key: name })])
})

test('a pair that signs keeps a key that fits', async () => {
  await write([pair(rsa), saml({ signing_kp: name })])
  const refers = `provider saml "${name}" refers to it in signing_kp. So changed, it has`
  const error = (field: string, sentence: string, at = 0) => ({
    status: 400,
    json: { entries: { [at]: { [field]: [expect.stringContaining(sentence)] } } },
  })
  expect(await put([pair(pairs.ec)])).toMatchObject(error('certificate_data', `${refers} a key of the type EC`))
  expect(await put([pair({ key_data: null })])).toMatchObject(error('key_data', `${refers} no private key`))
  // A document that makes it refer, and changes it: the change comes before.
  const other = `${name} other`
  await write([pair(rsa, other), saml({ signing_kp: null })])
  expect(await put([saml({ signing_kp: other }), pair(pairs.ec, other)])).toMatchObject(
    error('signing_kp', `The certificate key pair "${other}" has a key of the type EC`),
  )
  await write([saml({ signing_kp: null }), pair(pairs.ec, other)])
})
