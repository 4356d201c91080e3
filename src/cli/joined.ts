import { isDeepStrictEqual } from 'node:util'
import { documentLimits, type Entry, KeyOf } from '../document/document.ts'
import { replaceLookups } from '../document/tags.ts'
import { printValue, readEntries, readForm } from '../document/yaml.ts'
import { ErrorList, type FieldPath } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { loadRegistry, type Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { compile } from '../plan/compile.ts'
import { toBlueprint } from '../plan/submission.ts'
import { errorsOf, located } from './check.ts'
import { UsageError } from './exit.ts'
import type { Document, Unreadable } from './inputs.ts'
import { namedOwner, type OwnerGiven, ownerOf, ownOwner, prunedBy, withOwner } from './owners.ts'
import { entriesIn, type Located, locatePlace, type Part, type Placed } from './places.ts'

/** Joins the files of a call to one document: it is planned and applied in their order, in one transaction, with one tag. */

type JoinedPart = Required<Part> & { readonly document: Document }

export type Joined = Pick<Document, 'file' | 'form' | 'body'> & {
  readonly parts: readonly Part[]
  /** The owner of the request, for files that name none; undefined when each names its own. */
  readonly owner: string | undefined
}

/** An entry of a file. */
type Declared = {
  readonly document: Document
  readonly place: FieldPath
  /** What it says: without its id, with the owner of the file, and with sets in one order. */
  readonly content: Entry
  /** The entry that is sent. It gets the id of an equal one in a later file, where it has none. */
  readonly sent: { id?: string | undefined }
}

/**
 * Compares the entries of all files, in their order. One that an earlier file has too is left out, and ids are made unique, also
 * in tags.
 *
 * @returns the files with the entries that are left, and those that contradict each other, each with the place in the other
 */
export async function compareFiles(
  documents: readonly Document[],
  given: OwnerGiven,
): Promise<{ readonly parts: readonly JoinedPart[]; readonly refused: readonly Unreadable[] }> {
  const registry = await loadRegistry()
  const rows = new Map<string, Declared[]>()
  const ids = new Map<string, number>()
  const pairs: [Declared, Declared][] = []
  const parts: JoinedPart[] = []
  let from = 0
  for (const document of documents) {
    const written = entriesOf(document, registry)
    const names = uniqueNames(written, ids)
    const entries = written.flatMap(({ entry: each, place }) => {
      const entry = replaceLookups(each, (tag) => (tag instanceof KeyOf ? new KeyOf(names.get(tag.id) ?? tag.id) : tag))
      const id = idOf(entry)
      const sent = id === undefined ? entry : Object.assign({}, entry, { id: names.get(id) })
      const [{ entry: read } = {}] = readEntries({ entries: [sent] })
      if (!isObject(sent) || read === undefined) return [{ entry: sent, place }]
      const declared = { document, place, sent, content: contentOf(read, ownerOf(document, given), registry) }
      const keys = keysOf(read, registry)
      const others = keys.flatMap((key) => rows.get(key) ?? []).filter((other) => other.document !== document)
      for (const other of new Set(others))
        if (contradict(other.content, declared.content, registry)) pairs.push([other, declared], [declared, other])
      const same = others.find((other) => isDeepStrictEqual(other.content, declared.content))
      if (same === undefined) {
        for (const key of keys) rows.getOrInsertComputed(key, () => []).push(declared)
        return [{ entry: sent, place }]
      }
      if (id !== undefined) {
        same.sent.id ??= names.get(id)
        names.set(id, same.sent.id ?? id)
      }
      return []
    })
    parts.push({ document, entries, from })
    from += entries.length
  }
  return { parts, refused: await contradictions(pairs) }
}

function entriesOf({ form, value }: Document, registry: Registry): readonly Placed[] {
  if (form === 'blueprint') return entriesIn(value.entries) ?? []
  return toBlueprint(value, registry).blueprint.entries.map((entry) => ({ entry, place: [entry.id ?? ''] }))
}

const idOf = (entry: unknown): string | undefined =>
  isObject(entry) && typeof entry.id === 'string' ? entry.id : undefined

/**
 * The unique ids of a file's entries: an id that another file has too gets a number.
 *
 * @param ids those of the files before, each with the number to try next
 */
function uniqueNames(entries: readonly Placed[], ids: Map<string, number>): Map<string, string> {
  const names = new Map<string, string>()
  for (const id of new Set(entries.map(({ entry }) => idOf(entry)))) {
    if (id === undefined) continue
    let number = ids.get(id) ?? 1
    let name = number === 1 ? id : `${id} (${number})`
    for (; ids.has(name); name = `${id} (${number})`) number += 1
    ids.set(name, 1).set(id, number)
    names.set(id, name)
  }
  return names
}

function contentOf({ id: _, ...entry }: Entry, owner: string | undefined, registry: Registry): Entry {
  const fields = registry.byName(entry.model)?.fields
  const inOrder = ([name, value]: [string, unknown]) => {
    const isSet = Array.isArray(value) && fields?.get(name)?.isSet === true
    return [name, isSet ? value.toSorted((one, other) => (inText(one) < inText(other) ? -1 : 1)) : value]
  }
  return withOwner({ ...entry, attrs: Object.fromEntries(Object.entries(entry.attrs).map(inOrder)) }, owner)
}

const inText = (value: unknown): string => JSON.stringify(value) ?? ''

/** Whether no document could say both. Entries with conditions are left out: they may have other values. */
function contradict(one: Entry, other: Entry, registry: Registry): boolean {
  if (one.conditions !== undefined || other.conditions !== undefined || isDeepStrictEqual(one, other)) return false
  const isOtherName = ([name, value]: [string, unknown]) =>
    Object.hasOwn(other.identifiers, name) && !isDeepStrictEqual(plain(value), plain(other.identifiers[name]))
  const owners = new Set([one.owner, other.owner].filter((owner) => owner !== undefined))
  if (one.model !== other.model || owners.size > 1 || Object.entries(one.identifiers).some(isOtherName)) return true
  // The errors of each file alone are reported elsewhere.
  const errorsOf = (entries: readonly Entry[]) =>
    compile({ version: 1, metadata: { name: '' }, entries }, registry).errors.list.length
  return errorsOf([one, other]) > errorsOf([one]) + errorsOf([other])
}

const plain = (value: unknown): unknown => (typeof value === 'string' ? value.normalize('NFC').trim() : value)

/** One name belongs to one object of its target, whatever its kind: a provider to OAuth2 or to LDAP. */
function keysOf({ model: name, identifiers }: Entry, registry: Registry): string[] {
  const model = registry.byName(name)
  const isPlain = (field: string) => ['string', 'number'].includes(typeof identifiers[field])
  const sets = [['pk'], ...(model?.identifiers ?? [])].filter((set) => set.every(isPlain))
  // The service may know more models than this program, and a tag may be a part of the name.
  if (sets.length === 0) return [JSON.stringify([name, Object.entries(identifiers).sort()])]
  return sets.map((set) => {
    const values = set.map((field) =>
      model?.fields.get(field)?.folded === true ? comparedName(String(identifiers[field])) : plain(identifiers[field]),
    )
    return JSON.stringify([model?.target ?? name, set, values])
  })
}

async function contradictions(pairs: readonly [Declared, Declared][]): Promise<Unreadable[]> {
  const errors = new Map<string, Set<string>>()
  const placeOf = ({ document, place }: Declared) => locatePlace(document, place)
  for (const [one, other] of pairs) {
    const { model, identifiers } = one.content
    const names = Object.values(identifiers).map((each) => JSON.stringify(each))
    const line = `${await placeOf(one)} ${model} ${names.join(' ')} is declared in ${await placeOf(other)}, too, and otherwise: make both equal, or leave one out.`
    errors.getOrInsertComputed(one.document.file, () => new Set()).add(line)
  }
  return [...errors].map(([file, lines]) => ({ file, errors: [...lines] }))
}

/**
 * @param parts at least one
 * @returns the document to send; the files that cannot be joined, with their errors
 * @throws {UsageError} when they are too much for one document
 */
export async function joinFiles(
  parts: readonly JoinedPart[],
  given: OwnerGiven,
): Promise<readonly [Joined] | readonly Unreadable[]> {
  const documents = parts.map(({ document }) => document)
  const refused: Unreadable[] = []
  for (const document of documents) {
    const wrong = await wrongIn(document, given)
    if (wrong.errors.length > 0) refused.push({ file: document.file, ...wrong })
  }
  if (refused.length > 0) return refused
  const more = documents.length - 1
  const file = `${documents[0]?.file} and ${more} more ${more === 1 ? 'file' : 'files'}`
  const labels = Object.assign({}, ...documents.map(({ value }) => Object(value.metadata).labels))
  const { request, ...owned } = owners(parts, given)
  // The name of a stack must not depend on the number of its files.
  const pruning = documents.find((each) => prunedBy(each, given).length > 0)
  const title = pruning === undefined ? file : String(Object(pruning.value.metadata).name ?? 'files')
  const value = {
    version: 1,
    metadata: { name: title.slice(-255), ...(Object.keys(labels).length > 0 && { labels }) },
    ...owned,
  }
  const body = printValue(value)
  const [{ length: entries }, bytes] = [owned.entries, Buffer.byteLength(body)]
  if (entries > documentLimits.entries || bytes > documentLimits.bytes)
    throw new UsageError(
      `These ${documents.length} files have ${entries} entries and ${bytes} bytes, and the files of a call are one document, which may have ${documentLimits.entries} and ${documentLimits.bytes}: name fewer of them in a call, or send each on its own, with --each.`,
    )
  return [{ file, form: 'blueprint', body, parts, owner: request }]
}

/**
 * Sets the owners of the entries: files with one owner give it to the document; otherwise each entry gets the owner of its file,
 * unless it is that of the request.
 */
function owners(parts: readonly JoinedPart[], given: OwnerGiven) {
  const documents = parts.map(({ document }) => document)
  const all = new Set(documents.map((each) => ownerOf(each, given)))
  const isNamedByAll = documents.every((each) => namedOwner(each) !== undefined)
  const request = isNamedByAll ? undefined : given.label
  const [only] = all.size === 1 ? all : []
  const prune = [...new Set(documents.flatMap((each) => prunedBy(each, given)))]
  const entries = parts.flatMap(({ document, entries }) => {
    const owner = ownerOf(document, given)
    return entries.map(({ entry }) => (owner === only || owner === request ? entry : withOwner(entry, owner)))
  })
  return {
    request,
    ...(only !== undefined && documents.some((each) => namedOwner(each) !== undefined) && { owner: only }),
    ...(prune.length > 0 && { prune }),
    entries,
  }
}

/** Checks the fields of a whole document here, where they have a place. The service checks its entries. */
export async function wrongIn(document: Document, given: OwnerGiven): Promise<Located> {
  const errors = new ErrorList()
  wrongOwner(document, given, errors)
  const { entries } = document.value
  if (document.form === 'blueprint' && !errors.any)
    readForm({ ...document.value, entries: entriesIn(entries)?.length ? [anyEntry] : entries }, errors)
  if (document.form === 'blueprint' || errors.any) return located(document, errors)
  const found = await errorsOf(document)
  if (found.errors.length > 0 || typeof Object(document.value.app).provider !== 'number') return found
  const why = 'app.provider: A key is compared with --each only: name the provider, or leave it out.'
  return { errors: [why], details: [] }
}

const anyEntry = { model: '', identifiers: {} }

/** The errors of an owner, in the words of the service for one file. */
function wrongOwner(document: Document, given: OwnerGiven, errors: ErrorList): void {
  const own = ownOwner(document)
  if (given.isOption && own !== undefined && own !== given.label)
    errors.add(
      ['owner'],
      'invalid_combination',
      `--owner is ${JSON.stringify(given.label)}, and the document names the owner ${JSON.stringify(own)}: leave one out.`,
    )
  else if (document.value.prune === true && ownerOf(document, given) === undefined)
    errors.add(['prune'], 'invalid_combination', 'It takes an owner: --owner, or owner of the document.')
}
