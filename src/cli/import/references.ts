import { Find, KeyOf } from '../../document/document.ts'
import { Expression, isTag, replaceLookups } from '../../document/tags.ts'
import type { Field, KeyType, Model } from '../../models/define.ts'
import { uuid } from '../../models/fields.ts'
import type { Registry } from '../../models/registry.ts'
import {
  byManaged,
  byScope,
  byTitle,
  isAnyProvider,
  isSelfSigned,
  kindOf,
  mappingModel,
  ownFlow,
  ownKeyPair,
  ownModel,
  type Shipped,
} from './names.ts'

/** Turns what a document looks up into what it is here. */

export type Known = {
  readonly registry: Registry
  /** The slugs of flows that the document has itself. */
  readonly flows: ReadonlySet<string>
  /** Names of the document's own mappings by their OAuth2 scope. */
  readonly scopes: ReadonlyMap<string, string>
  /** `managed` of the document's own mappings that are not shipped here. */
  readonly managed: ReadonlySet<string>
  /** The ids of entries by the table and key of their rows there: a key is a label of its document. */
  readonly keys: ReadonlyMap<string, string>
}

/** In the place of the model. */
const lost = 'shipped there'
const unlabelled = 'no entry'

/** @returns why there is no such row here */
export function whyLost({ model, identifiers }: Find): string | undefined {
  if (model === unlabelled) return 'refers by a key to a row that no entry of this document is'
  const [name] = Object.values(identifiers)
  return model === lost ? `refers to ${JSON.stringify(name)}, which is shipped there and not here` : undefined
}

export const labelOf = (table: string, pk: unknown): string => `${table} ${String(pk).toLowerCase()}`

const isKey = (value: unknown, key: KeyType): boolean =>
  key === 'integer' ? /^\d+$/.test(String(value)) : isUuid(value)

export const isUuid = (value: unknown): boolean => uuid().safeParse(value).success

const rowOf = (table: string, pk: unknown, { keys }: Known): KeyOf | Find => {
  const id = keys.get(labelOf(table, pk))
  return id === undefined ? new Find(unlabelled, {}) : new KeyOf(id)
}

/** What a field refers to, with `!KeyOf` in the place of keys. */
export function withoutKeys(value: unknown, field: Field | undefined, known: Known): unknown {
  const target = known.registry.targets.get(field?.reference?.target ?? '')
  if (target === undefined) return value
  const each = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(each)
    if (inner instanceof Expression)
      return typeof inner.content === 'string' ? inner : inner.with(inner.content.map(each))
    return isKey(inner, target.key) ? rowOf(target.table, inner, known) : inner
  }
  return each(value)
}

/** The value with our names, wherever `!Find` has theirs. */
export const withOurNames = (value: unknown, known: Known): unknown =>
  replaceLookups(value, (tag) => (tag instanceof Find ? foundHere(tag, known) : tag))

/** The same of fields that find a row. */
export const fieldsWithoutKeys = (sent: unknown, { fields }: Model, known: Known): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(Object(sent)).map(([name, each]) => [name, withoutKeys(each, fields.get(name), known)]),
  )

/** A provider of any kind is named by its name alone, as a reference may be. */
function foundHere({ model: theirs, identifiers }: Find, known: Known): unknown {
  const { name, pk } = identifiers
  const isProvider = isAnyProvider(theirs)
  const own = ownModel(theirs, known.registry)
  const table = isProvider ? known.registry.targets.get('provider')?.table : own?.model.table
  if (table !== undefined && pk !== undefined) return rowOf(table, pk, known)
  if (isProvider && typeof name === 'string') return name
  if (own === undefined) return new Find(theirs, identifiers)
  const { model, kind } = own
  if (model.name === mappingModel) return mappingHere(identifiers, kind, known)
  const found = (fields: Readonly<Record<string, unknown>>) =>
    new Find(model.name, fieldsWithoutKeys(fields, model, known))
  if (model.target === 'flow' && typeof identifiers.slug === 'string' && !known.flows.has(identifiers.slug))
    return found({ ...identifiers, slug: ownFlow(identifiers.slug) ?? identifiers.slug })
  if (model.target === 'certificatekeypair' && typeof name === 'string' && isSelfSigned(name))
    return found({ ...identifiers, name: ownKeyPair })
  return found(identifiers)
}

function mappingHere(identifiers: Readonly<Record<string, unknown>>, kind: string | undefined, known: Known): Find {
  const { managed, name, scope_name: scope, ...others } = identifiers
  const [only] = Object.values(identifiers)
  const isPlain = Object.keys(identifiers).length === 1 && typeof only === 'string' && !isTag(only)
  const own: Shipped = !isPlain
    ? undefined
    : typeof managed === 'string'
      ? known.managed.has(managed)
        ? undefined
        : byManaged(managed, known.registry)
      : typeof name === 'string'
        ? byTitle(name, known.registry)
        : typeof scope === 'string' && !known.scopes.has(scope)
          ? byScope(scope, known.registry)
          : undefined
  if (own === null) return new Find(lost, identifiers)
  if (own !== undefined) return new Find(mappingModel, { managed: own })
  const called = typeof scope === 'string' ? (name ?? known.scopes.get(scope)) : name
  const by = called !== undefined ? { name: called } : scope !== undefined ? { scope_name: scope } : {}
  return new Find(mappingModel, {
    ...others,
    ...(managed !== undefined && { managed }),
    ...by,
    ...(kind !== undefined && Object.keys(by).length > 0 && { kind }),
  })
}

/** Mappings of two kinds may have one name: by the name alone, one of a kind that fits is found. */
export function byNameAlone(item: unknown, { reference }: Field): unknown {
  if (reference?.only?.column !== 'kind' || !(item instanceof Find)) return item
  const { name, ...others } = item.identifiers
  return typeof name === 'string' && !isUuid(name) && Object.keys(others).length === 0 ? name : item
}

/** A provider takes mappings of its own kind. @returns the kind of another */
export function otherKind(item: unknown, { reference }: Field): string | undefined {
  const only = reference?.only
  if (!(item instanceof Find) || only?.column !== 'kind') return undefined
  const { managed, kind } = item.identifiers
  const found = typeof kind === 'string' ? kind : typeof managed === 'string' ? kindOf(managed) : undefined
  return found === undefined || only.values.includes(found) ? undefined : found
}
