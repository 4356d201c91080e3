import type { EngineReader } from '../db/engine-tx.ts'
import { KeyOf } from '../document/document.ts'
import { ErrorList, type FieldPath } from '../errors.ts'
import type { Model, Only, Reference } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows, type Permission } from '../permissions.ts'
import type { Step } from './compile.ts'
import { compute } from './compute.ts'
import { type Diff, diff, noChange } from './diff.ts'
import type { Engine } from './engine.ts'
import { modelOf } from './model-of.ts'
import { misfitting } from './referrers.ts'
import { type EntryKey, type Keys, resolveTags } from './resolve.ts'
import type { Snapshot } from './snapshot.ts'
import { onlyOf, referenceName, type Seen } from './snapshot-sql.ts'
import { columnOf, labelColumn, type Row } from './statements.ts'
import { keysOf, storedKeys } from './storage.ts'

/** What an entry would do to its row. */
export type Effect = Diff & {
  readonly step: Step
  readonly row: Row | undefined
  /** The fields that the entry names, with tags replaced by keys. */
  readonly sent: ReadonlyMap<string, unknown>
  /** The row belongs to another model: later entries may not refer to it by this entry's id. */
  readonly isForeign: boolean
  /** The row's name in messages. */
  readonly label: string
  /** The key of a new row, when it is known before the insert. */
  readonly pk: string | number | undefined
  readonly errors: ErrorList
  /** Rows that are there, and that the entry's row claims and did not claim before. Nothing else changes in them. */
  readonly takes: readonly Effect[]
}

/**
 * Finds out what one entry would do. Only reads. The API calls it before it enqueues, the worker before it writes, so
 * that both report the same errors in the same words (docs/adr/0005-one-statement-per-snapshot.md).
 */
export async function inspect(
  reader: EngineReader,
  engine: Engine,
  snapshot: Snapshot,
  step: Step,
  keys: Keys,
): Promise<Effect> {
  const errors = new ErrorList()
  const { model, path } = step
  const identifiers = await resolveTags(snapshot.unwritten, engine.registry, step.identifiers, { keys, path, errors })
  const attrs = await resolveTags(snapshot.unwritten, engine.registry, step.attrs, { keys, path, errors })
  const sent = new Map([...identifiers, ...attrs].filter(([name]) => name !== 'pk'))
  const seen = await snapshot.entry(step, identifiers, sent, keys)
  const [row] = seen.rows
  const label = labelOf(model, row, sent, identifiers)
  const isAmbiguous = seen.rows.length > 1
  if (isAmbiguous) errors.add(path, 'ambiguous', ambiguous(model, seen.rows))
  const isForeign = row !== undefined && refuseForeign(engine.registry, step, row, label, errors)
  checkNames(step, row, errors)
  checkReferences(engine.registry, step, seen, sent, keys, errors)
  if (!isAmbiguous) checkUnique(step, seen, row, errors)
  checkLimit(step, seen, errors)
  // A foreign row: the entry needs another name, and is checked as for a new row.
  const own = isForeign ? undefined : row
  const takes = takenBy(engine.registry, step, own, seen, sent)
  const pk = keyOfNew(step, identifiers, seen, errors)
  const base = { step, row, sent, isForeign, label, errors, takes, pk }
  if (isAmbiguous) return { ...base, ...noChange }
  const rowDiff = await diff(step, own, sent, engine.keyring, errors)
  for (const name of rowDiff.action === 'update' && own !== undefined ? rowDiff.changed : []) {
    const misfit = await misfitting(reader, engine.registry, { model, pk: own?.pk ?? '' }, name, rowDiff.values[name])
    if (misfit !== null) errors.add([...path, name], 'in_use', misfit)
  }
  return { ...base, ...(await compute(reader, step, own, rowDiff, engine, errors)) }
}

/** Each identifier may find another row. */
function ambiguous(model: Model, rows: readonly Row[]): string {
  const names = rows.map((row) => `${JSON.stringify(row[labelColumn(model)])} (pk ${row.pk})`)
  return `The identifiers match more than one ${model.displayName}: ${names.join(' and ')}.`
}

/** The owner of a row that is there is fixed, which the model says: it says the same of a user who exists. */
function checkNames({ model, path, nameErrors = [] }: Step, row: Row | undefined, errors: ErrorList): void {
  for (const { path: at, code, message } of nameErrors)
    if (row === undefined || at[path.length] !== model.owner) errors.add(at, code, message)
}

/** Rows that this document creates are not among them: the snapshot has not seen them. */
function takenBy(
  registry: Registry,
  { model, path }: Step,
  row: Row | undefined,
  seen: Seen,
  sent: ReadonlyMap<string, unknown>,
): Effect[] {
  return (model.claims ?? []).flatMap((name) => {
    const field = model.fields.get(name)
    const table = registry.targets.get(field?.reference?.target ?? '')?.table ?? ''
    const had = new Set(field === undefined || row === undefined ? [] : storedKeys(field, row))
    const sentKeys = new Set(keysOf(sent.get(name)))
    return (seen.claimed[name] ?? []).flatMap((claimed): Effect[] => {
      const of = modelOf(registry, table, claimed)
      if (of === undefined || had.has(claimed.pk) || !sentKeys.has(claimed.pk)) return []
      const identifiers = new Map([['pk', claimed.pk]])
      const step: Step = { id: undefined, model: of, state: 'present', identifiers, attrs: new Map(), path }
      const label = String(claimed[labelColumn(of)])
      const none = { sent: new Map(), isForeign: false, errors: new ErrorList(), takes: [], pk: undefined }
      return [{ ...noChange, ...none, action: 'unchanged', step, row: claimed, label }]
    })
  })
}

/** A document may choose a UUID key. Integer keys come from the table's sequence. */
function keyOfNew(
  { model, path, state }: Step,
  identifiers: ReadonlyMap<string, unknown>,
  { rows, newKey }: Seen,
  errors: ErrorList,
): string | number | undefined {
  const pk = identifiers.get('pk')
  if (model.key === 'uuid') return typeof pk === 'string' ? pk : undefined
  if (typeof pk === 'number' && rows.length === 0 && state !== 'absent')
    errors.add([...path, 'pk'], 'no_such_row', `There is no ${model.displayName} with the key ${pk}.`)
  return newKey ?? undefined
}

/** Provider kinds share a table and its unique names: an entry may not write a row of another kind. */
function refuseForeign(
  registry: Registry,
  { model, path, identifiers }: Step,
  row: Row,
  label: string,
  errors: ErrorList,
): boolean {
  const foreign = Object.entries(model.discriminator).some(([column, value]) => row[column] !== value)
  if (!foreign) return false
  const owner = modelOf(registry, model.table, row)
  const [field = 'pk'] = identifiers.keys()
  errors.add(
    [...path, field],
    'taken',
    `${JSON.stringify(label)} is the name of a ${owner?.displayName ?? 'row of another kind'}: choose another.`,
  )
  return true
}

function checkReferences(
  registry: Registry,
  { model, path, attrs, identifiers }: Step,
  seen: Seen,
  sent: ReadonlyMap<string, unknown>,
  keys: Keys,
  errors: ErrorList,
): void {
  for (const [name, value] of sent) {
    const reference = model.fields.get(name)?.reference
    if (reference === undefined) continue
    // A map, because a list may have ten thousand keys that do not exist.
    const unfit = new Map<unknown, string | null>(
      seen.unfit[referenceName(reference)]?.map(({ key, found }) => [key, found]),
    )
    const only = onlyOf(registry, reference)
    const report = (what: string, found: string | null, at: FieldPath) =>
      errors.add(
        [...path, name, ...at],
        found === null ? 'no_such_row' : 'wrong_reference',
        misfit(reference, only, what, found),
      )
    const tags = attrs.get(name) ?? identifiers.get(name)
    const items: unknown[] = Array.isArray(value) ? value : [value]
    for (const [index, key] of items.entries()) {
      const at = Array.isArray(value) ? [index] : []
      const tag: unknown = Array.isArray(tags) ? tags[index] : tags
      const found = tag instanceof KeyOf && only ? keys.get(tag.id)?.columnValue(only.column) : undefined
      if (typeof found === 'string' && only?.values.includes(found) === false)
        report(`!KeyOf ${(tag as KeyOf).id}`, found, at)
      else if (unfit.has(key)) report(String(key), unfit.get(key) ?? null, at)
    }
  }
}

/** @param found what the row has instead of what fits; null without a row */
function misfit({ target }: Reference, only: Only | undefined, what: string, found: string | null): string {
  if (found === null || only === undefined) return `There is no ${target} with the key ${what}.`
  const noun = target.split(' ').at(-1)
  return `The ${noun} ${what} has the ${only.column} ${found}: this field takes ${only.values.join(', ')}.`
}

/** The entry as later entries refer to it. @param key `pending` while the key of a new row is not known */
export const entryKey = (
  { step: { model }, values, row, isForeign }: Effect,
  key: EntryKey['key'],
  isNew: boolean,
): EntryKey => ({
  key,
  isNew,
  columnValue: (column) => model.discriminator[column] ?? values[column] ?? (isForeign ? undefined : row?.[column]),
})

function checkUnique({ model, path, state }: Step, seen: Seen, row: Row | undefined, errors: ErrorList): void {
  if (state === 'absent') return
  for (const [name, holders] of Object.entries(seen.taken)) {
    for (const { pk, label, value } of holders) {
      if (pk === row?.pk) continue
      const reference = model.fields.get(name)?.reference
      const held =
        reference === undefined ? `${JSON.stringify(value)} is taken by` : `The ${reference.target} ${value} belongs to`
      // A row with an owner may belong to another user: its name is reported only to a caller who sent it.
      const isNamed = model.owner === undefined || label === value
      const holder = isNamed ? `${model.displayName} ${JSON.stringify(label)}` : `another ${model.displayName}`
      errors.add([...path, name], 'taken', `${held} ${holder}.`)
    }
  }
}

function checkLimit({ model: { limit, fields, displayName }, path, state }: Step, seen: Seen, errors: ErrorList): void {
  if (limit === undefined || state === 'absent' || seen.rows.length > 0 || seen.count < limit.rows) return
  const what = `This ${fields.get(limit.per)?.reference?.target} has ${limit.rows} ${displayName}s`
  errors.add([...path, limit.per], 'limit_reached', `${what}, the most that one may have: delete one first.`)
}

function labelOf(
  model: Model,
  row: Row | undefined,
  sent: ReadonlyMap<string, unknown>,
  identifiers: ReadonlyMap<string, unknown>,
): string {
  if (row !== undefined) return String(row[labelColumn(model)])
  const [[first = 'pk'] = []] = model.identifiers
  return String(sent.get(first) ?? identifiers.get('pk') ?? '')
}

/** @returns the permission that the effect's action needs */
export function permissionFor({ action, step }: Effect): Permission {
  switch (action) {
    case 'create':
      return `add_${step.model.resource}`
    case 'update':
    case 'unchanged':
      return `change_${step.model.resource}`
    case 'delete':
      return `delete_${step.model.resource}`
    case 'leave':
      // Its log says whether the row is there: that takes the permission too.
      return `${step.state === 'absent' ? 'delete' : step.state === 'present' ? 'change' : 'add'}_${step.model.resource}`
    default:
      return action satisfies never
  }
}

/** The action in messages. An unchanged row is an update with nothing to write. */
export const verbOf = ({ action }: Effect): string => (action === 'unchanged' ? 'update' : action)

/**
 * A user needs no permission for rows that the user owns. A caller who impersonates the owner needs it: such a row
 * outlasts the impersonation.
 *
 * @returns the permission that the actor lacks for this effect, if any
 */
export function lacking(actor: Actor, effect: Effect): Permission | null {
  const needed = permissionFor(effect)
  const { impersonator } = actor
  const isImpersonated = effect.step.model.owner !== undefined && impersonator !== undefined
  if (isImpersonated && !allows(impersonator, needed)) return needed
  return allows(actor, needed) || isOwn(actor, effect) ? null : needed
}

/**
 * Whether the actor owns the row: an existing one as it is, a new one as it will be. A new row whose owner has errors
 * counts as owned: it is refused for those errors.
 */
export function isOwn({ pk }: Actor, { step: { model }, row, values }: Effect): boolean {
  if (model.owner === undefined || pk === null) return false
  if (row !== undefined) return row[columnOf(model, model.owner)] === pk
  return values[model.owner] === pk || values[model.owner] === undefined
}
