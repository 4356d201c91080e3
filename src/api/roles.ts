import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { listAndOne } from '../lists/one.ts'
import { roleName } from '../lists/tables.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from '../views/stored.ts'

/** GET /api/v3/rbac/roles/, GET /api/v3/rbac/roles/{name}/ */
export function roleRoutes(app: Api, db: Db, registry: Registry): void {
  listAndOne(
    app,
    db,
    {
      path: '/rbac/roles/',
      summary: 'List roles',
      permission: 'view_role',
      view: storedView(registry, 'Role', 'service_rbac.role', (tx, where) => tx.role.findMany({ where })),
      count: 'rows',
      search: roleName,
      order: { name: 'name', pk: 'pk' },
      defaultOrder: 'name',
      filters: {
        name: filter.unique('name'),
        stack: filter.isInStack('service_rbac.role'),
        pk: filter.isOneOfKeys('pk', 'uuid'),
      },
    },
    { by: 'name', key: 'uuid', displayName: 'role' },
  )
}
