import { generateKeyPair, randomBytes, sign, X509Certificate } from 'node:crypto'
import { promisify } from 'node:util'

/**
 * A self-signed certificate (RFC 5280, section 4.1) in DER. This file writes only the structure; node:crypto makes the
 * key and the signature. ADR 22 gives the reason why no library writes it.
 */

/** An element: tag, length, contents (X.690, section 8.1). */
function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents)
  const { length } = content
  const lengthBytes = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content])
}

const hex = (digits: string) => Buffer.from(digits, 'hex')
const sequence = (...contents: readonly Buffer[]) => der(0x30, ...contents)
const oid = (digits: string) => der(0x06, hex(digits))
const bitString = (content: Buffer, unusedBits = 0) => der(0x03, Buffer.from([unusedBits]), content)

/** The default algorithm of SAML signatures. */
const sha256WithRsa = sequence(oid('2a864886f70d01010b'), der(0x05))

/** UTCTime until 2049, GeneralizedTime from 2050 (RFC 5280, section 4.1.2.5). */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits))
}

/** Characters (RFC 5280, appendix A.1, ub-common-name). */
const maxCommonName = 64

const commonName = (name: string) =>
  sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from([...name].slice(0, maxCommonName).join(''))))))

const criticalExtension = (id: string, value: Buffer) => sequence(oid(id), der(0x01, hex('ff')), der(0x04, value))

/** basicConstraints: not a CA. keyUsage: signatures and key transport, which SAML and TLS need. */
const extensions = der(
  0xa3,
  sequence(
    criticalExtension('551d13', sequence()),
    criticalExtension('551d0f', bitString(Buffer.from([0b1010_0000]), 5)),
  ),
)

/** @returns a new private key and its certificate in PEM form, valid for ten years */
export async function selfSigned(name: string, notBefore = new Date()): Promise<{ certificate: string; key: string }> {
  const { privateKey, publicKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2_048 })
  const notAfter = new Date(notBefore)
  notAfter.setUTCFullYear(notBefore.getUTCFullYear() + 10)
  const version3 = der(0xa0, der(0x02, hex('02')))
  // The number is positive and without leading zeros, at most 20 octets (RFC 5280, section 4.1.2.2).
  const serialNumber = der(0x02, hex('40'), randomBytes(15))
  const subject = commonName(name)
  const body = sequence(
    version3,
    serialNumber,
    sha256WithRsa,
    subject,
    sequence(time(notBefore), time(notAfter)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  )
  const certificate = sequence(body, sha256WithRsa, bitString(sign('sha256', body, privateKey)))
  return {
    certificate: new X509Certificate(certificate).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
