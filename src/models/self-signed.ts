import 'reflect-metadata'
import { KeyObject, randomBytes, webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'

/** RSA with SHA-256: the default algorithm of SAML signatures. */
const algorithm = {
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  modulusLength: 2_048,
  publicExponent: Uint8Array.of(1, 0, 1),
}

/** Characters (RFC 5280, appendix A.1, ub-common-name). */
const maxCommonName = 64

/** Signatures and key transport, which SAML and TLS need. */
const usages = x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment

/** @returns a new private key and its certificate in PEM form, valid for ten years; it is no CA */
export async function selfSigned(name: string, notBefore = new Date()): Promise<{ certificate: string; key: string }> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const notAfter = new Date(notBefore)
  notAfter.setUTCFullYear(notBefore.getUTCFullYear() + 10)
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // pem.ts recognises this form. The number is positive, and has at most 20 octets (RFC 5280, section 4.1.2.2).
    serialNumber: `40${randomBytes(15).toString('hex')}`,
    // A plain text would be read by RFC 4514, in which signs such as , and # have a meaning.
    name: new x509.Name([{ CN: [{ utf8String: [...name].slice(0, maxCommonName).join('') }] }]),
    notBefore,
    notAfter,
    keys,
    signingAlgorithm: algorithm,
    extensions: [new x509.BasicConstraintsExtension(false, undefined, true), new x509.KeyUsagesExtension(usages, true)],
  })
  return {
    certificate: `${certificate.toString('pem')}\n`,
    key: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
