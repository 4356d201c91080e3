import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import certificateKeyPair from '../../src/models/certificate-key-pair.ts'
import { selfSigned } from '../../src/models/self-signed.ts'
import { fieldOf, ruleErrors, testFields, textRow } from './check.ts'

const own = await selfSigned('one.example.com')
const other = await selfSigned('two.example.com')
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const ecKey = privateKey.export({ type: 'sec1', format: 'pem' }).toString()
const encryptedKey = privateKey
  .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'example' })
  .toString()

const noCertificate = 'Must be a certificate in PEM form'
const noKey = 'Must be a private key in PEM form, not encrypted'

testFields(certificateKeyPair, [
  textRow('name', 255, { filled: true }),
  [
    'certificate_data',
    [own.certificate, own.certificate + other.certificate, `subject=x\n${own.certificate}`],
    [
      ['', noCertificate],
      ['certificate', noCertificate],
      [own.certificate.replace('MII', 'MXX'), noCertificate],
      [own.certificate.slice(0, 200), noCertificate],
      [`${own.certificate}-----BEGIN CERTIFICATE-----\n`, noCertificate],
      [own.certificate + own.key, 'Holds a private key: that belongs in key_data'],
      [null, 'Must be text.'],
    ],
  ],
  [
    'key_data',
    [null, own.key, ecKey],
    [
      ['', noKey],
      ['key', noKey],
      [own.certificate, noKey],
      [encryptedKey, noKey],
    ],
  ],
])

test('the key is sealed in its column', () => {
  expect(fieldOf(certificateKeyPair, 'key_data')).toMatchObject({
    secret: true,
    storage: { in: 'sealed', column: 'sealed_key' },
  })
})

test('a key must belong to its certificate, and needs one', () => {
  expect(ruleErrors(certificateKeyPair, { certificate_data: own.certificate, key_data: own.key })).toEqual([])
  expect(
    ruleErrors(certificateKeyPair, { certificate_data: own.certificate + other.certificate, key_data: own.key }),
  ).toEqual([])
  expect(ruleErrors(certificateKeyPair, { certificate_data: own.certificate, key_data: null })).toEqual([])
  expect(ruleErrors(certificateKeyPair, { certificate_data: own.certificate, key_data: other.key })).toEqual([
    'key_data: Must be the private key of the certificate.',
  ])
  expect(ruleErrors(certificateKeyPair, { certificate_data: null, key_data: own.key })).toEqual([
    'certificate_data: This field is required with key_data.',
  ])
})

test('without certificate and key, a new row gets a valid self-signed pair', async () => {
  const name = 'Gatewright "self-signed", é+'
  const values = await certificateKeyPair.generateMissing?.({ name, certificate_data: null, key_data: null })
  const certificate = new X509Certificate(String(values?.certificate_data))
  expect(ruleErrors(certificateKeyPair, values ?? {})).toEqual([])
  expect(certificate.toLegacyObject().subject.CN).toBe(name)
  expect(certificate.verify(certificate.publicKey)).toBe(true)
  expect(certificate.ca).toBe(false)
  expect(certificate.publicKey.asymmetricKeyDetails?.modulusLength).toBe(2_048)
  const years = new Date(certificate.validTo).getUTCFullYear() - new Date(certificate.validFrom).getUTCFullYear()
  expect(years).toBe(10)
})

test('sent values are not replaced', async () => {
  const values = { name: 'x', certificate_data: own.certificate, key_data: null }
  expect(await certificateKeyPair.generateMissing?.(values)).toBe(values)
})

test('a name that is too long for a common name is cut to 64 characters', async () => {
  const { certificate } = await selfSigned('😀'.repeat(100))
  expect(new X509Certificate(certificate).toLegacyObject().subject.CN).toBe('😀'.repeat(64))
})

/** Self-signed too, for 3652 days, by OpenSSL. */
const foreign = `-----BEGIN CERTIFICATE-----
MIIBijCCAS+gAwIBAgIUU81Q457UFUwHq3Ia5UBIMAXBctowCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPb25lLmV4YW1wbGUuY29tMB4XDTI2MTEyMjE5MzEyOVoXDTM2
MTEyMTE5MzEyOVowGjEYMBYGA1UEAwwPb25lLmV4YW1wbGUuY29tMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEyM9rJZOy94Kzokgfri8A6a56Nvru7Z2x3aWkq3sB
CifKFiNyn/zXZxaRTOp+OQMp2zSX2jY0kUYfz/UeDOt+46NTMFEwHQYDVR0OBBYE
FBjMySR5s3ChueRSCr7ah3GzYQ0WMB8GA1UdIwQYMBaAFBjMySR5s3ChueRSCr7a
h3GzYQ0WMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAIRDdWVP
XNsqZcODkDQs5swqZXL9fcWL5inqhw9kAKx7AiEA3Cz5yvijV8Vmu7gUKeGz6ObV
fdoykoJDr6omWrL9WFw=
-----END CERTIFICATE-----
`

test('a pair that the service generated is recognised, one of another origin is not', async () => {
  const { isGenerated } = certificateKeyPair
  const odd = await selfSigned('a, CN=*.é "y" + O=z')
  for (const { certificate, key } of [own, odd])
    expect(isGenerated?.({ certificate_data: certificate, key_data: key })).toBe(true)
  expect(isGenerated?.({ certificate_data: own.certificate, key_data: null })).toBe(false)
  expect(isGenerated?.({ certificate_data: own.certificate + other.certificate, key_data: own.key })).toBe(false)
  expect(isGenerated?.({ certificate_data: foreign, key_data: 'x' })).toBe(false)
})
