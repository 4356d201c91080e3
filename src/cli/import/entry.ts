import { KeyOf } from '../../document/document.ts'
import { Expression, isTag } from '../../document/tags.ts'
import { readForm } from '../../document/yaml.ts'
import { ErrorList } from '../../errors.ts'
import { isObject } from '../../json-object.ts'
import { unknownName } from '../../messages.ts'
import type { Field } from '../../models/define.ts'
import type { Registry } from '../../models/registry.ts'
import { isEdit } from '../../plan/list-edit.ts'
import { lookupsIn } from '../../plan/lookups.ts'
import { adapted, forLogins, notForLogins } from './adapt.ts'
import { type Draft, dropItems, fieldsOf, leaveOut, type Own, sentence } from './draft.ts'
import { ownModel } from './names.ts'
import { byNameAlone, fieldsWithoutKeys, isUuid, type Known, otherKind, whyLost, withoutKeys } from './references.ts'

/** Converts one entry of the other service. */

export function draftOf(sent: unknown, entry: number, registry: Registry): Draft {
  const { model, id, state, identifiers, attrs } = fieldsOf(sent)
  const fields = { ...fieldsOf(attrs), ...fieldsOf(identifiers) }
  const [name = ''] = [...Object.values(fieldsOf(identifiers)), fields.name, fields.slug, fields.username].filter(
    (each): each is string => typeof each === 'string' && !isUuid(each),
  )
  const theirs = typeof model === 'string' ? model : ''
  const own = typeof id === 'number' ? String(id) : id
  return {
    entry,
    model: theirs,
    ours: ownModel(theirs, registry),
    name,
    state,
    fields,
    leftOut: [],
    ignored: [],
    reasons: [],
    id: typeof own === 'string' && own !== '' ? own : `${theirs.slice(theirs.indexOf('.') + 1)} of entry ${entry}`,
    sent: isObject(sent) && !isTag(sent) ? { ...sent, id: own ?? null } : sent,
  }
}

/** The entry for the checks, with values in place of tags that only the caller can answer. */
export const judged = (fields: Readonly<Record<string, unknown>>, id: string) => ({
  ...fields,
  id,
  ...(isTag(fields.state) && { state: 'present' }),
})

export function readEntry(draft: Draft, others: Known): void {
  const { sent, ours: own, reasons, leftOut } = draft
  const known = { ...others, self: draft.id }
  if (!isObject(sent) || isTag(sent)) return void reasons.push(...failedIn(sent, known), 'is no entry')
  if (own === undefined) return void reasons.push(`unknown model ${draft.model}`)
  const { model } = own
  const entry = adapted(sent, own, known, leftOut)
  const errors = new ErrorList()
  readForm({ version: 1, entries: [judged(entry, draft.id)] }, errors)
  for (const { path, message } of errors.list) reasons.push(sentence(path.slice(2), message))
  if (errors.any) return
  const { identifiers: found, attrs, conditions, model: _, ...rest } = entry
  const identifiers = fieldsWithoutKeys(found, model, known)
  const [natural = []] = model.identifiers
  const isNamed = model.identifiers.some((set) => set.every((name) => Object.hasOwn(identifiers, name)))
  if (Object.hasOwn(fieldsOf(sent.identifiers), 'pk') && !isNamed)
    reasons.push(`has no ${natural.join(' and ')}: a key of another installation names nothing here`)
  for (const why of unfound([identifiers, conditions, rest], known)) reasons.push(why)
  for (const name of Object.keys(identifiers))
    if (!model.fields.has(name)) reasons.push(`unknown field ${name} among the identifiers`)
  const fields = { ...rest, ...(conditions === undefined ? {} : { conditions }), identifiers }
  draft.own = { model, fields, attrs: { ...Object(attrs) } }
  for (const name of Object.keys(Object(attrs))) readField(draft, draft.own, name, known)
}

/** Leaves out the parts of a field that are not known here. */
function readField(draft: Draft, own: Own, name: string, known: Known, field = own.model.fields.get(name)): void {
  const { model, attrs } = own
  if (field === undefined) {
    const saysNothing = model.readOnly.includes(name) || (model.alwaysNull?.includes(name) && attrs[name] === null)
    leaveOut(draft, name, saysNothing ? undefined : unknownName('field', name, model.fields.keys()))
    return
  }
  const sent = withoutKeys(attrs[name], field, known)
  attrs[name] = byNameAlone(sent, field)
  if (name === field.name && isEdit(field, sent) && Object.keys(sent).length > 0) {
    Reflect.deleteProperty(attrs, name)
    for (const [word, list] of Object.entries(sent)) {
      attrs[`${name}.${word}`] = list
      readField(draft, own, `${name}.${word}`, known, field)
    }
    return
  }
  if (!Array.isArray(sent)) {
    // The value is not known: leaving it out may remove a right or a restriction.
    draft.reasons.push(...failedIn(sent, known))
    const [why] = field.reference === undefined && listsKey(sent) ? [foreign] : unfound(sent, known)
    if (why !== undefined) leaveOut(draft, name, why)
    return
  }
  const seen = new Set<string>()
  dropItems(draft, name, (item) => {
    const why = whyUnfit(item, field, known)
    if (why !== undefined || !isTag(item)) return why
    // Two names there may be one here.
    const tag = JSON.stringify(item)
    if (seen.has(tag)) return ''
    seen.add(tag)
    return undefined
  })
  const list = attrs[name]
  if (!Array.isArray(list)) return
  attrs[name] = list.map((item, index) => {
    const { redirect_uri_type: type, ...others } = fieldsOf(item)
    if (type !== forLogins) return byNameAlone(item, field)
    draft.ignored.push(`${name}.${index}.redirect_uri_type: all of them are for logins`)
    return others
  })
}

const foreign = 'is the key of a row that is not here'

/** Whether there is a key in a list, which tags may hold: a text alone may be anything. */
const listsKey = (value: unknown, isItem = false): boolean =>
  (isItem && isUuid(value)) ||
  (Array.isArray(value)
    ? value.some((each) => listsKey(each, true))
    : value instanceof Expression && [value.content].flat().some((each) => listsKey(each, isItem)))

function whyUnfit(item: unknown, field: Field, known: Known): string | undefined {
  const [why] = unfound(item, known)
  if (why !== undefined) return why
  const other = otherKind(item, field, known)
  if (other !== undefined) return `refers to a property mapping of the kind ${other}`
  return field.reference === undefined && listsKey(item, true) ? foreign : notForLogins(item)
}

/** The errors of the tags of a value: one has no value, or looks up a row that is not known here. */
function unfound(value: unknown, known: Known): string[] {
  const errors = failedIn(value, known)
  return errors.length > 0 ? errors : lookupsIn(value).flatMap((tag) => unknownFind(tag, known.registry))
}

function failedIn(value: unknown, known: Known): string[] {
  const inside = (inner: unknown) =>
    typeof inner === 'object' && inner !== null ? Object.values(inner).flatMap((each) => failedIn(each, known)) : []
  if (!(value instanceof Expression)) return inside(value)
  return [...[known.failed.get(value.offset ?? -1) ?? []].flat(), ...inside(value.content)]
}

function unknownFind(tag: ReturnType<typeof lookupsIn>[number], registry: Registry): readonly string[] {
  if (tag instanceof KeyOf) return []
  const lost = whyLost(tag)
  if (lost !== undefined) return [lost]
  const model = registry.byName(tag.model)
  if (model === undefined) return [`refers to the unknown model ${tag.model}`]
  const unknown = Object.keys(tag.identifiers).filter((name) => model.fields.get(name)?.storage.in !== 'column')
  return unknown.map((name) => `refers to a ${model.displayName} by the unknown field ${name}`)
}
