import { isDeepStrictEqual } from 'node:util'
import type { Entry } from '../document/document.ts'
import { readEntries } from '../document/yaml.ts'
import { loadRegistry, type Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { compile } from '../plan/compile.ts'
import { toBlueprint } from '../plan/submission.ts'
import type { Document, Unreadable } from './inputs.ts'
import { ownOwner, withOwner } from './joined.ts'
import { entriesIn, locatePlace, type Place } from './places.ts'

/** Objects that two files of a call declare. The files may not contradict each other, like the entries of one document. */

type Declared = { readonly document: Document; readonly place: Place; readonly entry: Entry }

/** Refuses both files of a contradiction, each with the place in the other. */
export async function contradictions(documents: readonly Document[]): Promise<readonly Unreadable[]> {
  const registry = await loadRegistry()
  const byKey = new Map<string, Declared[]>()
  for (const document of documents)
    for (const declared of declaredIn(document, registry))
      for (const key of keysOf(declared.entry, registry)) byKey.getOrInsertComputed(key, () => []).push(declared)
  const errors = new Map<string, Set<string>>()
  for (const all of byKey.values()) {
    if (!contradict(all, registry)) continue
    for (const [index, one] of all.entries())
      for (const other of all.slice(0, index)) {
        if (one.document === other.document || !contradict([other, one], registry)) continue
        for (const [it, others] of [
          [one, other],
          [other, one],
        ] as const) {
          const names = Object.values(it.entry.identifiers).map((each) => JSON.stringify(each))
          const line = `${await placeOf(it)} ${it.entry.model} ${names.join(' ')} is declared in ${await placeOf(others)}, too, and otherwise: make both equal, or leave one out.`
          errors.getOrInsertComputed(it.document.file, () => new Set()).add(line)
        }
      }
  }
  return [...errors].map(([file, lines]) => ({ file, errors: [...lines] }))
}

const placeOf = ({ document, place }: Declared) => locatePlace(document, place)

/** The entries of a document. Those with conditions are left out: they may have other values. */
function declaredIn(document: Document, registry: Registry): Declared[] {
  const { form, value } = document
  if (form === 'submission')
    return toBlueprint(value, registry).blueprint.entries.map((entry) => ({
      document,
      entry,
      place: [entry.id ?? ''],
    }))
  const places = entriesIn(value.entries) ?? []
  return readEntries(value).flatMap(({ entry, index }) => {
    const place = places[index]?.place
    if (place === undefined || entry.conditions !== undefined) return []
    return [{ document, entry: withOwner(entry, ownOwner(document)), place }]
  })
}

function contradict(declared: readonly Declared[], registry: Registry): boolean {
  const entries = declared.map(({ entry: { id: _, ...entry } }) => entry)
  const all = entries.filter((each, at) => entries.findIndex((other) => isDeepStrictEqual(each, other)) === at)
  const [first, ...others] = all
  if (first === undefined || others.length === 0) return false
  const isOther = others.some((each) => {
    const names = Object.entries(each.identifiers).filter(([name]) => Object.hasOwn(first.identifiers, name))
    return (
      each.model !== first.model ||
      (each.owner !== undefined && first.owner !== undefined && each.owner !== first.owner) ||
      names.some(([name, value]) => !isDeepStrictEqual(plain(value), plain(first.identifiers[name])))
    )
  })
  // The errors of each file alone are reported elsewhere.
  const errorsOf = (some: readonly Entry[]) =>
    compile({ version: 1, metadata: { name: '' }, entries: some }, registry).errors.list.length
  return isOther || errorsOf(all) > all.reduce((sum, each) => sum + errorsOf([each]), 0)
}

const plain = (value: unknown): unknown => (typeof value === 'string' ? value.normalize('NFC').trim() : value)

/** One name belongs to one object of its target, whatever its kind: a provider to OAuth2 or to LDAP. */
function keysOf({ model: name, identifiers }: Entry, registry: Registry): string[] {
  const model = registry.byName(name)
  const isPlain = (field: string) => ['string', 'number'].includes(typeof identifiers[field])
  // The service may know more models than this program.
  const sets = model === undefined ? [Object.keys(identifiers).sort()] : [['pk'], ...model.identifiers]
  return sets
    .filter((set) => set.length > 0 && set.every(isPlain))
    .map((set) => {
      const values = set.map((field) =>
        model?.fields.get(field)?.folded === true
          ? comparedName(String(identifiers[field]))
          : plain(identifiers[field]),
      )
      return JSON.stringify([model?.target ?? name, set, values])
    })
}
