import { KeyOf } from '../../document/document.ts'
import { dependenciesFirst } from '../../plan/dependencies-first.ts'
import { lookupsIn } from '../../plan/lookups.ts'
import { type Draft, dropItems, fieldFor } from './draft.ts'

/** Entries of an export stand in the order of their tables, and refer to each other in both directions. */

/** Removes memberships from users whose group has them too: the group has all of its users. */
export function sayMembershipsOnce(drafts: readonly Draft[]): void {
  const said = new Set<string>()
  const lists = drafts.flatMap((draft) =>
    Object.entries(draft.own?.attrs ?? {}).flatMap(([name, list]) => {
      const storage = draft.own && fieldFor(draft.own, name)?.storage
      return storage?.in === 'link' && Array.isArray(list) ? [{ draft, name, storage, list }] : []
    }),
  )
  for (const { draft, storage, list } of lists)
    for (const item of list)
      if (storage.many && item instanceof KeyOf) said.add([storage.table, item.id, draft.id].join('\n'))
  const why = 'other entries say of the same list who belongs to them, and it cannot be said on both sides'
  for (const { draft, name, storage, list } of lists) {
    const isSaid = (item: unknown) => item instanceof KeyOf && said.has([storage.table, draft.id, item.id].join('\n'))
    // An edit does not show the members of the other groups.
    const whyOthers = name.includes('.') ? undefined : why
    if (!storage.many && list.some(isSaid)) dropItems(draft, name, (item) => (isSaid(item) ? '' : whyOthers))
  }
}

/** The entries in their order, each after those that it refers to. */
export function inOrder(drafts: readonly Draft[]): Draft[] {
  const byId = new Map(drafts.map((draft) => [draft.id, draft]))
  return dependenciesFirst(drafts, ({ own }) =>
    lookupsIn([own?.fields, own?.attrs]).flatMap((tag) => (tag instanceof KeyOf && byId.get(tag.id)) || []),
  )
}
