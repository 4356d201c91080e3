import type { Registry } from '../models/registry.ts'
import { applicationView } from '../views/application.ts'
import { toSeeMakers } from '../views/stored.ts'
import { hasState } from './application-states.ts'
import { ofOwners } from './conditions.ts'
import * as filter from './filters.ts'
import type { ListSpec } from './listed.ts'
import { applicationText } from './tables.ts'

/** Applications as the API and the pages of operators list them. */
export const applicationList = ({ kinds }: Pick<Registry, 'kinds'>): ListSpec<'Application'> => ({
  path: '/core/applications/',
  summary: 'List applications',
  permission: 'view_application',
  alsoNeeds: toSeeMakers,
  view: applicationView(kinds),
  seen: ofOwners('applications.owner'),
  count: 'rows',
  search: applicationText,
  order: { name: 'name', slug: 'slug', pk: 'pk' },
  defaultOrder: 'name',
  filters: {
    pk: filter.isOneOfKeys('pk', 'uuid'),
    name: filter.equals('name'),
    slug: filter.unique('slug'),
    group: filter.equals('group', 'In this group of applications exactly.'),
    provider: filter.hasKey('providerPk', 'With the provider that has this key.'),
    stack: filter.isInStack('service_core.application'),
    owner: filter.hasOwner,
    created_by: filter.hasKey('createdBy', 'Made by the user with this key.'),
    state: hasState,
  },
})
