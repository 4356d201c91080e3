import { type Blueprint, KeyOf } from '../document/document.ts'
import { evaluateNow } from '../document/evaluate.ts'
import { measure } from '../document/measure.ts'
import { scopeOf } from '../document/scope.ts'
import { holdsTag, isTag, TagError } from '../document/tags.ts'
import { inOneList, withoutContext } from '../document/written.ts'
import { placed, printValue, readDocument, readText, readWritten } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { unknownName } from '../messages.ts'
import type { Field } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { compile } from '../plan/compile.ts'
import { findsIn, lookupsIn } from '../plan/lookups.ts'
import { UsageError } from './exit.ts'
import { lostAccess } from './import/access.ts'
import { adapted, knownIn } from './import/adapt.ts'
import { familyContext } from './import/context.ts'
import { ownModel } from './import/names.ts'
import { isShippedThere, type Known, otherKind } from './import/references.ts'
import { problemLines } from './inputs.ts'
import { shown } from './output.ts'

/** Which entries of a document of this API family can be applied here, and the document of those. */

type Draft = {
  /** The index in the document. */
  readonly entry: number
  readonly model: string
  /** The first identifier. */
  readonly name: string
  readonly id: unknown
  /** What the entry is applied without, each with the reason. */
  readonly leftOut: string[]
  /** Why it cannot be applied. */
  readonly reasons: string[]
  /** With our names of models; undefined when it cannot be read as an entry. */
  fields?: Readonly<Record<string, unknown>>
}

export type Judgement = Omit<Draft, 'id' | 'fields'> & { readonly outcome: 'applies' | 'partly' | 'cannot' }

export type Imported = {
  readonly judgements: readonly Judgement[]
  /** What is less safe than it was there. */
  readonly warnings: readonly string[]
  /** The entries that can be applied, as YAML with the warnings above them; null when there are none. */
  readonly document: string | null
}

/**
 * @param context of `--context`
 * @throws {UsageError} for a text that is no document of entries
 */
export function importText(text: string, context: ReadonlyMap<string, string>, registry: Registry): Imported {
  try {
    return placed(text, () => importDocument(text, context, registry))
  } catch (error) {
    if (error instanceof Problem) throw new UsageError(problemLines('', error).join('\n'))
    if (error instanceof TagError) throw new UsageError(describe(error))
    throw error
  }
}

function importDocument(text: string, context: ReadonlyMap<string, string>, registry: Registry): Imported {
  const written = readWritten(text)
  measure(written)
  const { context: theirs, document } = withoutContext(written)
  const own = { ...familyContext(text, registry), ...theirs }
  if (!isObject(document) || isTag(document) || document.version !== 1) throw new UsageError(noBlueprint)
  const caller = { read: 'keep', context } as const
  const evaluated = (value: unknown) => evaluateNow(value, scopeOf(value, own, caller))
  const listed = isTag(document.entries) ? evaluated(document.entries) : document.entries
  const entries = isObject(listed) && !isTag(listed) ? inOneList(listed) : listed
  if (!Array.isArray(entries) || entries.length === 0) throw new UsageError(noBlueprint)
  const read = entries.map((entry, index) => draftOf(entry, index, evaluated, text))
  const values = read.map(({ value }) => value)
  const known = knownIn(values, registry)
  for (const { draft, value } of read) readEntry(draft, value, known)
  const drafts = read.map(({ draft }) => draft)
  refuseUnfit(drafts, registry)
  const kept = drafts.flatMap(({ fields, reasons }) => (fields === undefined || reasons.length > 0 ? [] : [fields]))
  const header = ['metadata', 'owner', 'prune'].flatMap((name) =>
    document[name] === undefined || document[name] === null ? [] : [[name, evaluated(document[name])]],
  )
  const warnings = lostAccess(values)
  const above = warnings.map((warning) => `# WARNING: ${shown(warning).replace(/\s+/g, ' ')}\n`).join('')
  const judgements = drafts.map(judgementOf)
  if (kept.length === 0) return { judgements, warnings, document: null }
  const ours = checkedText({ version: 1, ...Object.fromEntries(header), entries: kept })
  return { judgements, warnings, document: `${above}${ours}` }
}

const noBlueprint = 'This is no blueprint of version 1 with entries.'

function judgementOf({ id: _, fields: __, ...draft }: Draft): Judgement {
  const { leftOut, reasons } = draft
  if (reasons.length > 0) return { ...draft, outcome: 'cannot', leftOut: [] }
  return { ...draft, outcome: leftOut.length > 0 ? 'partly' : 'applies' }
}

/** The printed document is read again: what this command writes is what `apply` takes. */
function checkedText(document: unknown): string {
  const text = printValue(document)
  readDocument(readText(text, { read: 'keep', context: new Map() }))
  return text
}

const describe = ({ place, message }: TagError): string =>
  place === undefined ? message : `line ${place.line}, column ${place.column}: ${message}`

/** Evaluates one entry alone: what has no value in it does not concern the others. */
function draftOf(entry: unknown, index: number, evaluated: (value: unknown) => unknown, text: string) {
  const reasons: string[] = []
  let value: unknown = entry
  try {
    value = placed(text, () => evaluated(entry))
    measure(value)
  } catch (error) {
    if (!(error instanceof TagError)) throw error
    reasons.push(describe(error))
  }
  const { model, id, identifiers } = isObject(value) && !isTag(value) ? value : {}
  const first = isObject(identifiers) && !isTag(identifiers) ? Object.values(identifiers)[0] : undefined
  const name = first === undefined || holdsTag(first) ? '' : typeof first === 'string' ? first : JSON.stringify(first)
  const draft: Draft = { entry: index, model: typeof model === 'string' ? model : '', name, id, leftOut: [], reasons }
  return { value, draft }
}

function readEntry(draft: Draft, value: unknown, known: Known): void {
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
    readDocument({ version: 1, entries: [entry] })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const texts = (error.errors ?? []).map(({ path, message }) => [path.slice(2).join('.'), message])
    return void reasons.push(...texts.map((parts) => parts.filter((part) => part !== '').join(': ')))
  }
  const { identifiers, attrs, conditions, ...rest } = entry
  for (const find of unknownFinds([identifiers, conditions], registry)) reasons.push(find)
  for (const name of Object.keys(Object(identifiers)))
    if (name !== 'pk' && !model.fields.has(name)) reasons.push(`unknown field ${name} among the identifiers`)
  const kept: [string, unknown][] = []
  for (const [name, sent] of Object.entries(Object(attrs))) {
    const field = model.fields.get(name)
    if (field === undefined) {
      if (model.readOnly.includes(name) || (model.alwaysNull?.includes(name) && sent === null)) continue
      leftOut.push(`${name}: ${unknownName('field', name, model.fields.keys())}`)
      continue
    }
    const fitting = withoutUnknown(sent, field, registry)
    leftOut.push(...fitting.leftOut.map(([path, why]) => `${[name, ...path].join('.')}: ${why}`))
    if (fitting.isKept) kept.push([name, fitting.value])
    else if (field.required) reasons.push(`${name} is required, and cannot be left out`)
  }
  draft.fields = {
    ...rest,
    ...(conditions === undefined ? {} : { conditions }),
    identifiers,
    attrs: Object.fromEntries(kept),
  }
}

/** What is wrong with each `!Find`: its model or its fields are not known here. */
function unknownFinds(value: unknown, registry: Registry): string[] {
  return lookupsIn(value).flatMap((tag) => {
    if (tag instanceof KeyOf) return []
    const [shipped] = Object.values(tag.identifiers)
    if (isShippedThere(tag)) return [`refers to ${JSON.stringify(shipped)}, which is shipped there and not here`]
    const model = registry.byName(tag.model)
    if (model === undefined) return [`refers to the unknown model ${tag.model}`]
    const unknown = Object.keys(tag.identifiers).filter(
      (name) => name !== 'pk' && model.fields.get(name)?.storage.in !== 'column',
    )
    return unknown.map((name) => `refers to a ${model.displayName} by the unknown field ${name}`)
  })
}

type Fitting = {
  readonly isKept: boolean
  readonly value?: unknown
  readonly leftOut: readonly (readonly [path: readonly (string | number)[], why: string])[]
}

/** The value without what is not known here: references to unknown models, and fields inside of it. */
function withoutUnknown(sent: unknown, field: Field, registry: Registry): Fitting {
  if (Array.isArray(sent) && field.reference?.many === true) {
    const wrong = sent.map((item) => unknownFinds(item, registry)[0] ?? misfit(item, field))
    const leftOut = wrong.flatMap((why, index) => (why === undefined ? [] : [[[index], why] as const]))
    const value = withoutTwice(sent.filter((_, index) => wrong[index] === undefined))
    // An empty list would take away what stands.
    return { isKept: value.length > 0 || sent.length === 0, value, leftOut }
  }
  const [why] = unknownFinds(sent, registry)
  if (why !== undefined) return { isKept: false, leftOut: [[[], why]] }
  if (holdsTag(sent)) return { isKept: true, value: sent, leftOut: [] }
  const issues = field.schema.safeParse(sent).error?.issues ?? []
  const unknown = issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path.map(pathPart), key]) : [],
  )
  const value = structuredClone(sent)
  for (const path of unknown) {
    const holder = path.slice(0, -1).reduce<unknown>((inner, part) => Reflect.get(Object(inner), part), value)
    Reflect.deleteProperty(Object(holder), path.at(-1) ?? '')
  }
  return { isKept: true, value, leftOut: unknown.map((path) => [path, 'Unknown field.'] as const) }
}

function misfit(item: unknown, field: Field): string | undefined {
  const kind = otherKind(item, field)
  return kind === undefined ? undefined : `refers to a property mapping of the kind ${kind}`
}

/** Two names of theirs may be one of ours. */
const withoutTwice = (items: readonly unknown[]): unknown[] => {
  const seen = new Set<string>()
  return items.filter((item) => {
    const [find] = findsIn(item)
    if (find === undefined) return true
    const isNew = !seen.has(find)
    seen.add(find)
    return isNew
  })
}

const pathPart = (part: PropertyKey): string | number => (typeof part === 'symbol' ? String(part) : part)

/** Checks what is left, until no entry is refused: each one that is takes those along which refer to it. */
function refuseUnfit(drafts: readonly Draft[], registry: Registry): void {
  for (;;) {
    refuseReferrers(drafts, registry)
    const left = drafts.filter(({ fields, reasons }) => fields !== undefined && reasons.length === 0)
    if (left.length === 0) return
    const blueprint: Blueprint = readDocument({ version: 1, entries: left.map(({ fields }) => fields) })
    const { errors } = compile(blueprint, registry)
    if (!errors.any) return
    for (const { path, message } of errors.list) {
      const [, index, ...inside] = path
      left[Number(index)]?.reasons.push([...(inside.length > 0 ? [inside.join('.')] : []), message].join(': '))
    }
  }
}

/** Lists go on without the entries that cannot be applied; an entry that needs one cannot be applied either. */
function refuseReferrers(drafts: readonly Draft[], registry: Registry): void {
  const failed = new Set<unknown>()
  for (const draft of drafts) {
    const { id, reasons } = draft
    if (reasons.length === 0) dropFailed(draft, failed, registry)
    const missing = lookupsIn(draft.fields).find((tag) => tag instanceof KeyOf && failed.has(tag.id))
    if (missing instanceof KeyOf && reasons.length === 0)
      reasons.push(`refers to the entry ${missing.id}, which cannot be applied`)
    if (reasons.length > 0) failed.add(id)
  }
}

function dropFailed(draft: Draft, failed: ReadonlySet<unknown>, registry: Registry): void {
  const model = registry.byName(String(draft.fields?.model))
  const isLost = (item: unknown) => item instanceof KeyOf && failed.has(item.id)
  const attrs = Object.entries(Object(draft.fields?.attrs)).flatMap(([name, value]) => {
    if (!Array.isArray(value) || model?.fields.get(name)?.reference?.many !== true || !value.some(isLost))
      return [[name, value]]
    for (const item of value.filter(isLost)) draft.leftOut.push(`${name}: the entry ${item.id} cannot be applied`)
    const kept = value.filter((item) => !isLost(item))
    return kept.length === 0 ? [] : [[name, kept]]
  })
  if (draft.fields !== undefined) draft.fields = { ...draft.fields, attrs: Object.fromEntries(attrs) }
}
