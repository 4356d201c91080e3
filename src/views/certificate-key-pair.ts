import type { Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from './stored.ts'

const select = {
  pk: true,
  name: true,
  certificateData: true,
  sealedKey: true,
} satisfies Prisma.CertificateKeyPairSelect

/** The private key is masked. */
export const certificateKeyPairView = (registry: Registry) =>
  storedView(registry, {
    name: 'service_crypto.certificatekeypair',
    model: 'CertificateKeyPair',
    columns: { name: 'name', certificate_data: 'certificateData', sealed_key: 'sealedKey' },
    find: (tx: Tx, keys: string[]) => tx.certificateKeyPair.findMany({ where: { pk: { in: keys } }, select }),
  })
