import { isDeepStrictEqual } from 'node:util'
import { documentLimits, type Entry, KeyOf } from '../document/document.ts'
import { replaceLookups } from '../document/tags.ts'
import { printValue, readEntries, readForm } from '../document/yaml.ts'
import { detailOf, type ErrorDetail, ErrorList } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { loadRegistry, type Registry } from '../models/registry.ts'
import { hasOwner } from '../permissions.ts'
import { errorLines } from './client.ts'
import { UsageError } from './exit.ts'
import type { Document, Unreadable } from './inputs.ts'
import { entriesIn, type Located, locate, type Place } from './places.ts'

/** Joins the files of a call to one document: it is planned and applied in their order, in one transaction, with one tag. */

export type Joined = Pick<Document, 'form' | 'value' | 'body'> & {
  /** Its name in output and in plan files. */
  readonly file: string
  readonly parts: readonly Part[]
  /** The owner of the request, for files that name none; undefined when each names its own. */
  readonly owner: string | undefined
}

type Part = {
  readonly document: Document
  readonly entries: readonly unknown[]
  /** The place of each entry in the file. */
  readonly places: readonly Place[]
  /** The index of its first entry in the joined document. */
  readonly from: number
}

/** `--owner`, and `GATEWRIGHT_OWNER` for files without an owner of their own. */
export type OwnerGiven = { readonly option: string | undefined; readonly setting: string | undefined }

/** The owner that a file names. */
export const ownOwner = ({ value: { owner } }: Document): string | undefined =>
  typeof owner === 'string' ? owner : undefined

/** The owner under which a file is applied. */
export const ownerOf = (document: Document, { option, setting }: OwnerGiven): string | undefined =>
  ownOwner(document) ?? option ?? setting

/** The owners whose objects a file deletes where it does not name them; undefined: one that is not known. */
export function prunedBy(document: Document, given: OwnerGiven): readonly (string | undefined)[] {
  const { prune } = document.value
  if (Array.isArray(prune)) return prune.map(String)
  return prune === true ? [ownerOf(document, given)] : []
}

/**
 * @returns the document to send; the files themselves, when one of them cannot be joined, which then has its errors
 * @throws {UsageError} when they are too much for one document
 */
export async function joinFiles(
  documents: readonly Document[],
  given: OwnerGiven,
): Promise<readonly (Document | Joined | Unreadable)[]> {
  const [first, ...more] = documents
  if (first === undefined || more.length === 0) return documents
  const refused = new Map<Document, Unreadable>()
  const all = new Entries(await loadRegistry())
  const parts: Part[] = []
  let from = 0
  for (const document of documents) {
    const found = await partOf(document, given)
    if ('errors' in found) {
      refused.set(document, { file: document.file, ...found })
      continue
    }
    const own = all.add(found, ownerOf(document, given))
    parts.push({ document, ...own, from })
    from += own.entries.length
  }
  if (refused.size > 0) return documents.map((each) => refused.get(each) ?? each)
  const file = `${first.file} and ${more.length} more ${more.length === 1 ? 'file' : 'files'}`
  const labels = Object.assign(
    {},
    ...documents.map(({ value: { metadata } }) => (isObject(metadata) ? metadata.labels : {})),
  )
  const { request, ...owned } = owners(parts, given)
  const value = {
    version: 1,
    metadata: { name: file.slice(-255), ...(Object.keys(labels).length > 0 && { labels }) },
    ...owned,
  }
  const body = printValue(value)
  refuseTooMuch(documents.length, { entries: from, bytes: Buffer.byteLength(body) })
  return [{ file, form: 'blueprint', value, body, parts, owner: request }]
}

function refuseTooMuch(files: number, { entries, bytes }: Pick<typeof documentLimits, 'entries' | 'bytes'>): void {
  const { entries: mostEntries, bytes: mostBytes } = documentLimits
  if (entries <= mostEntries && bytes <= mostBytes) return
  throw new UsageError(
    `These ${files} files have ${entries} entries and ${bytes} bytes, and the files of a call are one document, which may have ${mostEntries} and ${mostBytes}: name fewer of them in a call, or send each on its own, with --each.`,
  )
}

/**
 * Sets the owners of the entries: files with one owner give it to the document; otherwise each entry gets the owner of its file,
 * unless it is that of the request.
 */
function owners(parts: readonly Part[], given: OwnerGiven) {
  const documents = parts.map(({ document }) => document)
  const all = new Set(documents.map((each) => ownerOf(each, given)))
  const isNamedByAll = documents.every((each) => ownOwner(each) !== undefined)
  const request = isNamedByAll ? undefined : (given.option ?? given.setting)
  const [only] = all.size === 1 ? all : []
  const pruned = documents.flatMap((each) => prunedBy(each, given))
  const prunesOnly = only !== undefined && pruned.every((owner) => owner === only)
  const entries = parts.flatMap(({ document, entries }) => {
    const owner = ownerOf(document, given)
    return owner === only || owner === request ? entries : entries.map((entry) => withOwner(entry, owner))
  })
  return {
    request,
    ...(only !== undefined && documents.some((each) => ownOwner(each) !== undefined) && { owner: only }),
    ...(pruned.length > 0 && { prune: prunesOnly ? true : [...new Set(pruned)] }),
    entries,
  }
}

/** Whether a model has owners. The service may know more models than this program. */
export function withOwner<Sent>(entry: Sent, owner: string | undefined): Sent {
  if (!isObject(entry) || 'owner' in entry || typeof entry.model !== 'string') return entry
  const [resource = ''] = entry.model.split('.').slice(-1)
  return hasOwner(resource) ? { ...entry, owner } : entry
}

/** Checks the fields of a whole document here, where they have a place. The service checks its entries. */
async function partOf(document: Document, given: OwnerGiven): Promise<Pick<Part, 'entries' | 'places'> | Located> {
  const wrong = wrongOwner(document, given)
  if (wrong !== null) return locate(document, [wrong], [])
  if (document.form === 'submission') return entriesOfSubmission(document)
  const { entries: written, ...head } = document.value
  const found = entriesIn(written)
  const errors = new ErrorList()
  readForm({ ...head, entries: found === undefined ? written : found.length === 0 ? [] : [anyEntry] }, errors)
  if (errors.any) return locate(document, errors.list.map(detailOf), errorLines(errors.tree()))
  return { entries: found?.map(({ entry }) => entry) ?? [], places: found?.map(({ place }) => place) ?? [] }
}

const anyEntry = { model: '', identifiers: {} }

/** The error of an owner, in the words of the service for one file. */
function wrongOwner(document: Document, given: OwnerGiven): ErrorDetail | null {
  const own = ownOwner(document)
  if (own !== undefined && given.option !== undefined && own !== given.option)
    return {
      code: 'invalid_combination',
      message: `--owner is ${JSON.stringify(given.option)}, and the document names the owner ${JSON.stringify(own)}: leave one out.`,
      pointer: '/owner',
    }
  if (document.value.prune !== true || ownerOf(document, given) !== undefined) return null
  return {
    code: 'invalid_combination',
    message: 'It takes an owner: --owner, or owner of the document.',
    pointer: '/prune',
  }
}

async function entriesOfSubmission(
  document: Document,
): Promise<{ readonly entries: readonly Entry[]; readonly places: readonly Place[] } | Located> {
  const { toBlueprint } = await import('../plan/submission.ts')
  const { blueprint, plan, conditions: found } = toBlueprint(document.value, await loadRegistry())
  if (plan.errors.any) return locate(document, plan.errors.list.map(detailOf), errorLines(plan.errors.tree()))
  if (Object.keys(found.expectedKeys ?? {}).length > 0)
    return {
      errors: ['app.provider: A key is compared with --each only: name the provider, or leave it out.'],
      details: [],
    }
  return { entries: blueprint.entries, places: [['provider'], ['app']] }
}

/** The entries of the files so far. An entry that an earlier file has too is left out of the document. */
class Entries {
  readonly #registry: Registry
  readonly #ids = new Set<string>()
  /** The entries by the values that find their rows. An entry without an id gets that of an equal one in a later file. */
  readonly #before = new Map<string, { readonly content: unknown; readonly kept: { id?: string | undefined } }[]>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** @returns the entries of the next file that are left, with unique ids, also in their tags */
  add({ entries, places }: Pick<Part, 'entries' | 'places'>, owner: string | undefined) {
    const names = this.#namesFor(entries)
    const added: (() => void)[] = []
    const left = entries.flatMap((written, index) => {
      const place = places[index] ?? []
      const entry = replaceLookups(written, (tag) =>
        tag instanceof KeyOf ? new KeyOf(names.get(tag.id) ?? tag.id) : tag,
      )
      if (!isObject(entry)) return [{ entry, place }]
      const own = typeof entry.id === 'string' ? { id: names.get(entry.id) } : {}
      const row = JSON.stringify([entry.model, Object.entries(Object(entry.identifiers)).sort()])
      const content = this.#contentOf(entry, owner)
      const same = this.#before.get(row)?.find((each) => isDeepStrictEqual(each.content, content))
      if (same !== undefined) {
        same.kept.id ??= own.id
        if (typeof entry.id === 'string') names.set(entry.id, same.kept.id ?? entry.id)
        return []
      }
      const kept = { ...entry, ...own }
      added.push(() => this.#before.getOrInsertComputed(row, () => []).push({ content, kept }))
      return [{ entry: kept, place }]
    })
    for (const add of added) add()
    return { entries: left.map(({ entry }) => entry), places: left.map(({ place }) => place) }
  }

  /** The unique ids of a file's entries: an id that another file has too gets a number. */
  #namesFor(entries: readonly unknown[]): Map<string, string> {
    const names = new Map<string, string>()
    for (const entry of entries) {
      if (!isObject(entry) || typeof entry.id !== 'string' || names.has(entry.id)) continue
      let name = entry.id
      for (let number = 2; this.#ids.has(name); number += 1) name = `${entry.id} (${number})`
      names.set(entry.id, name)
    }
    for (const name of names.values()) this.#ids.add(name)
    return names
  }

  /** The content of an entry: without its id, and with sets in one order. */
  #contentOf(written: unknown, owner: string | undefined): unknown {
    const [{ entry } = {}] = readEntries({ entries: [written] })
    if (entry === undefined) return written
    const { id: _, attrs, ...rest } = entry
    const fields = this.#registry.byName(entry.model)?.fields
    const inOrder = ([name, value]: [string, unknown]) => {
      const isSet = Array.isArray(value) && fields?.get(name)?.isSet === true
      return [name, isSet ? value.toSorted((one, other) => (inText(one) < inText(other) ? -1 : 1)) : value]
    }
    return withOwner({ ...rest, attrs: Object.fromEntries(Object.entries(attrs).map(inOrder)) }, owner)
  }
}

const inText = (value: unknown): string => JSON.stringify(value) ?? ''

/** Errors of a joined document, each with its place in the file that it is in. */
export async function locateJoined({ parts }: Joined, { details, errors: lines }: Located): Promise<Located> {
  const errors: string[] = []
  const found: Located['details'][number][] = []
  const partAt = (pointer = '') => {
    const [, index] = /^\/entries\/(\d+)/.exec(pointer) ?? []
    return index === undefined ? undefined : parts.findLast(({ from }) => from <= Number(index))
  }
  for (const part of parts) {
    const own = details.filter(({ pointer }) => partAt(pointer) === part)
    if (own.length === 0) continue
    const moved = own.map((detail) => ({ ...detail, pointer: pointerIn(part, detail.pointer ?? '') }))
    const located = await locate(part.document, moved, [])
    errors.push(...located.errors)
    found.push(...located.details)
  }
  const others = lines.filter((line) => !found.some(({ message }) => line.includes(message)))
  return { errors: [...errors, ...others], details: found }
}

/** The pointer in the file. The two entries of a submission are its provider and its application, with their fields. */
function pointerIn({ document, places, from }: Part, pointer: string): string {
  const [, , index, ...rest] = pointer.split('/')
  const place = (places[Number(index) - from] ?? []).map((part) =>
    String(part).replaceAll('~', '~0').replaceAll('/', '~1'),
  )
  return ['', ...place, ...(document.form === 'blueprint' ? rest : rest.slice(1))].join('/')
}
