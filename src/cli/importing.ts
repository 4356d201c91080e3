import { type Blueprint, KeyOf } from '../document/document.ts'
import { evaluateNow } from '../document/evaluate.ts'
import { measure } from '../document/measure.ts'
import { scopeOf } from '../document/scope.ts'
import { isTag, TagError } from '../document/tags.ts'
import { inOneList, withoutContext } from '../document/written.ts'
import { placed, printValue, readDocument, readText } from '../document/yaml.ts'
import { Problem } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Registry } from '../models/registry.ts'
import { compile } from '../plan/compile.ts'
import { lookupsIn } from '../plan/lookups.ts'
import { UsageError } from './exit.ts'
import { lostAccess } from './import/access.ts'
import { knownIn } from './import/adapt.ts'
import { familyContext } from './import/context.ts'
import { attrsOf, type Draft, dropItems, fieldsIn } from './import/draft.ts'
import { describe, judged, readEntry, readOne } from './import/entry.ts'
import { inOrder, sayMembershipsOnce } from './import/order.ts'
import { type Skipped, type Source, sourcesIn } from './import/sources.ts'
import { type Document, problemLines } from './inputs.ts'
import { joinFiles } from './joined.ts'
import { shown } from './output.ts'

/** Which entries of documents of this API family can be applied here, and the document of those. */

export type Judgement = Omit<Draft, 'id' | 'fields' | 'places'> & {
  /** The document that has it. */
  readonly file: string
  readonly outcome: 'applies' | 'partly' | 'cannot'
}

export type Imported = {
  readonly judgements: readonly Judgement[]
  /** What holds no blueprint. */
  readonly skipped: readonly Skipped[]
  /** What is less safe than it was there. */
  readonly warnings: readonly string[]
  /** The entries that can be applied, as YAML with the warnings above them; null when there are none. */
  readonly document: string | null
}

export type Given = { readonly name: string; readonly text: string }

/**
 * @param context of `--context`
 * @throws {UsageError} for a single text that is no document of entries
 */
export async function importFiles(
  files: readonly (Given | Skipped)[],
  context: ReadonlyMap<string, string>,
  registry: Registry,
): Promise<Imported> {
  const sources = files.flatMap((file) => ('why' in file ? [file] : sourcesIn(file.name, file.text)))
  const judgements: Judgement[] = []
  const skipped: Skipped[] = []
  const warnings: string[] = []
  const documents: Document[] = []
  for (const source of sources) {
    const found = 'why' in source ? source : importSource(source, context, registry)
    if ('why' in found) {
      if (sources.length === 1 && (found.isWrong || found.why === noBlueprint)) throw new UsageError(found.why)
      skipped.push(found)
      continue
    }
    judgements.push(...found.judgements)
    warnings.push(...found.warnings)
    if (found.value === null) continue
    const body = checkedText(found.value)
    documents.push({ file: source.name, form: 'blueprint', value: found.value, text: body, body })
  }
  const [joined] = await joinFiles(documents, { option: undefined, setting: undefined })
  if (joined === undefined) return { judgements, skipped, warnings, document: null }
  if ('errors' in joined) throw new UsageError(`${joined.file}: ${joined.errors.join('\n')}`)
  const above = warnings.map((warning) => `# WARNING: ${shown(warning).replace(/\s+/g, ' ')}\n`).join('')
  return { judgements, skipped, warnings, document: `${above}${joined.body}` }
}

const noBlueprint = 'This is no blueprint of version 1 with entries.'

type Part = Pick<Imported, 'judgements' | 'warnings'> & { readonly value: Readonly<Record<string, unknown>> | null }

function importSource(source: Source, context: ReadonlyMap<string, string>, registry: Registry): Part | Skipped {
  try {
    return placed(source.text, () => importDocument(source, context, registry))
  } catch (error) {
    const { name } = source
    if (error instanceof Problem) return { name, why: problemLines('', error).join('\n'), isWrong: true }
    if (error instanceof TagError) return { name, why: describe(error.message, error.place), isWrong: true }
    throw error
  }
}

function importDocument(
  { name: file, text, written }: Source,
  given: ReadonlyMap<string, string>,
  registry: Registry,
): Part | Skipped {
  measure(written)
  const { context: theirs, document } = withoutContext(written)
  const context = { ...familyContext(text, registry), ...theirs }
  const none = { name: file, why: noBlueprint, isWrong: false }
  if (!isObject(document) || isTag(document) || document.version !== 1) return none
  const caller = { read: 'keep', context: given } as const
  const evaluated = (value: unknown) => evaluateNow(value, scopeOf(value, context, caller))
  const listed = isTag(document.entries) ? evaluated(document.entries) : document.entries
  const entries = isObject(listed) && !isTag(listed) ? inOneList(listed) : listed
  if (!Array.isArray(entries) || entries.length === 0) return none
  const read = entries.map((entry, index) => {
    const newId = (resource: string) => `${resource} of entry ${index}`
    return readOne(entry, index, { text, context, caller, newId })
  })
  const values = read.map(({ value }) => value)
  const drafts = read.map(({ draft }) => draft)
  const ids = drafts.map(({ id }) => id)
  const known = knownIn(values, ids, registry)
  for (const each of read) readEntry(each, known)
  sayMembershipsOnce(drafts, registry)
  const ordered = inOrder(drafts)
  refuseUnfit(ordered, registry)
  const header = ['metadata', 'owner', 'prune'].flatMap((name) =>
    document[name] === undefined || document[name] === null ? [] : [[name, evaluated(document[name])]],
  )
  const left = ordered.filter(isLeft)
  const used = new Set(left.flatMap(({ fields }) => lookupsIn(fields).map((tag) => tag instanceof KeyOf && tag.id)))
  const kept = left.map(({ id, fields: { id: own, ...fields } }) => {
    const shownId = used.has(id) ? id : (own ?? undefined)
    return { model: fields.model, ...(shownId !== undefined && { id: shownId }), ...fields }
  })
  return {
    judgements: drafts.map((draft) => judgementOf(draft, file)),
    warnings: lostAccess(values),
    value: kept.length === 0 ? null : { version: 1, ...Object.fromEntries(header), entries: kept },
  }
}

type Left = Draft & { readonly fields: NonNullable<Draft['fields']> }

const isLeft = (draft: Draft): draft is Left => draft.fields !== undefined && draft.reasons.length === 0

function judgementOf({ id: _, fields: __, places: ___, ...draft }: Draft, file: string): Judgement {
  const { leftOut, reasons } = draft
  if (reasons.length > 0) return { file, ...draft, outcome: 'cannot', leftOut: [], ignored: [] }
  return { file, ...draft, outcome: leftOut.length > 0 ? 'partly' : 'applies' }
}

/** The printed document is read again: what this command writes is what `apply` takes. */
function checkedText(document: unknown): string {
  const text = printValue(document)
  const read = readText(text, { read: 'keep', context: new Map() })
  const { entries = [], ...head } = Object(read)
  readDocument({ ...head, entries: entries.map((entry: object, index: number) => judged({ ...entry }, String(index))) })
  return text
}

/** Checks what is left, until nothing is refused: an entry that is takes those along which refer to it. */
function refuseUnfit(drafts: readonly Draft[], registry: Registry): void {
  for (;;) {
    refuseReferrers(drafts, registry)
    const left = drafts.filter(isLeft)
    if (left.length === 0) return
    const blueprint: Blueprint = readDocument({
      version: 1,
      entries: left.map(({ fields, id }) => judged(fields, id)),
    })
    const { errors } = compile(blueprint, registry)
    if (!errors.any) return
    const items = new Map<Draft, Map<string, Map<number, string>>>()
    for (const { path, message } of errors.list) {
      const [, index, name = '', item, ...inside] = path
      const draft = left[Number(index)]
      if (draft === undefined) throw new Error(`An error is about no entry: ${path.join('.')}: ${message}`)
      const list = attrsOf(draft)[name]
      const sentence = (parts: typeof path) => [...(parts.length > 0 ? [parts.join('.')] : []), message].join(': ')
      if (Array.isArray(list) && typeof item === 'number' && item < list.length)
        items
          .getOrInsertComputed(draft, () => new Map())
          .getOrInsertComputed(String(name), () => new Map())
          .getOrInsert(item, sentence(inside))
      else draft.reasons.push(sentence(path.slice(2)))
    }
    for (const [draft, fields] of items)
      for (const [name, whys] of fields)
        dropItems(draft, name, fieldsIn(draft, registry)?.get(name), (_, index) => whys.get(index))
  }
}

/** Lists go on without the entries that cannot be applied; an entry that needs one cannot be applied either. */
function refuseReferrers(drafts: readonly Draft[], registry: Registry): void {
  const failed = new Set<unknown>()
  for (const draft of drafts) {
    const { id, reasons } = draft
    for (const [name, value] of reasons.length > 0 ? [] : Object.entries(attrsOf(draft))) {
      const field = fieldsIn(draft, registry)?.get(name)
      const why = (item: unknown) =>
        item instanceof KeyOf && failed.has(item.id) ? `the entry ${item.id} cannot be applied` : undefined
      if (Array.isArray(value) && field?.reference?.many && value.some(why)) dropItems(draft, name, field, why)
    }
    const missing = lookupsIn(draft.fields).find((tag) => tag instanceof KeyOf && failed.has(tag.id))
    if (missing instanceof KeyOf && reasons.length === 0)
      reasons.push(`refers to the entry ${missing.id}, which cannot be applied`)
    if (reasons.length > 0) failed.add(id)
  }
}
