import type { EngineReader } from '../db/engine-tx.ts'
import { KeyOf } from '../document/document.ts'
import type { ErrorCode } from '../error-codes.ts'
import type { FieldPath } from '../errors.ts'
import { nearest } from '../messages.ts'
import type { Reference, ReferenceTarget } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows } from '../permissions.ts'
import type { Step } from './compile.ts'
import { Named } from './named.ts'
import { type Match, NamedRows } from './named-rows.ts'
import { type Asked, readNamed, readSimilar, type Similar, trackedColumns } from './names-sql.ts'
import { pending } from './resolve.ts'
import { onlyOf } from './snapshot-sql.ts'

/**
 * References by name. One statement reads all rows that a document names, and none when it names none; then the entries
 * are gone through in their order, so that a name means what it will mean when its entry is applied.
 */

/** Whether any entry refers to a row by its name. */
export const hasNames = (steps: readonly Step[]): boolean =>
  steps.some((step) => fieldsOf(step).some(([, value]) => isNamed(value)))

const fieldsOf = ({ identifiers, attrs }: Step) => [...identifiers, ...attrs]

const isNamed = (value: unknown): boolean =>
  value instanceof Named || (Array.isArray(value) && value.some((item) => item instanceof Named))

/** A name that stands for no row, or for several. `text` is all that is known without looking for similar names. */
type Miss = {
  readonly step: number
  readonly path: FieldPath
  readonly code: ErrorCode
  readonly text: string
  readonly unknown?: { readonly name: string; readonly reference: Reference; readonly target: ReferenceTarget }
}

/**
 * Replaces names by keys, and by `KeyOf` for rows that earlier entries write. What cannot be replaced is an error of its
 * entry.
 *
 * @param actor to whom similar names are offered, as far as the actor may see them; null offers none
 */
export async function resolveNames(
  reader: EngineReader,
  registry: Registry,
  steps: readonly Step[],
  actor: Actor | null,
): Promise<readonly Step[]> {
  if (!hasNames(steps)) return steps
  const asked = askedBy(registry, steps)
  const found = await readNamed(reader, asked)
  const tables = new Map(asked.map((each) => [each.target.table, new NamedRows(each, found[each.target.table] ?? [])]))
  const ids = new Ids(steps)
  const misses: Miss[] = []
  const resolved: Step[] = []
  for (const [index, step] of steps.entries()) {
    const resolve = (fields: ReadonlyMap<string, unknown>) =>
      new Map(
        [...fields].map(([name, value]) => {
          const reference = step.model.fields.get(name)?.reference
          const rows = tables.get(registry.targets.get(reference?.target ?? '')?.table ?? '')
          if (!isNamed(value) || reference === undefined || rows === undefined) return [name, value]
          const path = [...step.path, name]
          const one = (item: unknown, at: FieldPath) => {
            if (!(item instanceof Named)) return item
            const match = rows.find(item.name, onlyOf(registry, reference))
            if (match.is === 'key') return match.key
            if (match.is === 'step') return new KeyOf(ids.of(match.step))
            misses.push({ step: index, path: at, ...missOf(registry, item.name, reference, rows.target, match) })
            return undefined
          }
          if (!Array.isArray(value)) {
            // A caller who may not write for others gets the same denial for a user who exists and for one who does not.
            return [name, one(value, path) ?? (name === step.model.owner ? pending : undefined)]
          }
          const keys = value.map((item, position) => one(item, [...path, position]))
          if (hasTwice(keys)) misses.push({ step: index, path, code: 'duplicate', text: 'Must not hold a key twice.' })
          return [name, keys]
        }),
      )
    resolved.push({ ...step, identifiers: resolve(step.identifiers), attrs: resolve(step.attrs) })
    tables.get(step.model.table)?.write(step, index)
  }
  const errors = await messagesOf(reader, registry, misses, actor)
  return resolved.map((step, index) => ({ ...step, id: ids.known(index), nameErrors: errors.get(index) ?? [] }))
}

/** What the document names, by table. */
function askedBy(registry: Registry, steps: readonly Step[]): readonly Asked[] {
  const tables = new Map<string, { target: ReferenceTarget; restricted: Set<string>; names: Set<string> }>()
  for (const step of steps)
    for (const [field, value] of fieldsOf(step)) {
      const reference = step.model.fields.get(field)?.reference
      const target = registry.targets.get(reference?.target ?? '')
      if (reference === undefined || target === undefined || !isNamed(value)) continue
      const of = tables.getOrInsertComputed(target.table, () => ({ target, restricted: new Set(), names: new Set() }))
      const column = onlyOf(registry, reference)?.column
      if (column !== undefined) of.restricted.add(column)
      for (const item of [value].flat()) if (item instanceof Named) of.names.add(item.name)
    }
  return [...tables.values()]
    .map(({ target, restricted, names }) => ({ target, names, columns: trackedColumns(target, restricted) }))
    .sort((a, b) => a.target.table.localeCompare(b.target.table))
}

/** The ids of entries. One without an id that a later entry names gets one. */
class Ids {
  readonly #steps: readonly Step[]
  readonly #taken: Set<string | undefined>
  readonly #given = new Map<number, string>()

  constructor(steps: readonly Step[]) {
    this.#steps = steps
    this.#taken = new Set(steps.map(({ id }) => id))
  }

  known(index: number): string | undefined {
    return this.#steps[index]?.id ?? this.#given.get(index)
  }

  of(index: number): string {
    return this.known(index) ?? this.#give(index)
  }

  #give(index: number): string {
    const step = this.#steps[index]
    const [[field = 'pk'] = []] = step?.model.identifiers ?? []
    const name = step?.attrs.get(field) ?? step?.identifiers.get(field) ?? step?.identifiers.values().next().value
    let id = `${step?.model.displayName} ${JSON.stringify(name)}`
    while (this.#taken.has(id)) id = `${id}'`
    this.#taken.add(id)
    this.#given.set(index, id)
    return id
  }
}

function hasTwice(items: readonly unknown[]): boolean {
  const keys = items.flatMap((item) => (item === undefined ? [] : [item instanceof KeyOf ? `!KeyOf ${item.id}` : item]))
  return new Set(keys).size < keys.length
}

function missOf(
  registry: Registry,
  name: string,
  reference: Reference,
  target: ReferenceTarget,
  match: Exclude<Match, { is: 'key' | 'step' }>,
): Pick<Miss, 'code' | 'text' | 'unknown'> {
  const noun = nounOf(target)
  const quotedName = JSON.stringify(name)
  const only = onlyOf(registry, reference)
  switch (match.is) {
    case 'unfit':
      return {
        code: 'wrong_reference',
        text: `The ${noun} ${quotedName} has the ${only?.column} ${match.found}: this field takes ${only?.values.join(', ')}.`,
      }
    case 'ambiguous': {
      const listed = match.rows.slice(0, maxListed).join('; ')
      return {
        code: 'ambiguous',
        text: `More than one ${noun} is called ${quotedName}: ${listed}. Send the key of one.`,
      }
    }
    case 'gone':
      return {
        code: 'unknown_name',
        text: `No ${noun} is called ${quotedName} at this place: entry ${match.step} of the document ${match.verb} it.`,
      }
    case 'unknown':
      return { code: 'unknown_name', text: `No ${noun} is called ${quotedName}.`, unknown: { name, reference, target } }
    default:
      return match satisfies never
  }
}

/** Of rows with the same name. */
const maxListed = 5

/** What rows of a target are called in messages. */
const nounOf = ({ models: [model, ...others] }: ReferenceTarget): string =>
  (others.length === 0 ? model?.displayName : model?.target) ?? 'row'

/** Similar names are looked for once for each name, and for a few names only. */
const maxSuggestions = 10

type NameError = { path: FieldPath; code: ErrorCode; message: string }

/** The errors by entry. Those of unknown names say which one was probably meant. */
async function messagesOf(
  reader: EngineReader,
  registry: Registry,
  misses: readonly Miss[],
  actor: Actor | null,
): Promise<ReadonlyMap<number, NameError[]>> {
  const known = new Map<string, { name: string; target: ReferenceTarget; only: ReturnType<typeof onlyOf> }>()
  for (const { unknown } of misses) {
    if (unknown === undefined || unknown.name.length > maxLength || known.size >= maxSuggestions) continue
    const { name, reference, target } = unknown
    if (offers(target, actor)) known.set(askedAs(unknown), { name, target, only: onlyOf(registry, reference) })
  }
  const similar = await readSimilar(reader, [...known.values()])
  const found = new Map([...known.keys()].map((asked, index) => [asked, similar[index] ?? []]))
  const errors = new Map<number, NameError[]>()
  for (const { step, path, code, text, unknown } of misses) {
    const hint =
      unknown === undefined
        ? ''
        : hintOf(unknown.name, onlyOf(registry, unknown.reference), found.get(askedAs(unknown)))
    errors.getOrInsertComputed(step, () => []).push({ path, code, message: `${text}${hint}` })
  }
  return errors
}

/** Longer names are compared with no other. */
const maxLength = 100

const askedAs = ({ name, reference }: NonNullable<Miss['unknown']>) => JSON.stringify([reference, name])

/** Names of what is only configuration are offered to all who may write what refers to it; others, to those who may view them. */
const offers = ({ models }: ReferenceTarget, actor: Actor | null): boolean =>
  models.every(
    ({ offersNames, resource }) => offersNames === true || (actor !== null && allows(actor, `view_${resource}`)),
  )

/** @returns ` Did you mean "default-authorization" (designation authorization)?` */
function hintOf(name: string, only: ReturnType<typeof onlyOf>, similar: readonly Similar[] = []): string {
  const near = nearest(
    name,
    similar.map((each) => each.name),
  )
  const [first] = similar
  const meant =
    similar.find((each) => each.name === near) ?? (first && first.similarity >= minSimilarity ? first : undefined)
  if (meant !== undefined) {
    const fits = only === undefined || meant.fits === null ? '' : ` (${only.column} ${meant.fits})`
    return ` Did you mean ${JSON.stringify(meant.name)}${fits}?`
  }
  return only === undefined ? '' : ` This field takes one with the ${only.column} ${only.values.join(', ')}.`
}

/** By PostgreSQL's pg_trgm: about half of all runs of three letters are the same. */
const minSimilarity = 0.5
