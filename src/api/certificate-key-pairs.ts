import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { listAndOne } from '../lists/one.ts'
import { keyPairName } from '../lists/tables.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from '../views/stored.ts'

/** GET /api/v3/crypto/certificatekeypairs/, GET /api/v3/crypto/certificatekeypairs/{name}/ */
export function certificateKeyPairRoutes(app: Api, db: Db, registry: Registry): void {
  listAndOne(
    app,
    db,
    {
      path: '/crypto/certificatekeypairs/',
      summary: 'List certificate key pairs',
      permission: 'view_certificatekeypair',
      view: storedView(registry, 'CertificateKeyPair', 'service_crypto.certificatekeypair', (tx, where) =>
        tx.certificateKeyPair.findMany({ where }),
      ),
      count: 'rows',
      search: keyPairName,
      order: { name: 'name', pk: 'pk' },
      defaultOrder: 'name',
      filters: {
        name: filter.unique('name'),
        stack: filter.isInStack('service_crypto.certificatekeypair'),
        pk: filter.isOneOfKeys('pk', 'uuid'),
      },
    },
    { by: 'name', key: 'uuid', displayName: 'certificate key pair' },
  )
}
