import type { Db } from '../db/client.ts'
import type { Api } from '../http/api.ts'
import { ofKinds } from '../lists/conditions.ts'
import * as filter from '../lists/filters.ts'
import { listAndOne } from '../lists/one.ts'
import { providerName } from '../lists/tables.ts'
import type { ProviderModel } from '../models/provider.ts'
import type { Registry } from '../models/registry.ts'
import type { Permission } from '../permissions.ts'
import { providerViews } from '../views/provider.ts'
import { toSeeMakers } from '../views/stored.ts'

const providers = { alsoNeeds: toSeeMakers, count: 'rows', search: providerName, defaultOrder: 'name' } as const

const filtersOf = (kinds: readonly ProviderModel[]) => ({
  pk: filter.isOneOfKeys('pk', 'integer'),
  name: filter.unique('name'),
  owner: filter.hasOwner,
  created_by: filter.hasKey('createdBy', 'Made by the user with this key.'),
  stack: filter.isInStack(
    kinds.map(({ name }) => name),
    'integer',
  ),
})

const byName = { by: 'name', key: 'integer' } as const

const permissionOf = ({ resource }: ProviderModel): Permission => `view_${resource}`

/**
 * GET /api/v3/providers/all/ and /api/v3/providers/all/{name}/, of all kinds that the caller may view, and the same of
 * each kind: /api/v3/providers/oauth2/, /api/v3/providers/oauth2/{name}/.
 */
export function providerRoutes(app: Api, db: Db, { kinds }: Registry): void {
  const views = providerViews(kinds)
  const [first = 'none', ...others] = kinds.keys()
  const permissions = Object.fromEntries([...kinds].map(([kind, model]) => [kind, permissionOf(model)]))
  listAndOne(app, db, {
    ...providers,
    path: '/providers/all/',
    summary: 'List providers of all kinds',
    description: 'Those of the kinds whose permission the caller holds.',
    permission: Object.values(permissions),
    seen: ofKinds(permissions, true),
    view: views.all,
    order: { name: 'name', kind: 'kind', pk: 'pk' },
    filters: {
      ...filtersOf([...kinds.values()]),
      kind: filter.isOneOf('kind', 'text', [first, ...others], 'Of this kind.', 'ProviderKind'),
    },
    one: { ...byName, summary: 'Read a provider of any kind', displayName: 'provider' },
  })

  for (const { model, view } of views.ofKinds) {
    const { displayName, provider } = model
    const { kind } = provider
    const permission = permissionOf(model)
    listAndOne(app, db, {
      ...providers,
      path: `/providers/${kind}/`,
      summary: `List providers of the kind ${kind}`,
      permission,
      seen: ofKinds({ [kind]: permission }),
      view,
      order: { name: 'name', pk: 'pk' },
      filters: filtersOf([model]),
      one: { ...byName, summary: `Read a provider of the kind ${kind}`, displayName },
    })
  }
}
