import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { listAndOne } from '../lists/one.ts'
import { flowText } from '../lists/tables.ts'
import { designations } from '../models/flow.ts'
import type { Registry } from '../models/registry.ts'
import { storedView } from '../views/stored.ts'

/** GET /api/v3/flows/instances/, GET /api/v3/flows/instances/{slug}/ */
export function flowRoutes(app: Api, db: Db, registry: Registry): void {
  listAndOne(
    app,
    db,
    {
      path: '/flows/instances/',
      summary: 'List flows',
      permission: 'view_flow',
      view: storedView(registry, 'Flow', 'service_flows.flow', (tx, where) => tx.flow.findMany({ where })),
      count: 'rows',
      search: flowText,
      order: { slug: 'slug', name: 'name', pk: 'pk' },
      defaultOrder: 'slug',
      filters: {
        pk: filter.isOneOfKeys('pk', 'uuid'),
        stack: filter.isInStack('service_flows.flow'),
        name: filter.equals('name'),
        slug: filter.unique('slug'),
        designation: filter.isOneOf(
          'designation',
          'flow_designation',
          designations,
          'What the flow is for.',
          'FlowDesignation',
        ),
      },
    },
    { by: 'slug', key: 'uuid', displayName: 'flow' },
  )
}
