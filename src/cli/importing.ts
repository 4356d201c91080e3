import { documentLimits, KeyOf } from '../document/document.ts'
import { evaluateNow } from '../document/evaluate.ts'
import { measure } from '../document/measure.ts'
import { placesIn } from '../document/nodes.ts'
import { scopeOf, TagErrors } from '../document/scope.ts'
import { holdsTag, isTag, TagError } from '../document/tags.ts'
import { inOneList, withoutContext } from '../document/written.ts'
import { placed, printValue, readDocument } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { compile } from '../plan/compile.ts'
import { isDeferred } from '../plan/deferred.ts'
import { lookupsIn } from '../plan/lookups.ts'
import { UsageError } from './exit.ts'
import { lostAccess } from './import/access.ts'
import { knownEntries } from './import/adapt.ts'
import {
  type Draft,
  dropInside,
  dropItems,
  fieldsOf,
  leaveOut,
  leftIn,
  type Own,
  sentence,
  whyNeeded,
} from './import/draft.ts'
import { draftOf, judged, readEntry } from './import/entry.ts'
import { inOrder, sayMembershipsOnce } from './import/order.ts'
import { type Skipped, type Source, sourcesIn } from './import/sources.ts'
import type { Document } from './inputs.ts'
import { compareFiles, joinFiles } from './joined.ts'
import { oneLine } from './output.ts'
import { problemLines } from './text-file.ts'

/** Finds the entries of documents of this API family that can be applied here, and makes a document of them. */

export type Judgement = Pick<Draft, 'entry' | 'model' | 'name' | 'leftOut' | 'ignored' | 'reasons'> & {
  /** The document that has it. */
  readonly file: string
  readonly outcome: 'applies' | 'partly' | 'cannot'
}

export type Imported = {
  readonly judgements: readonly Judgement[]
  /** The sources without a blueprint. */
  readonly skipped: readonly Skipped[]
  /** Warnings of entries that are less safe than they were there. */
  readonly warnings: readonly string[]
  /** The entries that can be applied, as YAML with the warnings above them; null when there are none. */
  readonly document: string | null
}

export type Given = { readonly name: string; readonly text: string }

/**
 * @param context that of `--context`
 * @throws {UsageError} for a single text that is no document of entries
 */
export async function importFiles(
  files: readonly (Given | Skipped)[],
  context: ReadonlyMap<string, string>,
  registry: Registry,
): Promise<Imported> {
  const sources = files.flatMap((file) => ('why' in file ? [file] : sourcesIn(file.name, file.text)))
  const results = sources.map((source) => ('why' in source ? source : importSource(source, context, registry)))
  const skipped = results.filter((each) => 'why' in each)
  const [first] = skipped
  if (sources.length === 1 && (first?.isWrong || first?.why === noBlueprint)) throw new UsageError(first.why)
  const parts = results.filter((each): each is Import => !('why' in each))
  const documents = parts.flatMap(({ name, value }): Document[] => {
    if (value === null) return []
    const body = printValue(value)
    return [{ file: name, form: 'blueprint', value, text: body, body }]
  })
  const [judgements, warnings] = [parts.flatMap((each) => each.judgements), parts.flatMap((each) => each.warnings)]
  if (documents.length === 0) return { judgements, skipped, warnings, document: null }
  const given = { label: undefined, isOption: false }
  const [joined] =
    documents.length === 1 ? documents : await joinFiles((await compareFiles(documents, given)).parts, given)
  if (joined === undefined || 'errors' in joined) throw new UsageError(`${joined?.file}: ${joined?.errors.join('\n')}`)
  const above = warnings.map((warning) => `# WARNING: ${oneLine(warning)}\n`).join('')
  return { judgements, skipped, warnings, document: `${above}${joined.body}` }
}

const noBlueprint = 'This is no blueprint of version 1 with entries.'

type Import = Pick<Source, 'name'> & Pick<Imported, 'judgements' | 'warnings'> & { readonly value: JsonObject | null }

function importSource(source: Source, context: ReadonlyMap<string, string>, registry: Registry): Import | Skipped {
  try {
    return placed(source.text, () => importDocument(source, context, registry))
  } catch (error) {
    if (!(error instanceof Problem) && !(error instanceof TagError)) throw error
    const lines = error instanceof Problem ? problemLines('', error) : [error.message]
    return { name: source.name, why: lines.join('\n'), isWrong: true }
  }
}

function importDocument(source: Source, given: ReadonlyMap<string, string>, registry: Registry): Import | Skipped {
  const { name: file, text, written } = source
  const { context: theirs, document } = withoutContext(written)
  if (!isObject(document) || isTag(document)) return { name: file, why: noBlueprint, isWrong: false }
  // A tag without a value is kept: it does not concern the other entries.
  const errors = new TagErrors()
  const caller = { read: 'keep', context: given, errors } as const
  const scope = scopeOf(document, theirs, caller, documentLimits)
  const { version = 1, entries: listed, ...header } = evaluateNow(document, scope) as JsonObject
  measure(listed)
  const failed = new Map<number, string>()
  const placeAt = placesIn(text)
  for (const { offset = 0, message } of errors.list) {
    const { line, column } = placeAt(offset)
    failed.set(offset, `line ${line}, column ${column}: ${message}`)
  }
  const entries = isObject(listed) && !isTag(listed) ? inOneList(listed) : listed
  if (version !== 1 || !Array.isArray(entries) || entries.length === 0) {
    const [why] = isTag(listed) ? failed.values() : []
    return { name: file, why: why ?? noBlueprint, isWrong: why !== undefined }
  }
  const drafts = entries.map((entry, index) => draftOf(entry, index, registry))
  const known = { registry, entries: knownEntries(drafts, registry), failed }
  for (const draft of drafts) readEntry(draft, known)
  sayMembershipsOnce(drafts)
  const ordered = inOrder(drafts)
  refuseUnfit(ordered, registry)
  const left = ordered.filter(isLeft)
  const used = new Set(left.flatMap(({ own }) => lookupsIn([own.fields, own.attrs])).map((tag) => Object(tag).id))
  const kept = left.map(({ id, own }) => {
    const { id: written, ...fields } = entryOf(own)
    const shownId = used.has(id) ? id : (written ?? undefined)
    return { model: fields.model, ...(shownId !== undefined && { id: shownId }), ...fields }
  })
  const head = ['metadata', 'owner', 'prune'].filter(
    (name) => (header[name] ?? null) !== null && !holdsTag(header[name]),
  )
  const value = { version: 1, ...Object.fromEntries(head.map((name) => [name, header[name]])), entries: kept }
  const judgements = drafts.map((draft) => judgementOf(draft, file))
  return { name: file, judgements, warnings: lostAccess(drafts), value: kept.length === 0 ? null : value }
}

type Left = Draft & { readonly own: Own }

const isLeft = (draft: Draft): draft is Left => draft.own !== undefined && draft.reasons.length === 0

/** @param kept the indexes of the items of a list that are in it */
function entryOf({ model, fields, attrs }: Own, kept: typeof leftIn = leftIn): JsonObject {
  const all: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(attrs)) {
    const [field = '', word] = name.split('.')
    const written = Array.isArray(value) ? kept(value).map((index) => value[index]) : value
    all[field] = word === undefined ? written : { ...fieldsOf(all[field]), [word]: written }
  }
  return { model: model.name, ...fields, attrs: all }
}

function judgementOf({ entry, model, name, leftOut, ignored, reasons }: Draft, file: string): Judgement {
  const of = { file, entry, model, name, reasons }
  if (reasons.length > 0) return { ...of, outcome: 'cannot', leftOut: [], ignored: [] }
  return { ...of, outcome: leftOut.length > 0 ? 'partly' : 'applies', leftOut, ignored }
}

/** Checks the other entries until none is refused: a refused entry takes those along that refer to it. */
function refuseUnfit(drafts: readonly Draft[], registry: Registry): void {
  for (;;) {
    refuseReferrers(drafts)
    const left = drafts.filter(isLeft)
    if (left.length === 0) return
    const judge = (kept: typeof leftIn) => {
      const entries = left.map(({ own, id }) => judged(entryOf(own, kept), id))
      return { kept, errors: compile(readDocument({ version: 1, entries }), registry).errors }
    }
    const ofKnown = judge(knownIn)
    const { kept, errors } = ofKnown.errors.any ? ofKnown : judge(leftIn)
    if (!errors.any) return
    const refused = new Map<string, string>()
    for (const { path, code, message } of errors.list) {
      const [, index, field = '', ...rest] = path
      const draft = left[Number(index)]
      if (draft === undefined) throw new Error(`An error is about no entry: ${path.join('.')}: ${message}`)
      const { attrs } = draft.own
      const edited = `${field}.${rest[0]}`
      const [name, ...inside] = Object.hasOwn(attrs, edited) ? [edited, ...rest.slice(1)] : [String(field), ...rest]
      const [item, ...inItem] = inside
      const list = attrs[name]
      const at = Array.isArray(list) && typeof item === 'number' ? kept(list)[item] : undefined
      if (at !== undefined) inside[0] = at
      if (code === 'unknown_field' && inside.length > 0) dropInside(draft, name, inside)
      else if (at !== undefined) refused.getOrInsert(`${index} ${name} ${at}`, sentence(inItem, message))
      else if (whyNeeded(draft.own, name) !== undefined || !Object.hasOwn(attrs, name))
        draft.reasons.push(sentence(path.slice(2), message))
      else refused.getOrInsert(`${index} ${name}`, sentence(inside, message))
    }
    for (const [index, draft] of left.entries())
      for (const name of Object.keys(draft.own.attrs)) {
        dropItems(draft, name, (_, item) => refused.get(`${index} ${name} ${item}`))
        const why = refused.get(`${index} ${name}`)
        if (why !== undefined) leaveOut(draft, name, why)
      }
  }
}

/** Those of items whose value is known: one that only the caller knows would prevent the check of all. */
function knownIn(list: readonly unknown[]): number[] {
  const known = leftIn(list).filter((index) => !isDeferred([list[index]]))
  return known.length > 0 ? known : leftIn(list)
}

/** Removes entries that cannot be applied from lists, and refuses entries that need one. */
function refuseReferrers(drafts: readonly Draft[]): void {
  const failed = new Set<unknown>()
  const isFailed = (tag: unknown): tag is KeyOf => tag instanceof KeyOf && failed.has(tag.id)
  for (const draft of drafts) {
    const { id, own, reasons } = draft
    if (isLeft(draft)) {
      for (const name of Object.keys(draft.own.attrs))
        dropItems(draft, name, (item) => (isFailed(item) ? `the entry ${item.id} cannot be applied` : undefined))
      const missing = lookupsIn([own?.fields, own?.attrs]).find(isFailed)
      if (missing !== undefined) reasons.push(`refers to the entry ${missing.id}, which cannot be applied`)
    }
    if (reasons.length > 0) failed.add(id)
  }
}
