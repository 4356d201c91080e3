import type { EngineReader } from '../db/engine-tx.ts'
import { KeyOf } from '../document/document.ts'
import { ErrorList, type FieldPath } from '../errors.ts'
import type { Model, Only, Reference } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { writtenApart } from '../names.ts'
import type { Step } from './compile.ts'
import { compute } from './compute.ts'
import { diff, noChange } from './diff.ts'
import { withResults } from './edited-lists.ts'
import type { Effect } from './effect.ts'
import type { Engine } from './engine.ts'
import { sentAs } from './key-tags.ts'
import { placesOf } from './list-edit.ts'
import { modelOf } from './model-of.ts'
import { Named } from './named.ts'
import { checkNamesakes } from './namesakes.ts'
import { checkNeeds, checkReferrers } from './referrers.ts'
import type { Resolved, Resolver } from './resolve.ts'
import type { Snapshot } from './snapshot.ts'
import { onlyOf, referenceName, type Seen } from './snapshot-sql.ts'
import { labelColumn, type Row } from './statements.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

/**
 * Computes the effect of one entry, and only reads. The API calls it before it enqueues, the worker before it writes, so that
 * both report the same errors in the same words (docs/adr/0005-one-statement-per-snapshot.md).
 *
 * @param isReviewed true for a plan, and for the apply of a reviewed one: a row that the caller may not view is not compared
 */
export async function inspect(
  reader: EngineReader,
  engine: Engine,
  snapshot: Snapshot,
  asked: Step,
  resolver: Resolver,
  world: World,
  isReviewed: boolean,
): Promise<Effect> {
  const errors = new ErrorList()
  const { model, path } = asked
  const resolved = await resolver.entry(asked)
  const { identifiers } = resolved
  const seen = await snapshot.entry(asked, resolved)
  const [row] = seen.rows
  const isAmbiguous = seen.rows.length > 1
  if (isAmbiguous) errors.add(path, 'ambiguous', await ambiguous(model, seen.rows, resolver))
  const isForeign = row !== undefined && refuseForeign(engine.registry, asked, identifiers, row, errors)
  addErrors(asked, row, resolved, errors)
  // The entry needs another name than a foreign row, and is checked like one for a new row.
  const own = isForeign ? undefined : row
  const { step, sent } = withResults(engine.registry, asked, own, resolved.values, errors)
  checkReferences(engine.registry, asked, seen, resolved.values, resolver, errors)
  if (!isAmbiguous) await checkUnique(engine.registry, step, seen, row, sent, resolver, errors)
  checkLimit(step, seen, errors)
  const label = labelOf(asked, own, sent, identifiers.get('pk'))
  const takes = await takenBy(engine.registry, step, own, seen, sent, resolver)
  const isHidden = row !== undefined && !(await resolver.views(model, row))
  const pk = keyOfNew(step, identifiers, seen, errors)
  const base = { step, row, sent, isForeign, label, errors, takes, pk, isHidden }
  if (isAmbiguous) return { ...base, ...noChange }
  const comparison = !isHidden ? 'open' : isReviewed ? 'blind' : 'hidden'
  // The rules of a row say nothing where an earlier entry had errors.
  const isBroken = own !== undefined && world.entryOf(model.table, own.pk)?.isBroken === true
  const ofRules = isBroken ? new ErrorList() : errors
  const rowDiff = await diff(step, own, sent, engine.keyring, ofRules, comparison)
  const context = { reader, registry: engine.registry, resolver, world }
  if (own !== undefined) await checkReferrers(context, step, own, rowDiff, ofRules)
  await checkNeeds(context, step, seen, rowDiff, ofRules)
  await checkNamesakes(context, step, own, rowDiff, errors)
  return { ...base, ...(await compute(reader, step, own, rowDiff, engine, ofRules)) }
}

/** The message for identifiers that find several rows. */
async function ambiguous(model: Model, rows: readonly Row[], resolver: Resolver): Promise<string> {
  const names: string[] = []
  for (const row of rows)
    if (await resolver.views(model, row)) names.push(`${JSON.stringify(row[labelColumn(model)])} (pk ${row.pk})`)
  return `The identifiers match more than one ${model.displayName}${names.length === 0 ? '' : ': '}${names.join(' and ')}.`
}

/** Adds errors of the entry. The model reports that the owner of an existing row is fixed, also for a user who does not exist. */
function addErrors(
  { model, path, conditionErrors = [] }: Step,
  row: Row | undefined,
  resolved: Resolved,
  errors: ErrorList,
): void {
  for (const { path: at, code, message } of [...conditionErrors, ...resolved.errors])
    if (row === undefined || at[path.length] !== model.owner) errors.add(at, code, message)
}

/** Rows that have a unique value already. Those that this document creates are not among them: the snapshot has not read them. */
async function takenBy(
  registry: Registry,
  { model, path, owner }: Step,
  row: Row | undefined,
  seen: Seen,
  sent: ReadonlyMap<string, unknown>,
  resolver: Resolver,
): Promise<Effect[]> {
  const fields = (model.claims ?? []).flatMap((name) => model.fields.get(name) ?? [])
  const had = new Set(row === undefined ? [] : fields.flatMap((field) => storedKeys(field, row)))
  const taken: Effect[] = []
  for (const { name, reference } of fields) {
    const table = registry.targets.get(reference?.target ?? '')?.table ?? ''
    const sentKeys = new Set(keysOf(sent.get(name)))
    for (const claimed of seen.claimed[name] ?? []) {
      const of = modelOf(registry, table, claimed)
      if (of === undefined || had.has(claimed.pk) || !sentKeys.has(claimed.pk)) continue
      const identifiers = new Map([['pk', claimed.pk]])
      const own = owner === undefined ? {} : { owner }
      const step: Step = { id: undefined, model: of, state: 'present', identifiers, attrs: new Map(), path, ...own }
      const isHidden = !(await resolver.views(of, claimed))
      const none = { sent: new Map(), isForeign: false, errors: new ErrorList(), takes: [], pk: undefined }
      const label = String(claimed[labelColumn(of)])
      taken.push({ ...noChange, ...none, action: 'unchanged', step, row: claimed, label, isHidden })
    }
  }
  return taken
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
  { model, path }: Step,
  identifiers: ReadonlyMap<string, unknown>,
  row: Row,
  errors: ErrorList,
): boolean {
  const foreign = Object.entries(model.discriminator).some(([column, value]) => row[column] !== value)
  if (!foreign) return false
  const owner = modelOf(registry, model.table, row)
  // Only the sent value is quoted: a key must not reveal the name of a row of another kind.
  const [[field, value] = ['pk', row.pk]] = identifiers
  errors.add(
    [...path, field],
    'taken',
    `${JSON.stringify(value)} is the ${field === 'pk' ? 'key' : 'name'} of a ${owner?.displayName ?? 'row of another kind'}: choose another.`,
  )
  return true
}

function checkReferences(
  registry: Registry,
  { model, path, attrs, identifiers }: Step,
  seen: Seen,
  sent: ReadonlyMap<string, unknown>,
  resolver: Resolver,
  errors: ErrorList,
): void {
  for (const [name, value] of sent) {
    const reference = model.fields.get(name)?.reference
    if (reference === undefined) continue
    // This is a map, because a list may have ten thousand keys that do not exist.
    const unfit = new Map<unknown, string | null>(
      seen.unfit[referenceName(reference)]?.map(({ key, found }) => [key, found]),
    )
    const only = onlyOf(registry, reference)
    const isLate = only?.atFirst === true && seen.rows.length > 0
    const report = (what: string, found: string | null, at: FieldPath) =>
      errors.add(
        [...path, name, ...at],
        found === null ? 'no_such_row' : 'wrong_reference',
        misfit(reference, only, what, found),
      )
    for (const { key, tag, at } of placesOf(value, attrs.get(name) ?? identifiers.get(name))) {
      const entry = resolver.entryOf(key, reference)
      const what = sentAs(tag, key)
      const found = String((only && entry?.value(only.column)) ?? '')
      const isNone = entry === undefined ? unfit.get(key) === null : entry.isGone
      // A missing row need not be removed.
      if (at[0] === 'remove' && isNone) continue
      if (entry?.isGone) report(what, null, at)
      else if (found !== '' && only?.values.includes(found) === false && !isLate) report(what, found, at)
      else if (entry === undefined && unfit.has(key) && !(isLate && unfit.get(key) !== null))
        report(what, unfit.get(key) ?? null, at)
    }
  }
}

/** @param found the row's value, which does not fit; null without a row */
function misfit({ target }: Reference, only: Only | undefined, what: string, found: string | null): string {
  if (found === null || only === undefined) return `There is no ${target} with the key ${what}.`
  const noun = target.split(' ').at(-1)
  return `The ${noun} ${what} has the ${only.column} ${found}: this field takes ${only.values.join(', ')}.`
}

/** The name of a row, for a caller who may view it or who sent the name. */
async function checkUnique(
  registry: Registry,
  { model, path, state }: Step,
  seen: Seen,
  row: Row | undefined,
  sent: ReadonlyMap<string, unknown>,
  resolver: Resolver,
  errors: ErrorList,
): Promise<void> {
  if (state === 'absent') return
  for (const [name, holders] of Object.entries(seen.taken)) {
    const { reference } = model.fields.get(name) ?? {}
    const written = sent.get(name)
    for (const { value, ...holder } of holders) {
      if (holder.pk === row?.pk) continue
      const of = modelOf(registry, model.table, holder) ?? model
      const label = holder[labelColumn(of)]
      const isNamed = label === written || (await resolver.views(of, holder))
      if (isNamed && reference === undefined && typeof written === 'string' && written !== value) {
        errors.add([...path, name], 'taken', takenApart(of, String(value), written))
        continue
      }
      const held =
        reference === undefined
          ? `${JSON.stringify(written)} is taken by`
          : `The ${reference.target} ${await referredName(registry, reference, seen.claimed[name], value, resolver)} belongs to`
      const who = isNamed ? `${of.displayName} ${JSON.stringify(label)}` : `another ${of.displayName}`
      errors.add([...path, name], 'taken', `${held} ${who}.`)
    }
  }
}

/** A referenced row, in a sentence that has its target: the key where the caller may not view it. */
async function referredName(
  registry: Registry,
  { target }: Reference,
  rows: readonly Row[] = [],
  key: unknown,
  resolver: Resolver,
): Promise<string> {
  const row = rows.find(({ pk }) => pk === key)
  const of = row && modelOf(registry, registry.targets.get(target)?.table ?? '', row)
  return row && of && (await resolver.views(of, row)) ? JSON.stringify(row[labelColumn(of)]) : String(key)
}

/** @param name the name of a row @param written the same name in another spelling */
export const takenApart = ({ displayName }: Model, name: string, written: string): string =>
  `${displayName} ${JSON.stringify(name)} exists; names are compared without ${writtenApart(name, written)}.`

function checkLimit({ model: { limit, fields, displayName }, path, state }: Step, seen: Seen, errors: ErrorList): void {
  if (limit === undefined || state === 'absent' || seen.rows.length > 0 || seen.counted.length < limit.rows) return
  const what = `This ${fields.get(limit.per)?.reference?.target} has ${limit.rows} ${displayName}s that have not expired`
  errors.add([...path, limit.per], 'limit_reached', `${what}, the most that one may have: delete one first.`)
}

function labelOf(
  { model, identifiers, attrs }: Step,
  row: Row | undefined,
  sent: ReadonlyMap<string, unknown>,
  pk: unknown,
): string {
  if (row !== undefined) return String(row[labelColumn(model)])
  const [[first = 'pk'] = []] = model.identifiers
  const tag = identifiers.get(first) ?? attrs.get(first)
  // The key of a row that this document creates has no meaning for a reader.
  if (tag instanceof Named || tag instanceof KeyOf) return tag instanceof Named ? tag.name : tag.id
  return String(sent.get(first) ?? pk ?? '')
}
