import { type Entry, Find, KeyOf } from '../document/document.ts'
import { Expression } from '../document/tags.ts'
import { printValue } from '../document/yaml.ts'
import { ErrorList } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { unconditional } from '../plan/engine.ts'
import type { Document, Unreadable } from './inputs.ts'
import { type Located, locate, locateEntries } from './places.ts'

/** The files of one owner as one document: planned and applied in their order, in one transaction, with one tag. */

export type Joined = Pick<Document, 'form' | 'value' | 'body'> & {
  /** How it is called in output and in plan files. */
  readonly file: string
  readonly parts: readonly Part[]
}

type Part = {
  readonly document: Document
  readonly entries: readonly unknown[]
  /** The index of its first entry in the joined document. */
  readonly from: number
}

/**
 * Files that follow each other and have one owner are joined; those of an owner whose files prune are joined wherever they
 * stand, because what none of them names is deleted.
 *
 * @returns the documents to send, in the order of their first files; a file that cannot be joined with its errors
 */
export async function joinFiles(
  documents: readonly Document[],
  ownerOf: (document: Document) => string | undefined,
  pruned: ReadonlySet<string | undefined>,
): Promise<readonly (Document | Joined | Unreadable)[]> {
  const groups: { readonly owner: string | undefined; readonly files: Document[] }[] = []
  for (const document of documents) {
    const owner = ownerOf(document)
    const last = groups.at(-1)
    const group = pruned.has(owner) ? groups.find((each) => each.owner === owner) : last?.owner === owner ? last : null
    if (group == null) groups.push({ owner, files: [document] })
    else group.files.push(document)
  }
  const joined: (Document | Joined | Unreadable)[] = []
  for (const { files } of groups) joined.push(...(files.length === 1 ? files : await join(files)))
  return joined
}

async function join(documents: readonly Document[]): Promise<readonly (Document | Joined | Unreadable)[]> {
  const [first] = documents
  if (first === undefined) return []
  const refused: Unreadable[] = []
  const taken = new Set<string>()
  const parts: Part[] = []
  let from = 0
  for (const document of documents) {
    const found = await entriesOf(document)
    if ('errors' in found) refused.push({ file: document.file, ...found })
    else {
      const entries = withOwnIds(found.entries, taken)
      parts.push({ document, entries, from })
      from += entries.length
    }
  }
  if (refused.length > 0) {
    const isRefused = new Set(refused.map(({ file }) => file))
    return documents.map((each) => refused.find(({ file }) => isRefused.has(each.file) && file === each.file) ?? each)
  }
  const more = documents.length - 1
  const file = `${first.file} and ${more} more ${more === 1 ? 'file' : 'files'}`
  const values = documents.map(({ value }) => value)
  const owner = values.find((value) => value.owner !== undefined)?.owner
  const labels = Object.assign({}, ...values.map(({ metadata }) => (isObject(metadata) ? metadata.labels : {})))
  const value = {
    version: 1,
    metadata: { name: file.slice(-255), ...(Object.keys(labels).length > 0 && { labels }) },
    ...(owner !== undefined && { owner }),
    ...(values.some(({ prune }) => prune === true) && { prune: true }),
    entries: parts.flatMap(({ entries }) => entries),
  }
  return [{ file, form: 'blueprint', value, body: printValue(value), parts }]
}

/** What each of its fields says of the whole document is said once: a file with others is refused here. */
async function entriesOf(document: Document): Promise<{ readonly entries: readonly unknown[] } | Located> {
  const { form, value } = document
  if (form === 'submission') return entriesOfSubmission(document)
  const known = ['version', 'metadata', 'context', 'owner', 'prune', 'entries']
  const isPlain = value.version === 1 && Object.keys(value).every((name) => known.includes(name))
  const isForm = isPlain && Array.isArray(value.entries) && ['boolean', 'undefined'].includes(typeof value.prune)
  if (isForm && Array.isArray(value.entries)) return { entries: value.entries }
  const [{ readForm }, { errorLines }] = await Promise.all([import('../document/yaml.ts'), import('./client.ts')])
  const errors = new ErrorList()
  readForm(value, errors)
  return { errors: errorLines(errors.tree()), details: [] }
}

const conditions = { ...unconditional, mode: 'plan' } as const

async function entriesOfSubmission(document: Document): Promise<{ readonly entries: readonly Entry[] } | Located> {
  const [{ toBlueprint }, { loadRegistry }, { errorLines }, { detailOf }] = await Promise.all([
    import('../plan/submission.ts'),
    import('../models/registry.ts'),
    import('./client.ts'),
    import('../errors.ts'),
  ])
  const { blueprint, plan, conditions: found } = toBlueprint(document.value, await loadRegistry(), conditions)
  if (plan.errors.any) return locate(document, plan.errors.list.map(detailOf), errorLines(plan.errors.tree()))
  if (Object.keys(found.expectedKeys ?? {}).length > 0)
    return {
      errors: ['app.provider: A key is compared with --each only: name the provider, or leave it out.'],
      details: [],
    }
  return { entries: blueprint.entries }
}

/** An id is of one file: one that another file has, too, gets a number. */
function withOwnIds(entries: readonly unknown[], taken: Set<string>): readonly unknown[] {
  const names = new Map<string, string>()
  for (const entry of entries) {
    if (!isObject(entry) || typeof entry.id !== 'string' || names.has(entry.id)) continue
    let name = entry.id
    for (let number = 2; taken.has(name); number += 1) name = `${entry.id} (${number})`
    names.set(entry.id, name)
  }
  for (const name of names.values()) taken.add(name)
  if ([...names].every(([id, name]) => id === name)) return entries
  return entries.map((entry) => {
    const value = withNames(entry, names)
    return isObject(value) && typeof value.id === 'string' ? { ...value, id: names.get(value.id) ?? value.id } : value
  })
}

function withNames(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (value instanceof KeyOf) return new KeyOf(names.get(value.id) ?? value.id)
  if (value instanceof Find) return new Find(value.model, withNames(value.identifiers, names) as JsonObject)
  if (value instanceof Expression)
    return typeof value.content === 'string' ? value : value.with(value.content.map((each) => withNames(each, names)))
  if (Array.isArray(value)) return value.map((each) => withNames(each, names))
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withNames(each, names)]))
}

/** Errors of a joined document, each with its place in the file that it is in. */
export async function locateJoined({ parts }: Joined, { details, errors: lines }: Located): Promise<Located> {
  const errors: string[] = []
  const found: Located['details'][number][] = []
  const partOf = (pointer = '') => {
    const [, index] = /^\/entries\/(\d+)/.exec(pointer) ?? []
    return index === undefined ? undefined : parts.findLast(({ from }) => from <= Number(index))
  }
  for (const part of parts) {
    const own = details.filter(({ pointer }) => partOf(pointer) === part)
    if (own.length === 0) continue
    const moved = own.map((detail) => ({ ...detail, pointer: pointerIn(part, detail.pointer ?? '') }))
    const located = await locate(part.document, moved, [])
    errors.push(...located.errors)
    found.push(...located.details)
  }
  const others = lines.filter((line) => !found.some(({ message }) => line.includes(message)))
  return { errors: [...errors, ...others], details: found }
}

/** The two entries of a submission are its provider and its application. */
function pointerIn({ document, from }: Part, pointer: string): string {
  const [, , index, ...rest] = pointer.split('/')
  const own = Number(index) - from
  if (document.form === 'blueprint') return ['', 'entries', own, ...rest].join('/')
  return ['', own === 0 ? 'provider' : 'app', ...rest.slice(1)].join('/')
}

/** An object that two files declare: both are refused, each with the place in the other. */
export async function declaredTwice(documents: readonly Document[]): Promise<readonly Unreadable[]> {
  const declared = new Map<string, { readonly document: Document; readonly index: number; readonly what: string }[]>()
  for (const document of documents) {
    const seen = new Set<string>()
    for (const { model, identifiers, index } of namesIn(document)) {
      const name = JSON.stringify([model, Object.entries(identifiers).sort()]).toLowerCase()
      if (seen.has(name)) continue
      seen.add(name)
      const what = `${model} ${Object.values(identifiers)
        .map((each) => JSON.stringify(each))
        .join(' ')}`
      declared.set(name, [...(declared.get(name) ?? []), { document, index, what }])
    }
  }
  const errors = new Map<string, string[]>()
  for (const twice of declared.values()) {
    if (twice.length < 2) continue
    const places = await Promise.all(twice.map(({ document, index }) => locateEntries(document, [index])))
    for (const [at, { document, what }] of twice.entries()) {
      const others = places.flat().filter((_, other) => other !== at)
      const line = `${places[at]?.[0]} ${what} is declared in ${others.join(' and ')}, too: leave one out.`
      errors.set(document.file, [...(errors.get(document.file) ?? []), line])
    }
  }
  return [...errors].map(([file, lines]) => ({ file, errors: lines }))
}

function namesIn({ form, value }: Document): { model: string; identifiers: JsonObject; index: number }[] {
  if (form === 'blueprint')
    return (Array.isArray(value.entries) ? value.entries : []).flatMap((entry: unknown, index) =>
      isObject(entry) && typeof entry.model === 'string' && isObject(entry.identifiers) && isPlain(entry.identifiers)
        ? [{ model: entry.model, identifiers: entry.identifiers, index }]
        : [],
    )
  const { app, provider, provider_model: model } = value
  return [
    ...(isObject(provider) && typeof model === 'string' && typeof provider.name === 'string'
      ? [{ model, identifiers: { name: provider.name }, index: 0 }]
      : []),
    ...(isObject(app) && typeof app.slug === 'string'
      ? [{ model: 'service_core.application', identifiers: { slug: app.slug }, index: 1 }]
      : []),
  ]
}

const isPlain = (identifiers: JsonObject): boolean =>
  Object.values(identifiers).every((value) => typeof value === 'string' || typeof value === 'number')
