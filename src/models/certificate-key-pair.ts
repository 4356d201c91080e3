import { z } from 'zod'
import { defineModel, type Values } from './define.ts'
import { name, secret, text, textLimits } from './fields.ts'
import { certificatePem, isPair, isSelfSigned, privateKeyPem } from './pem.ts'

/** Generates a key and a self-signed certificate for a new row that is sent without either. */
async function generateMissing(values: Values): Promise<Values> {
  const isSent = typeof values.certificate_data === 'string' || typeof values.key_data === 'string'
  if (isSent || typeof values.name !== 'string') return values
  const { selfSigned } = await import('./self-signed.ts')
  const { certificate, key } = await selfSigned(values.name)
  return { ...values, certificate_data: certificate, key_data: key }
}

export default defineModel({
  name: 'service_crypto.certificatekeypair',
  displayName: 'certificate key pair',
  table: 'certificate_key_pairs',
  key: 'uuid',
  identifiers: [['name']],
  offersNames: true,
  attrs: z.object({
    name: name(),
    certificate_data: text(certificatePem, textLimits.text).optional(),
    key_data: secret(text(privateKeyPem, textLimits.text)).nullable().default(null),
  }),
  columns: { key_data: 'sealed_key' },
  generateMissing,
  isGenerated: ({ certificate_data, key_data }) =>
    typeof certificate_data === 'string' && key_data !== null && isSelfSigned(certificate_data),
  rules({ certificate_data, key_data }, report) {
    if (typeof certificate_data !== 'string')
      report(['certificate_data'], 'required', 'This field is required with key_data.')
    else if (typeof key_data === 'string' && !isPair(certificate_data, key_data))
      report(['key_data'], 'invalid_combination', 'Must be the private key of the certificate.')
  },
})
