import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

/** A key pair; its private key is masked. */
export const certificateKeyPairView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_crypto.certificatekeypair',
    model: 'CertificateKeyPair',
    columns: { name: 'name', certificate_data: 'certificateData', sealed_key: 'sealedKey' },
    find: (tx, query) => tx.certificateKeyPair.findMany(query),
  })
