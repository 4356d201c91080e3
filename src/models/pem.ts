import { createPrivateKey, X509Certificate } from 'node:crypto'
import { attempt } from '../attempt.ts'
import { remembered } from './remembered.ts'
import type { Syntax } from './syntax.ts'

const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** A certificate in PEM form, or a chain that starts with it. */
export const certificatePem: Syntax = (text) => {
  if (text.includes('PRIVATE KEY-----')) return 'Holds a private key: that belongs in key_data, where it is sealed.'
  const blocks = text.match(certificateBlock) ?? []
  const hasOnlyCertificates = blocks.length > 0 && blocks.length === text.split('-----BEGIN').length - 1
  return hasOnlyCertificates && blocks.every((block) => readCertificate(block) !== undefined)
    ? undefined
    : 'Must be a certificate in PEM form (-----BEGIN CERTIFICATE----- ...).'
}

/** A private key in PEM form, without a passphrase: the service could not ask for one. */
export const privateKeyPem: Syntax = (text) =>
  readPrivateKey(text) === undefined
    ? 'Must be a private key in PEM form, not encrypted (-----BEGIN PRIVATE KEY----- ...).'
    : undefined

/** Whether the key belongs to the certificate, or to the first one of a chain. */
export function isPair(certificate: string, key: string): boolean {
  const privateKey = readPrivateKey(key)
  return privateKey !== undefined && readCertificate(certificate)?.checkPrivateKey(privateKey) === true
}

/**
 * Whether `self-signed.ts` made the certificate, by its contents: a serial number of 16 octets that starts with 40, the common
 * name alone as subject and issuer, ten years to the second.
 */
export function isSelfSigned(pem: string): boolean {
  const blocks = pem.match(certificateBlock) ?? []
  const certificate = blocks.length === 1 ? readCertificate(pem) : undefined
  if (certificate === undefined) return false
  const { subject, issuer, serialNumber } = certificate
  const end = new Date(certificate.validFrom)
  end.setUTCFullYear(end.getUTCFullYear() + 10)
  const isNamed = subject === issuer && /^CN=[^\n]*$/.test(subject)
  return isNamed && /^40[\dA-F]{30}$/i.test(serialNumber) && end.getTime() === Date.parse(certificate.validTo)
}

/** The type of the certificate's key, or of the first one of a chain: `rsa`, `ec`, `ed25519`. */
export const keyTypeOf = remembered((pem) => readCertificate(pem)?.publicKey.asymmetricKeyType)

/** The end of the certificate, or of the first one of a chain; undefined for a text that is no certificate. */
export function endOfCertificate(pem: string): Date | undefined {
  const certificate = readCertificate(pem)
  return certificate && new Date(certificate.validTo)
}

const readCertificate = (pem: string) => attempt(() => new X509Certificate(pem))

const readPrivateKey = (pem: string) => attempt(() => createPrivateKey({ key: pem, format: 'pem' }))
