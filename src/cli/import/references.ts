import { Find, KeyOf } from '../../document/document.ts'
import { Expression, isTag, replaceLookups } from '../../document/tags.ts'
import { isObject, type JsonObject } from '../../json-object.ts'
import type { Field, KeyType, Model } from '../../models/define.ts'
import { uuid } from '../../models/fields.ts'
import type { Registry } from '../../models/registry.ts'
import type { Draft } from './draft.ts'
import { byManaged, byScope, byTitle, kindOf, mappingModel, ownModel, ownName, tableOf } from './names.ts'

/** Replaces the look-ups of a document by those of this service. */

export type Known = {
  readonly registry: Registry
  /** The document's own entries by their ids, and by the fields of their rows there: a key is a label of its document. */
  readonly entries: ReadonlyMap<string, readonly Draft[]>
  /** The reason why a tag has no value, by its offset in the text. */
  readonly failed: ReadonlyMap<number, string>
  /** The id of the entry that is read: it does not refer to itself. */
  readonly self?: string
  /** Whether only the existence of the row counts, like in conditions: an entry does not replace it. */
  readonly asks?: true
}

/** Texts in place of the model. */
const lost = 'shipped there'
const unlabelled = 'no entry'

/** @returns the reason why there is no such row here */
export function whyLost({ model, identifiers }: Find): string | undefined {
  if (model === unlabelled) return 'refers by a key to a row that no entry of this document is'
  const [name] = Object.values(identifiers)
  return model === lost ? `refers to ${JSON.stringify(name)}, which is shipped there and not here` : undefined
}

export const labelOf = (table: string, name: string, value: unknown): string =>
  [table, name, name === 'pk' ? String(value).toLowerCase() : JSON.stringify(value)].join(' ')

const isKey = (value: unknown, key: KeyType): boolean =>
  isUuid(value) || typeof value === 'number' || (key === 'integer' && /^\d+$/.test(String(value)))

export const isUuid = (value: unknown): boolean => uuid().safeParse(value).success

const rowOf = (table: string, pk: unknown, known: Known): KeyOf | Find => {
  const entry = entryFor(table, undefined, { pk }, known)
  return entry === undefined ? new Find(unlabelled, {}) : new KeyOf(entry.id)
}

/** The entry of the document for the row that `!Find` finds. */
function entryFor(table: string, kind: string | undefined, identifiers: JsonObject, known: Known): Draft | undefined {
  const [[name, value] = ['', undefined]] = Object.entries(identifiers)
  const isFound = ({ fields }: Draft) =>
    Object.entries(identifiers).every(([each, wanted]) => labelOf('', each, fields[each]) === labelOf('', each, wanted))
  const found = (known.entries.get(labelOf(table, name, value)) ?? []).filter(
    (entry) => entry.id !== known.self && (kind === undefined || entry.ours?.kind === kind) && isFound(entry),
  )
  // Mappings of two kinds may have one name.
  return found.every((entry) => entry.ours?.kind === found[0]?.ours?.kind) ? found[0] : undefined
}

/** The value of a field, with `!KeyOf` in place of keys. */
export function withoutKeys(value: unknown, field: Field | undefined, known: Known): unknown {
  const target = known.registry.targets.get(field?.reference?.target ?? '')
  if (target === undefined) return value
  const each = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(each)
    if (inner instanceof Expression)
      return typeof inner.content === 'string' ? inner : inner.with(inner.content.map(each))
    if (isObject(inner) && !isTag(inner))
      return Object.fromEntries(Object.entries(inner).map(([name, value]) => [name, each(value)]))
    return isKey(inner, target.key) ? rowOf(target.table, inner, known) : inner
  }
  return each(value)
}

/** The value with the names of this service in each `!Find`. */
export const withOurNames = (value: unknown, known: Known): unknown =>
  replaceLookups(value, (tag) => (tag instanceof Find ? foundHere(tag, known) : tag))

/** The same for fields that find a row. */
export const fieldsWithoutKeys = (sent: unknown, { fields }: Model, known: Known): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(Object(sent)).map(([name, each]) => [name, withoutKeys(each, fields.get(name), known)]),
  )

/** A provider of any kind may be named by its name alone, like in a reference. */
function foundHere({ model: theirs, identifiers }: Find, known: Known): unknown {
  const { name, pk } = identifiers
  const own = ownModel(theirs, known.registry)
  const table = tableOf(theirs, known.registry)
  if (table !== undefined && pk !== undefined) return rowOf(table, pk, known)
  const entry = table === undefined ? undefined : entryFor(table, own?.kind, identifiers, known)
  if (entry !== undefined && !known.asks) return new KeyOf(entry.id)
  if (/_core\.provider$/i.test(theirs) && typeof name === 'string') return name
  if (own === undefined) return new Find(theirs, identifiers)
  const { model, kind } = own
  if (model.name === mappingModel) return mappingHere(identifiers, kind, entry !== undefined, known)
  const [field = ''] = model.names
  const ours = entry === undefined ? ownName(theirs, model, identifiers[field]) : undefined
  if (ours === null) return new Find(lost, identifiers)
  const found = { ...identifiers, ...(ours !== undefined && { [field]: ours }) }
  return new Find(model.name, fieldsWithoutKeys(found, model, known))
}

/** The single fields that find a shipped mapping. */
const shippedBy = { managed: byManaged, name: byTitle, scope_name: byScope } as const

/** @param isOwn whether the document has it itself */
function mappingHere(identifiers: JsonObject, kind: string | undefined, isOwn: boolean, { registry }: Known): Find {
  const [[field, value] = [], ...others] = Object.entries(identifiers)
  const by = field === 'managed' || field === 'name' || field === 'scope_name' ? shippedBy[field] : undefined
  const own = isOwn || others.length > 0 || typeof value !== 'string' ? undefined : by?.(value, registry)
  if (own === null) return new Find(lost, identifiers)
  if (own !== undefined) return new Find(mappingModel, { managed: own })
  return new Find(mappingModel, { ...identifiers, ...(kind !== undefined && { kind }) })
}

/** Finds a mapping of a kind that fits: mappings of two kinds may have one name. */
export function byNameAlone(item: unknown, { reference }: Field): unknown {
  if (reference?.only?.column !== 'kind' || !(item instanceof Find)) return item
  const { name, ...others } = item.identifiers
  return typeof name === 'string' && !isUuid(name) && Object.keys(others).length === 0 ? name : item
}

/** A provider takes mappings of its own kind. @returns the kind of another */
export function otherKind(item: unknown, { reference }: Field, { entries }: Known): string | undefined {
  const only = reference?.only
  if (only?.column !== 'kind') return undefined
  const { managed, kind } = item instanceof Find ? item.identifiers : {}
  const ofFound = typeof kind === 'string' ? kind : typeof managed === 'string' ? kindOf(managed) : undefined
  const found = item instanceof KeyOf ? entries.get(item.id)?.[0]?.ours?.kind : ofFound
  return found === undefined || only.values.includes(found) ? undefined : found
}
