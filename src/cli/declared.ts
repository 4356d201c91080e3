import { isTrue } from '../document/evaluate.ts'
import { isTag } from '../document/tags.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { loadRegistry, type Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import type { Document, Unreadable } from './inputs.ts'
import { entriesIn, locatePlaces, type Place } from './places.ts'

/** Objects that two files of a call declare. */

type Declaration = {
  /** What no two objects may have. */
  readonly keys: readonly string[]
  readonly place: Place
  /** In messages. */
  readonly what: string
}

type Found = { readonly document: Document; readonly place: Place; readonly what: string }

/** Both files are refused, each with the place in the other. */
export async function declaredTwice(documents: readonly Document[]): Promise<readonly Unreadable[]> {
  if (documents.length < 2) return []
  const registry = await loadRegistry()
  const declared = new Map<string, Found[]>()
  for (const document of documents) {
    const seen = new Set<string>()
    for (const { keys, ...found } of declarationsIn(document, registry))
      for (const key of keys) {
        if (seen.has(key)) continue
        seen.add(key)
        declared.set(key, [...(declared.get(key) ?? []), { document, ...found }])
      }
  }
  const errors = new Map<string, Set<string>>()
  for (const twice of declared.values()) {
    if (twice.length < 2) continue
    const places = await Promise.all(twice.map(({ document, place }) => locatePlaces(document, [place])))
    for (const [at, { document, what }] of twice.entries()) {
      const others = places.flat().filter((_, other) => other !== at)
      const line = `${places[at]?.[0]} ${what} is declared in ${others.join(' and ')}, too: leave one out.`
      errors.set(document.file, (errors.get(document.file) ?? new Set()).add(line))
    }
  }
  return [...errors].map(([file, lines]) => ({ file, errors: [...lines] }))
}

function declarationsIn({ form, value }: Document, registry: Registry): Declaration[] {
  const declare = (model: unknown, identifiers: unknown, place: Place): Declaration[] => {
    if (typeof model !== 'string' || !isObject(identifiers)) return []
    const keys = keysOf(model, identifiers, registry)
    const names = Object.values(identifiers).map((each) => JSON.stringify(each))
    return keys.length === 0 ? [] : [{ keys, place, what: `${model} ${names.join(' ')}` }]
  }
  if (form === 'submission') {
    const { app, provider, provider_model: model } = value
    const nameOf = (part: unknown, field: string) => (isObject(part) ? { [field]: part[field] } : undefined)
    return [
      ...declare(model, nameOf(provider, 'name'), ['provider']),
      ...declare('service_core.application', nameOf(app, 'slug'), ['app']),
    ]
  }
  return (entriesIn(value.entries) ?? []).flatMap(({ entry, place }) =>
    isObject(entry) && !isSkipped(entry) ? declare(entry.model, entry.identifiers, place) : [],
  )
}

/** Whether one condition is false already: such an entry declares nothing. */
const isSkipped = ({ conditions }: JsonObject): boolean =>
  Array.isArray(conditions) && conditions.some((each) => !isTag(each) && !isTrue(each))

/** One name belongs to one object of its target, whatever its kind: a provider to OAuth2 or to LDAP. */
function keysOf(name: string, identifiers: JsonObject, registry: Registry): string[] {
  const model = registry.byName(name)
  const isPlain = (field: string) => ['string', 'number'].includes(typeof identifiers[field])
  // The service may know more models than this program.
  const sets = model === undefined ? [Object.keys(identifiers).sort()] : [['pk'], ...model.identifiers]
  return sets
    .filter((set) => set.length > 0 && set.every(isPlain))
    .map((set) => {
      const values = set.map((field) => {
        const text = String(identifiers[field])
        return model?.fields.get(field)?.folded === true ? comparedName(text) : text.normalize('NFC').trim()
      })
      return JSON.stringify([model?.target ?? name, set, values])
    })
}
