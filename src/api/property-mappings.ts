import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { listAndOne } from '../lists/one.ts'
import { mappingText } from '../lists/tables.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from '../views/stored.ts'

/**
 * GET /api/v3/propertymappings/all/, GET /api/v3/propertymappings/all/{name}/: a name that several kinds have needs `kind`, as
 * documents find a mapping by name and kind.
 */
export function propertyMappingRoutes(app: Api, db: Db, registry: Registry): void {
  listAndOne(
    app,
    db,
    {
      path: '/propertymappings/all/',
      summary: 'List property mappings of all kinds',
      permission: 'view_propertymapping',
      view: storedView(registry, 'PropertyMapping', 'service_mappings.propertymapping', (tx, where) =>
        tx.propertyMapping.findMany({ where }),
      ),
      count: 'rows',
      search: mappingText,
      order: { name: 'name', kind: 'kind', pk: 'pk' },
      defaultOrder: 'name',
      filters: {
        pk: filter.isOneOfKeys('pk', 'uuid'),
        stack: filter.isInStack('service_mappings.propertymapping'),
        name: filter.equals('name'),
        kind: filter.equals('kind', 'Of this kind.'),
        scope_name: filter.equals('scopeName', 'Of this scope.'),
        managed: filter.unique('managed', 'Under this mark of what manages it.'),
      },
    },
    { by: 'name', key: 'uuid', displayName: 'property mapping', apartBy: 'kind' },
  )
}
