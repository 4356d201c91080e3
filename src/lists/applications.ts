import { type Db, transaction } from '../db/client.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { applicationView } from '../views/application.ts'
import { toSeeMakers } from '../views/stored.ts'
import { readUidOf } from '../views/uid.ts'
import * as filter from './filters.ts'
import { find } from './find.ts'
import { type ListSpec, scopeOf } from './list.ts'
import type { ListQuery } from './listed.ts'
import { toSorted } from './page.ts'
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

export type ApplicationRow = Awaited<ReturnType<typeof readApplications>>['rows'][number]

/** The pages of operators count no further. */
export const mostCounted = 5_000

/**
 * Reads one page of the applications that the caller sees.
 *
 * @param sent filters by their names, with the values that their schemas returned
 * @param page the page, from 1
 * @returns `isCut`: there are more than are counted
 */
export async function readApplications(
  db: Db,
  registry: Pick<Registry, 'kinds'>,
  actor: Actor,
  {
    sent,
    terms,
    page,
    size,
  }: {
    readonly sent: Readonly<Record<string, unknown>>
    readonly terms: readonly string[]
    readonly page: number
    readonly size: number
  },
) {
  const spec = applicationList(registry)
  const filters = Object.entries(sent).flatMap(([name, value]) => {
    const found = spec.filters[name]
    return found === undefined || value === undefined ? [] : [{ name, filter: found, value }]
  })
  const asked: ListQuery = {
    filters,
    terms,
    ...scopeOf(spec, actor),
    ordering: toSorted(spec.defaultOrder),
    isPlain: false,
    page,
    page_size: size,
    mostCounted,
  }
  const isNarrow = filters.length > 0 || terms.length > 0 || asked.owners !== undefined
  const view = applicationView(registry.kinds)
  const reading = { uidOf: await readUidOf(db), related: true, actor }
  return transaction(
    db,
    async (tx) => {
      const { count, readKeys } = await find(tx, spec, asked)
      const keys = (page - 1) * size < count ? await readKeys() : []
      const rows = keys.length === 0 ? [] : (await Array.fromAsync(view.read(tx, keys.map(String), reading))).flat()
      return { count, rows, isCut: count > mostCounted && isNarrow }
    },
    { isolationLevel: 'RepeatableRead', plans: 'auto' },
  )
}
