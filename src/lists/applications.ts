import type { Db } from '../db/client.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { applicationView } from '../views/application.ts'
import { toSeeMakers } from '../views/stored.ts'
import { readUidOf } from '../views/uid.ts'
import * as filter from './filters.ts'
import { findPage, type ListSpec, type Request } from './list.ts'
import { applicationText } from './tables.ts'

/** Applications as the API and the pages of operators list them. */
export const applicationList = ({ kinds }: Pick<Registry, 'kinds'>): ListSpec<'Application'> => ({
  path: '/core/applications/',
  summary: 'List applications',
  permission: 'view_application',
  alsoNeeds: toSeeMakers,
  view: applicationView(kinds),
  owned: { unless: 'view_application', sql: 'applications.owner' },
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
    owner: filter.hasOwner,
    created_by: filter.hasKey('createdBy', 'Made by the user with this key.'),
  },
})

/** The pages of operators count no further. */
export const mostCounted = 5_000

export type ApplicationRow = Awaited<ReturnType<typeof readApplications>>['rows'][number]

/** Reads a page of the applications that the caller sees. @returns `isCut`: there are more than are counted */
export async function readApplications(
  db: Db,
  registry: Pick<Registry, 'kinds'>,
  actor: Actor,
  request: Request,
) {
  const { keys, count, isExact } = await findPage(db, applicationList(registry), actor, { mostCounted, ...request })
  const view = applicationView(registry.kinds)
  const reading = { uidOf: await readUidOf(db), related: true, actor }
  const rows = keys.length === 0 ? [] : (await Array.fromAsync(view.read(db, keys.map(String), reading))).flat()
  return { count, rows, isCut: !isExact }
}
