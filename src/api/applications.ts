import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import * as filter from '../lists/filters.ts'
import { applicationText } from '../lists/find.ts'
import { type ListSpec, list } from '../lists/list.ts'
import { one } from '../lists/one.ts'
import type { Registry } from '../models/registry.ts'
import { applicationView } from '../views/application.ts'
import { toSeeMakers } from '../views/stored.ts'

/** GET /api/v3/core/applications/, GET /api/v3/core/applications/{slug}/ */
export function applicationRoutes(app: Api, db: Db, { kinds }: Registry): void {
  const applications: ListSpec<'Application'> = {
    path: '/core/applications/',
    summary: 'List applications',
    permission: 'view_application',
    alsoNeeds: toSeeMakers,
    view: applicationView(kinds),
    count: 'rows',
    search: applicationText,
    order: { name: 'name', slug: 'slug', pk: 'pk' },
    defaultOrder: 'name',
    filters: {
      name: filter.equals('name'),
      slug: filter.equals('slug'),
      group: filter.equals('group'),
      provider: filter.hasKey('providerPk'),
      owner: filter.equals('owner'),
      created_by: filter.hasKey('createdBy'),
    },
  }
  list(app, db, applications)
  one(app, db, applications, { by: 'slug', summary: 'Read an application', displayName: 'application' })
}
