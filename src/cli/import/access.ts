import { Find, KeyOf } from '../../document/document.ts'
import type { Draft } from './draft.ts'

/** Bindings decide there who may use an application. They have no counterpart here. */

/** @returns a sentence for each application to which a binding of the document restricted the access */
export function lostAccess(drafts: readonly Entry[]): string[] {
  // Bindings name users by numbers, and all others by UUIDs.
  const keyOf = ({ model, fields: { pk } }: Entry) =>
    typeof pk === 'string' || isCalled(model, 'core.user') ? (pk ?? null) : null
  const byId = new Map<unknown, Entry>(drafts.flatMap((entry) => [[entry.id, entry] as const, [keyOf(entry), entry]]))
  byId.delete(null)
  const lost = drafts.flatMap(({ model, state, fields }) => {
    if (!isCalled(model, 'policies.policybinding') || state === 'absent' || fields.enabled === false) return []
    const application = applicationOf(fields.target, byId)
    return application === undefined ? [] : [{ application, who: whoOf(fields, byId) }]
  })
  return [...Map.groupBy(lost, ({ application }) => application)].map(([application, some]) => {
    const who = [...new Set(some.map((each) => each.who))].join(', ')
    return `Access to ${application} is not restricted any more: it was bound to ${who}, and there are no bindings here.`
  })
}

type Entry = Pick<Draft, 'model' | 'id' | 'state' | 'fields'>

const isCalled = (model: string, name: string): boolean => /^[^_.]+_(.+)$/.exec(model.toLowerCase())?.[1] === name

type ById = ReadonlyMap<unknown, Entry>

/** @returns undefined for other targets: a flow, or the binding of a stage */
function applicationOf(target: unknown, byId: ById): string | undefined {
  const entry = byId.get(target instanceof KeyOf ? target.id : target)
  const model = entry?.model ?? (target instanceof Find ? target.model : undefined)
  if (model === undefined) return 'an application or flow'
  return isCalled(model, 'core.application') ? `the application ${nameOf(target, byId)}` : undefined
}

function whoOf(fields: Entry['fields'], byId: ById): string {
  const [kind] = ['group', 'user', 'policy'].filter((each) => (fields[each] ?? null) !== null)
  if (kind === undefined) return 'what it does not name'
  return `${fields.negate === true ? 'all but ' : ''}the ${kind} ${nameOf(fields[kind], byId)}`
}

/** The name in a tag, or that of the entry that it refers to. */
function nameOf(tag: unknown, byId: ById): string {
  const fields = tag instanceof Find ? tag.identifiers : (byId.get(tag instanceof KeyOf ? tag.id : tag)?.fields ?? {})
  const { slug, name, username } = fields
  const called = [slug, name, username].find((each) => typeof each === 'string')
  return called === undefined && !(tag instanceof KeyOf)
    ? 'of another document'
    : JSON.stringify(called ?? Object(tag).id)
}
