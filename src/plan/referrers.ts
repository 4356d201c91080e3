import type { Field, Model, Reference, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Diff, Entry } from './diff.ts'
import { byKey, type Look } from './look.ts'
import { sentAs } from './named.ts'
import { onlyOf } from './references.ts'
import { type Key, labelColumn, linksOf, onceFor, type Row } from './statements.ts'
import { nameSent, type Step } from './step.ts'
import { toMaskedValues } from './storage.ts'

/**
 * Rows that refer to a row. A change may not make these references wrong: a flow in use keeps its designation, and a pair that
 * signs keeps its private key. A row that a reference holds may not be deleted.
 */

type Referring = { readonly model: Model; readonly field: Field & { readonly reference: Reference } }
type Referrer = Referring & { readonly name: string | null; readonly values: Values }

/** The most rows of one field that are read. */
const mostRead = 1_000
/** The most rows of one field that are named. */
const mostNamed = 20

type Concerns = (reference: Reference, referring: Referring) => boolean

/** The questions for the rows that refer to a row by these fields. */
const referrerLooks = (registry: Registry, { table }: Model, pk: Key, concerns: Concerns): (Look & Referring)[] =>
  (referringFields(registry).get(table) ?? []).flatMap((referring) =>
    concerns(referring.field.reference, referring)
      ? [{ ...referring, columns: [], values: [String(pk)], most: mostRead + 1 }]
      : [],
  )

/** The same, for the rows that hold the row of a step. */
export const holderLooks = (registry: Registry, { model, heldBy }: Pick<Step, 'model' | 'heldBy'>, pk: Key) =>
  referrerLooks(registry, model, pk, ({ holds }, referring) => {
    if (holds === true || referring.field.storage.in === 'settings') return true
    return heldBy !== undefined && (!goesWith(registry, referring) || isGoing(referring))
  })

/** Those rows, after the entries before. A row that the caller may not view has no name. */
const found = (
  { resolver }: Entry,
  looks: readonly (Look & Referring)[],
  counts: (look: Referring, row: Row) => boolean = () => true,
): Referrer[] =>
  looks.flatMap((look) => {
    const { model, field } = look
    const all = resolver.world.find(look).sort(byPk)
    const rows = all.filter((row) => counts(look, row))
    return rows.map((row) => ({ model, field, name: resolver.nameOf(model, row), values: toMaskedValues(model, row) }))
  })

const byPk = (one: Row, other: Row): number => (one.pk < other.pk ? -1 : 1)

/** Adds an error where a row does not fit any more, once it is changed or deleted. @param entry with the row before */
export function checkReferrers(entry: Entry, { action, changed, values, before }: Diff): void {
  const { resolver, step, row, errors } = entry
  const { world } = resolver
  if (row === undefined) return
  const { model, path } = step
  const { pk } = row
  if (action === 'delete') {
    const { registry } = world
    // What goes with the row goes, unless an entry names it, or its stack lets it stay.
    const counts = (look: Referring, { pk: key }: Row) =>
      !goesWith(registry, look) ||
      world.has(look.model.table, key) ||
      step.heldBy?.has(`${look.model.name} ${key}`) === true
    const holding = found(entry, holderLooks(registry, step, pk), counts)
    const remedy = step.heldBy !== undefined ? ', or let it stay without its stack (gatewright stack forget)' : ''
    const name = resolver.nameOf(model, row) ?? nameSent(step)
    let left = mostNamed
    for (const [field, by] of Map.groupBy(holding, (each) => each.field.name)) {
      const is = by.some((each) => each.field.reference.many) ? 'is one of the' : 'is the'
      const named = by.flatMap((each) => each.name ?? []).slice(0, left)
      left -= named.length
      const uses = `${name} ${is} ${field} of ${listOf(named, by)}`
      errors.add(path, 'in_use', `${uses}: change or delete that first${remedy}.`)
    }
  }
  if (action !== 'update') return
  for (const name of changed) {
    const isUnfit = (reference: Reference) => {
      const only = onlyOf(world.registry, reference)
      return only?.column === name && !only.atFirst && !only.values.some((each) => each === values[name])
    }
    const [first] = found(entry, referrerLooks(world.registry, model, pk, isUnfit))
    if (first === undefined) continue
    const takes = onlyOf(world.registry, first.field.reference)?.values.join(', ')
    errors.add([...path, name], 'in_use', `${referringText(first)}, which takes ${takes}.`)
  }
  const concerns: Concerns = ({ needs }) => needs?.fields.some((name) => changed.includes(name)) === true
  const needed = found(entry, referrerLooks(world.registry, model, pk, concerns))
  for (const referrer of needed) {
    const { needs } = referrer.field.reference
    const why = needs?.misfit(values, referrer.values)
    // A row that did not fit before gets no worse.
    if (why === undefined || (before && needs?.misfit(before, referrer.values) !== undefined)) continue
    const at = changed.find((name) => needs?.fields.includes(name)) ?? ''
    errors.add([...path, at], 'in_use', `${referringText(referrer)}. So changed, it ${why}`)
    return
  }
}

/** What belongs to a row goes with it: tokens, devices, consents. Members of a group are on both sides of their link. */
const goesWith = ({ models }: Registry, { model, field: { name, storage } }: Referring): boolean =>
  name === model.owner ||
  model.identifiers.every((way) => way.includes(name)) ||
  (storage.in === 'link' &&
    models.filter((each) => linksOf(each).some(([, { table }]) => table === storage.table)).length > 1)

/** The fields by which rows go with a deleted row of a table: the database deletes them, too. */
export const goingFields = (registry: Registry, table: string): readonly Referring[] =>
  (referringFields(registry).get(table) ?? []).filter(isGoing)

const isGoing = ({ field: { required, storage, reference } }: Referring): boolean =>
  required && storage.in === 'column' && reference.holds !== true

const referringText = ({ name, model, field }: Referrer) =>
  `${name ?? `a ${model.displayName}`} refers to it in ${field.name}`

function listOf(named: readonly string[], by: readonly Referrer[]): string {
  const hidden = by.filter(({ name }) => name === null).length
  const more = by.length - hidden - named.length
  const others = [
    ...(more > 0 ? [`${by.length > mostRead ? 'many' : more} more`] : []),
    ...(hidden > 0 ? [`${hidden} that you may not view`] : []),
  ]
  return [named.join(', '), ...others].filter((each) => each !== '').join(' and ')
}

/** Adds an error for each row without the value that a reference of the entry needs. */
export function checkNeeds(
  { resolver: { world }, step: { model, path, attrs }, errors }: Entry,
  { action, changed, values }: Diff,
): void {
  if (action !== 'create' && action !== 'update') return
  for (const { name, reference } of model.fields.values()) {
    const { needs } = reference ?? {}
    const key = values[name]
    const [target] = world.registry.targets.get(reference?.target ?? '')?.models ?? []
    if (reference === undefined || needs === undefined || target === undefined) continue
    if (typeof key !== 'string' && typeof key !== 'number') continue
    const concerned = [name, ...needs.beside]
    if (concerned.some((each) => values[each] === undefined)) continue
    if (!concerned.some((each) => changed.includes(each))) continue
    const tag = attrs.get(name)
    const row = world.has(target.table, key) ? undefined : world.find(byKey(target, key))[0]
    const sent = concerned.find((each) => attrs.has(each)) ?? name
    const why = needs.misfit(world.values(target, key), values)
    const what = tag === undefined && row !== undefined ? JSON.stringify(row[labelColumn(target)]) : sentAs(tag, key)
    if (why !== undefined)
      errors.add([...path, sent], 'invalid_combination', `The ${target.displayName} ${what} ${why}`)
  }
}

/** The references to the rows of each table. */
const referringFields = onceFor(({ models, targets }: Registry): ReadonlyMap<string, readonly Referring[]> => {
  const referring = models.flatMap((model) =>
    [...model.fields.values()].flatMap((field) => {
      const { reference } = field
      return reference === undefined ? [] : [{ model, field: { ...field, reference } }]
    }),
  )
  return Map.groupBy(referring, ({ field }) => targets.get(field.reference.target)?.table ?? '')
})
