import { generateKeyPair, randomBytes, sign } from 'node:crypto'
import { promisify } from 'node:util'

/**
 * A self-signed certificate: RFC 5280, written in DER. Only the structure is made here; key and signature are
 * node:crypto's. RSA with 2 048 bits and SHA-256, because that is what SAML signatures default to.
 */

/** Tag, length, contents (X.690, section 8.1). */
function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const lengthBytes = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content])
}

const hex = (digits: string) => Buffer.from(digits, 'hex')
const sequence = (...contents: readonly Buffer[]) => der(0x30, ...contents)
const oid = (digits: string) => der(0x06, hex(digits))
const bits = (content: Buffer, unused = 0) => der(0x03, Buffer.from([unused]), content)
const yes = der(0x01, hex('ff'))

const sha256WithRsa = sequence(oid('2a864886f70d01010b'), der(0x05))

/** UTCTime until 2049, GeneralizedTime from 2050 (RFC 5280, section 4.1.2.5). */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits))
}

/** The longest common name that RFC 5280 allows, in characters. */
const maxCommonName = 64

const commonName = (name: string) =>
  sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from([...name].slice(0, maxCommonName).join(''))))))

const extension = (id: string, value: Buffer) => sequence(oid(id), yes, der(0x04, value))

/** Not a CA; for signatures and key transport: what SAML and TLS ask of it. */
const extensions = der(
  0xa3,
  sequence(extension('551d13', sequence()), extension('551d0f', bits(Buffer.from([0b1010_0000]), 5))),
)

/** A positive number of at most 20 octets that does not start with zeros. */
function serialNumber(): Buffer {
  const number = randomBytes(16)
  number[0] = 0x40 | ((number[0] ?? 0) & 0x3f)
  return der(0x02, number)
}

const generate = promisify(generateKeyPair)

/** @returns a fresh key and a certificate about it in PEM form, valid for ten years from now */
export async function selfSigned(name: string): Promise<{ certificate: string; key: string }> {
  const { privateKey, publicKey } = await generate('rsa', { modulusLength: 2_048 })
  const from = new Date()
  const until = new Date(from)
  until.setUTCFullYear(from.getUTCFullYear() + 10)
  const subject = commonName(name)
  const version3 = der(0xa0, der(0x02, hex('02')))
  const body = sequence(
    version3,
    serialNumber(),
    sha256WithRsa,
    subject,
    sequence(time(from), time(until)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  )
  const certificate = sequence(body, sha256WithRsa, bits(sign('sha256', body, privateKey)))
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n').trimEnd()
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
