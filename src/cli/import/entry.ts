import { KeyOf } from '../../document/document.ts'
import { evaluateNow } from '../../document/evaluate.ts'
import { measure } from '../../document/measure.ts'
import { type Caller, scopeOf, TagErrors } from '../../document/scope.ts'
import { Expression, holdsTag, isTag, type Place, TagError } from '../../document/tags.ts'
import { placeAt, readDocument } from '../../document/yaml.ts'
import { Problem } from '../../errors.ts'
import { isObject } from '../../json-object.ts'
import { unknownName } from '../../messages.ts'
import type { Field, Model } from '../../models/define.ts'
import type { Registry } from '../../models/registry.ts'
import { findsIn, lookupsIn } from '../../plan/lookups.ts'
import { adapted, forLogins, notForLogins } from './adapt.ts'
import { type Draft, withoutItems } from './draft.ts'
import { ownModel } from './names.ts'
import { isUuid, type Known, otherKind, whyLost, withoutKeys } from './references.ts'

/** One entry there, as an entry here. */

export type Read = {
  readonly draft: Draft
  readonly value: unknown
  /** Why a tag has no value, by its place in the text. */
  readonly failed: ReadonlyMap<number, string>
}

export const describe = (message: string, place: Place | undefined): string =>
  place === undefined ? message : `line ${place.line}, column ${place.column}: ${message}`

type Around = {
  readonly text: string
  readonly context: Readonly<Record<string, unknown>>
  readonly caller: Caller
  readonly newId: (resource: string) => string
}

/** Evaluates one entry alone: what has no value in it does not concern the others. */
export function readOne(sent: unknown, entry: number, { text, context, caller, newId }: Around): Read {
  const reasons: string[] = []
  const errors = new TagErrors()
  let value: unknown = sent
  try {
    value = evaluateNow(sent, scopeOf(sent, context, { ...caller, errors }))
    measure(value)
  } catch (error) {
    if (!(error instanceof TagError)) throw error
    reasons.push(describe(error.message, error.place))
  }
  const failed = new Map(
    errors.list.map(({ offset = 0, message }) => [offset, describe(message, placeAt(text, offset))]),
  )
  const { model, id, identifiers, attrs } = plain(value)
  const called = { ...plain(identifiers), ...plain(attrs) }
  const [name = ''] = [...Object.values(plain(identifiers)), called.name, called.slug, called.username].filter(
    (each): each is string => typeof each === 'string' && !isUuid(each),
  )
  const theirs = typeof model === 'string' ? model : ''
  const own = typeof id === 'number' ? String(id) : id
  const draft: Draft = {
    ...{ entry, model: theirs, name, leftOut: [], ignored: [], reasons, places: new Map() },
    id: typeof own === 'string' && own !== '' ? own : newId(theirs.slice(theirs.indexOf('.') + 1)),
  }
  return { draft, value: isObject(value) && !isTag(value) ? { ...value, id: own ?? null } : value, failed }
}

const plain = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) && !isTag(value) ? value : {})

/** What the judge of an entry takes for tags that only the caller can answer. */
export const judged = (fields: Readonly<Record<string, unknown>>, id: string) => ({
  ...fields,
  id,
  ...(isTag(fields.state) && { state: 'present' }),
})

export function readEntry({ draft, value, failed }: Read, known: Known): void {
  const { registry } = known
  const { reasons, leftOut } = draft
  if (reasons.length > 0) return
  const own = ownModel(draft.model, registry)
  if (!isObject(value) || isTag(value)) return void reasons.push('is no entry')
  if (own === undefined) return void reasons.push(`unknown model ${draft.model}`)
  const { model } = own
  const { entry, leftOut: lost } = adapted(value, own, known)
  leftOut.push(...lost)
  try {
    readDocument({ version: 1, entries: [judged(entry, draft.id)] })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const texts = (error.errors ?? []).map(({ path, message }) => [path.slice(2).join('.'), message])
    return void reasons.push(...texts.map((parts) => parts.filter((part) => part !== '').join(': ')))
  }
  const { identifiers: found, attrs, conditions, ...rest } = entry
  const identifiers = Object.fromEntries(
    Object.entries(Object(found)).map(([name, each]) => [name, withoutKeys(each, model.fields.get(name), known)]),
  )
  const [natural = []] = model.identifiers
  if (Object.hasOwn(plain(value.identifiers), 'pk') && !hasNames(model, identifiers))
    reasons.push(`has no ${natural.join(' and ')}: a key of another installation names nothing here`)
  for (const why of unfound([identifiers, conditions, rest], registry, failed)) reasons.push(why)
  for (const name of Object.keys(identifiers))
    if (!model.fields.has(name)) reasons.push(`unknown field ${name} among the identifiers`)
  const kept: [string, unknown][] = []
  for (const [name, sent] of Object.entries(Object(attrs))) {
    const field = model.fields.get(name)
    if (field === undefined) {
      if (model.readOnly.includes(name) || (model.alwaysNull?.includes(name) && sent === null)) continue
      leftOut.push(`${name}: ${unknownName('field', name, model.fields.keys())}`)
      continue
    }
    const fitting = fittingValue(withoutKeys(sent, field, known), field, { draft, registry, failed })
    if (fitting !== undefined) kept.push([name, fitting])
    else if (field.required) reasons.push(`${name} is required, and cannot be left out`)
  }
  draft.fields = {
    ...rest,
    ...(conditions === undefined ? {} : { conditions }),
    identifiers,
    attrs: Object.fromEntries(kept),
  }
}

const hasNames = ({ identifiers }: Model, sent: object): boolean =>
  identifiers.some((set) => set.every((name) => Object.hasOwn(sent, name)))

/** What is wrong with the tags of a value: one has no value, or what it looks up is not known here. */
function unfound(value: unknown, registry: Registry, failed: Read['failed']): string[] {
  const errors = failedIn(value, failed)
  return errors.length > 0 ? errors : lookupsIn(value).flatMap((tag) => unknownFind(tag, registry))
}

const failedIn = (value: unknown, failed: Read['failed']): string[] =>
  expressionsIn(value).flatMap(({ offset = -1 }) => failed.get(offset) ?? [])

function expressionsIn(value: unknown): Expression[] {
  if (value instanceof Expression) return [value, ...expressionsIn(value.content)]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(expressionsIn) : []
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

type Fitting = { readonly draft: Draft; readonly registry: Registry; readonly failed: Read['failed'] }

/** The value without what is not known here. @returns undefined when nothing of it is left */
function fittingValue(sent: unknown, field: Field, { draft, registry, failed }: Fitting): unknown {
  const { name } = field
  if (!Array.isArray(sent)) {
    const [why] = unfound(sent, registry, failed)
    // What it would have been is not known: left out, a right or a restriction may be.
    draft.reasons.push(...failedIn(sent, failed))
    if (why === undefined) return withoutUnknown(sent, field, draft)
    draft.leftOut.push(`${name}: ${why}`)
    return undefined
  }
  const seen = new Set<string>()
  const kept = withoutItems(draft, name, sent, (item) => {
    const [why] = unfound(item, registry, failed)
    const other = otherKind(item, field)
    if (why !== undefined) return why
    if (other !== undefined) return `refers to a property mapping of the kind ${other}`
    if (field.reference === undefined && isUuid(item)) return 'is the key of a row that is not here'
    // Two names of theirs may be one of ours.
    const [find = ''] = findsIn(item)
    const isTwice = seen.has(find)
    if (find !== '') seen.add(find)
    return isTwice ? '' : notForLogins(item)
  })
  const places = draft.places.get(name) ?? []
  const items = kept?.map((item, index) => {
    const { redirect_uri_type: type, ...rest } = plain(item)
    if (type !== forLogins) return item
    draft.ignored.push(`${name}.${places[index]}.redirect_uri_type: all of them are for logins`)
    return rest
  })
  return items && withoutUnknown(items, field, draft)
}

/** Without fields inside of it that are not known here. */
function withoutUnknown(sent: unknown, { name, schema }: Field, { leftOut, places }: Draft): unknown {
  if (holdsTag(sent)) return sent
  const unknown = (schema.safeParse(sent).error?.issues ?? []).flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key].map(pathPart)) : [],
  )
  const value = structuredClone(sent)
  for (const path of unknown) {
    const holder = path.slice(0, -1).reduce<unknown>((inner, part) => Reflect.get(Object(inner), part), value)
    Reflect.deleteProperty(Object(holder), path.at(-1) ?? '')
    const [index = '', ...inside] = path
    const at = Array.isArray(sent) ? (places.get(name)?.[Number(index)] ?? index) : index
    leftOut.push(`${[name, at, ...inside].join('.')}: Unknown field.`)
  }
  return value
}

const pathPart = (part: PropertyKey): string | number => (typeof part === 'symbol' ? String(part) : part)
