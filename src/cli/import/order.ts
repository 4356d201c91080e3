import { Find, KeyOf } from '../../document/document.ts'
import type { Registry } from '../../models/registry.ts'
import { findsIn, lookupsIn } from '../../plan/lookups.ts'
import { attrsOf, type Draft, dropItems, fieldsIn } from './draft.ts'

/** Entries of an export stand in the order of their tables, and refer to each other in both directions. */

const isKeyOf = (item: unknown, id: string): boolean => item instanceof KeyOf && item.id === id

/** A membership is said by the group and by its user: that of the group stays, which has all of its users. */
export function sayMembershipsOnce(drafts: readonly Draft[], registry: Registry): void {
  const byId = new Map(drafts.map((draft) => [draft.id, draft]))
  for (const draft of drafts)
    for (const field of fieldsIn(draft, registry)?.values() ?? []) {
      const { storage } = field
      if (storage.in !== 'link' || storage.many) continue
      const isSaidThere = (item: unknown) => {
        const other = item instanceof KeyOf ? byId.get(item.id) : undefined
        if (other === undefined) return false
        return [...(fieldsIn(other, registry)?.values() ?? [])].some(({ name, storage: there }) => {
          const list = attrsOf(other)[name]
          if (there.in !== 'link' || there.table !== storage.table || there.own !== storage.other) return false
          return Array.isArray(list) && list.some((each) => isKeyOf(each, draft.id))
        })
      }
      const list = attrsOf(draft)[field.name]
      if (!Array.isArray(list) || !list.some(isSaidThere)) continue
      const why = 'other entries say of the same list who belongs to them, and it cannot be said on both sides'
      dropItems(draft, field.name, field, (item) => (isSaidThere(item) ? '' : why))
    }
}

/** Each entry after those that it refers to, by `!KeyOf` or by what finds them; else as they stand. */
export function inOrder(drafts: readonly Draft[]): Draft[] {
  const byId = new Map(drafts.map((draft) => [draft.id, draft]))
  const byName = new Map(
    drafts.flatMap((draft) => {
      const { model, identifiers } = draft.fields ?? {}
      const [name = ''] = findsIn(new Find(String(model), Object(identifiers)))
      return [[name, draft] as const]
    }),
  )
  const done = new Set<Draft>()
  const open = new Set<Draft>()
  const visit = (draft: Draft) => {
    if (done.has(draft) || open.has(draft)) return
    open.add(draft)
    for (const tag of lookupsIn(draft.fields)) {
      const other = tag instanceof KeyOf ? byId.get(tag.id) : byName.get(findsIn(tag)[0] ?? '')
      if (other !== undefined) visit(other)
    }
    done.add(draft)
  }
  for (const draft of drafts) visit(draft)
  return [...done]
}
