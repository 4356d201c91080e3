import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { unprepared } from '../db/raw.ts'
import type { ErrorList } from '../errors.ts'
import type { Field, Model, Reference, Values } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Diff } from './diff.ts'
import { sentAs } from './key-tags.ts'
import { readRows } from './lookup-sql.ts'
import type { Resolver } from './resolve.ts'
import { onlyOf, type Seen } from './snapshot-sql.ts'
import { columnOf, keysIn, labelColumn, quoted, type Row } from './statements.ts'
import { nameSent, type Step } from './step.ts'
import { storedKeys, toMaskedValues } from './storage.ts'
import { storageOf, type World } from './world.ts'

/**
 * Rows that refer to a row. A change may not make these references wrong: a flow in use keeps its designation, and a pair that
 * signs keeps its private key. A row that a reference holds may not be deleted.
 */

type Context = {
  readonly reader: EngineReader
  readonly registry: Registry
  readonly resolver: Resolver
  readonly world: World
}
type Referring = { readonly model: Model; readonly field: Field & { readonly reference: Reference } }
type Referrer = Referring & { readonly name: string | null; readonly values: Values }

/** The most rows of one field that are read. */
const mostRead = 1_000
/** The most rows of one field that are named. */
const mostNamed = 20

const found = z.object({ index: z.int(), row: z.looseObject({ pk: z.union([z.string(), z.int()]) }) })

/** The rows that refer to this one by these fields, after the entries before. A row that the caller may not view has no name. */
async function referrersOf(
  { reader, registry, resolver, world }: Context,
  { model, pk }: { readonly model: Model; readonly pk: string | number },
  concerns: (reference: Reference, field: Field) => boolean,
): Promise<Referrer[]> {
  const all = known.getOrInsertComputed(registry, referringFields).get(model.table) ?? []
  const referring = all.filter(({ field }) => concerns(field.reference, field))
  if (referring.length === 0) return []
  const text = referring.map((each, index) => `(${referrerText(each, index, model)})`).join(' UNION ALL ')
  const rows = await reader.query(found, unprepared({ text, values: [pk] }))
  const referrers: Referrer[] = []
  const add = async (by: Referring, row: Row) => {
    referrers.push({ ...by, name: await resolver.nameOf(by.model, row), values: toMaskedValues(by.model, row) })
  }
  for (const { index, row } of rows) {
    const by = referring[index]
    if (by !== undefined && !world.has(by.model.table, row.pk)) await add(by, row)
  }
  for (const by of referring)
    for (const row of world.with(by.model.table, storageOf(by.field), pk)) {
      const isOfModel = Object.entries(by.model.discriminator).every(([column, value]) => row[column] === value)
      if (isOfModel && storedKeys(by.field, row).includes(pk)) await add(by, row)
    }
  return referrers
}

/** Adds an error where a row does not fit any more, once it is changed or deleted. @param row the row before */
export async function checkReferrers(
  context: Context,
  step: Step,
  row: Row,
  { action, changed, values, before }: Diff,
  errors: ErrorList,
): Promise<void> {
  const { model, path } = step
  const { registry, resolver } = context
  const { pk } = row
  if (action === 'delete') {
    const holding = await referrersOf(context, { model, pk }, (reference, { storage }) => {
      return reference.holds === true || storage.in === 'settings'
    })
    const name = (await resolver.nameOf(model, row)) ?? nameSent(step)
    let left = mostNamed
    for (const [field, by] of Map.groupBy(holding, (each) => each.field.name)) {
      const is = by.some((each) => each.field.reference.many) ? 'is one of the' : 'is the'
      const named = by.flatMap((each) => each.name ?? []).slice(0, left)
      left -= named.length
      errors.add(path, 'in_use', `${name} ${is} ${field} of ${listOf(named, by)}: change or delete that first.`)
    }
  }
  if (action !== 'update') return
  for (const name of changed) {
    const isUnfit = (reference: Reference) => {
      const only = onlyOf(registry, reference)
      return only?.column === name && !only.atFirst && !only.values.some((each) => each === values[name])
    }
    const [first] = await referrersOf(context, { model, pk }, isUnfit)
    if (first === undefined) continue
    const takes = onlyOf(registry, first.field.reference)?.values.join(', ')
    errors.add([...path, name], 'in_use', `${referringText(first)}, which takes ${takes}.`)
  }
  const needed = await referrersOf(
    context,
    { model, pk },
    ({ needs }) => needs?.fields.some((name) => changed.includes(name)) === true,
  )
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
export async function checkNeeds(
  { reader, registry, resolver }: Context,
  { model, path, attrs }: Step,
  { claimed }: Seen,
  { action, changed, values }: Diff,
  errors: ErrorList,
): Promise<void> {
  if (action !== 'create' && action !== 'update') return
  for (const { name, reference } of model.fields.values()) {
    const { needs } = reference ?? {}
    const key = values[name]
    const [target] = registry.targets.get(reference?.target ?? '')?.models ?? []
    if (reference === undefined || needs === undefined || target === undefined) continue
    const concerned = [name, ...needs.beside]
    if (key === null || concerned.some((each) => values[each] === undefined)) continue
    if (!concerned.some((each) => changed.includes(each))) continue
    const tag = attrs.get(name)
    const entry = resolver.entryOf(key, reference)
    const seen = claimed[name]?.find(({ pk }) => pk === key)
    const row = entry === undefined ? (seen ?? (await readOne(reader, target, key, needs.fields))) : undefined
    const sent = concerned.find((each) => attrs.has(each)) ?? name
    const stored = row === undefined ? {} : toMaskedValues(target, row)
    const fields = needs.fields.map((field) => [field, entry === undefined ? stored[field] : entry.value(field)])
    const why = needs.misfit(Object.fromEntries(fields), values)
    const what = tag === undefined && row !== undefined ? JSON.stringify(row[labelColumn(target)]) : sentAs(tag, key)
    if (why !== undefined)
      errors.add([...path, sent], 'invalid_combination', `The ${target.displayName} ${what} ${why}`)
  }
}

/** Reads a row that the snapshot did not read: the entry does not name it. */
async function readOne(reader: EngineReader, model: Model, key: unknown, fields: readonly string[]) {
  const columns = ['pk', labelColumn(model), ...fields.map((field) => columnOf(model, field))]
  const by = [{ columns: ['pk'], values: [String(key)] }]
  return (await readRows(reader, [{ table: model.table, model, columns, by }])).get(model.table)?.[0]
}

/** The references to the rows of each table. */
function referringFields({ models, targets }: Registry): ReadonlyMap<string, readonly Referring[]> {
  const referring = models.flatMap((model) =>
    [...model.fields.values()].flatMap((field) => {
      const { reference } = field
      return reference === undefined ? [] : [{ model, field: { ...field, reference } }]
    }),
  )
  return Map.groupBy(referring, ({ field }) => targets.get(field.reference.target)?.table ?? '')
}

const known = new WeakMap<Registry, ReadonlyMap<string, readonly Referring[]>>()

function referrerText({ model, field: { name } }: Referring, index: number, { key, target }: Model): string {
  const { value, from } = keysIn(model, name, target)
  const own = Object.entries(model.discriminator).map(([column, value]) => ` AND t.${quoted(column)} = '${value}'`)
  return `SELECT ${index} AS index, to_jsonb(t) - 'secrets' AS row FROM ${from}
    WHERE ${value} = $1::${key}${own.join('')} ORDER BY t.pk LIMIT ${mostRead + 1}`
}
