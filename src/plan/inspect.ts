import { KeyOf } from '../document/document.ts'
import { ErrorList } from '../errors.ts'
import type { Model, Only, Reference } from '../models/define.ts'
import { writtenApart } from '../names.ts'
import { compute } from './compute.ts'
import { diff, noChange } from './diff.ts'
import { withResults } from './edited-lists.ts'
import type { Effect } from './effect.ts'
import type { Engine } from './engine.ts'
import { sentAs } from './key-tags.ts'
import { ListEdit, placesOf } from './list-edit.ts'
import type { Loader } from './load.ts'
import { counted, hasValue, holders, isExclusive } from './looks.ts'
import { isRowOf } from './model-of.ts'
import { Named } from './named.ts'
import { checkNamesakes } from './namesakes.ts'
import { onlyOf } from './references.ts'
import { checkNeeds, checkReferrers } from './referrers.ts'
import type { Resolved, Resolver } from './resolve.ts'
import { type Entry, readRows, type Use } from './rows.ts'
import { columnOf, type Key, labelColumn, type Row } from './statements.ts'
import type { Step } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

type Context = Use & { readonly engine: Engine; readonly loader: Loader; readonly resolver: Resolver }

/**
 * Computes the effect of one entry, and only reads. The API calls it before it enqueues, the worker before it writes, so that
 * both report the same errors in the same words.
 */
export async function inspect(
  { engine, loader, resolver, takesKeys, isReviewed }: Context,
  asked: Step,
): Promise<Effect> {
  const errors = new ErrorList()
  const { world } = loader
  const { model } = asked
  const resolved = await resolver.entry(asked)
  const { values } = resolved
  const rows = await readRows(loader, asked, resolved, isReviewed)
  const [row] = rows
  const isAmbiguous = rows.length > 1
  if (isAmbiguous) errors.add(asked.path, 'ambiguous', ambiguous(model, rows, resolver))
  const isForeign = row !== undefined && refuseForeign(world, asked, resolved, row, errors)
  addErrors(asked, row, resolved, errors)
  // The entry needs another name than a foreign row, and is checked like one for a new row.
  const own = isForeign ? undefined : row
  const { step, sent } = withResults(world.registry, asked, own, values, errors)
  const entry: Entry = { loader, world, resolver, errors, step, row, values, sent }
  checkReferences({ ...entry, step: asked })
  if (!isAmbiguous) checkUnique(entry)
  checkLimit(entry)
  const label = labelOf({ ...entry, step: asked, row: own }, resolved.identifiers.get('pk'))
  const takes = takenBy({ ...entry, row: own })
  const isHidden = row !== undefined && !resolver.views(model, row)
  const pk = await keyOfNew(entry, resolved, takesKeys)
  const base = { step, row, sent, isForeign, label, errors, takes, pk, isHidden }
  if (isAmbiguous) return { ...base, ...noChange }
  const comparison = !isHidden ? 'open' : isReviewed ? 'blind' : 'hidden'
  // The rules of a row say nothing where an earlier entry had errors.
  const isBroken = own !== undefined && world.entryOf(model.table, own.pk)?.isBroken === true
  const ofRow: Entry = { ...entry, row: own, errors: isBroken ? new ErrorList() : errors }
  const rowDiff = await diff(ofRow, engine.keyring, comparison)
  await checkReferrers(ofRow, rowDiff)
  checkNeeds(ofRow, rowDiff)
  await checkNamesakes({ ...ofRow, errors }, rowDiff)
  return { ...base, ...(await compute(ofRow, rowDiff, engine)) }
}

/** The message for identifiers that find several rows. */
function ambiguous(model: Model, rows: readonly Row[], resolver: Resolver): string {
  const shown = rows.filter((row) => resolver.views(model, row))
  const names = shown.map((row) => `${JSON.stringify(row[labelColumn(model)])} (pk ${row.pk})`)
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

/** Rows that the entry's row claims and did not claim before. Those that this document creates are not among them. */
function takenBy({ world, resolver, step: { model, path, owner }, row, sent }: Entry): Effect[] {
  const fields = (model.claims ?? []).flatMap((name) => model.fields.get(name) ?? [])
  const had = new Set(row === undefined ? [] : fields.flatMap((field) => storedKeys(field, row)))
  const taken: Effect[] = []
  for (const { name, reference } of fields) {
    const table = world.tableOf(reference)
    for (const key of keysOf(sent.get(name))) {
      const claimed = had.has(key) || world.entryOf(table, key)?.isNew === true ? undefined : world.row(table, key)
      const of = claimed && world.modelOf(table, claimed)
      if (claimed === undefined || of === undefined) continue
      const identifiers = new Map([['pk', claimed.pk]])
      const own = owner === undefined ? {} : { owner }
      const step: Step = { id: undefined, model: of, state: 'present', identifiers, attrs: new Map(), path, ...own }
      const isHidden = !resolver.views(of, claimed)
      const none = { sent: new Map(), isForeign: false, errors: new ErrorList(), takes: [], pk: undefined }
      const label = String(claimed[labelColumn(of)])
      taken.push({ ...noChange, ...none, action: 'unchanged', step, row: claimed, label, isHidden })
    }
  }
  return taken
}

/** A document may choose a UUID key. Integer keys come from the table's sequence. */
async function keyOfNew(
  { loader, step: { model, path, state }, row, errors }: Entry,
  { identifiers }: Resolved,
  takesKeys: boolean,
): Promise<Key | undefined> {
  const pk = identifiers.get('pk')
  if (model.key === 'uuid') return typeof pk === 'string' ? pk : undefined
  if (row !== undefined || state === 'absent') return undefined
  if (typeof pk === 'number')
    errors.add([...path, 'pk'], 'no_such_row', `There is no ${model.displayName} with the key ${pk}.`)
  return takesKeys ? loader.newKey(model) : undefined
}

/** Provider kinds share a table and its unique names: an entry may not write a row of another kind. */
function refuseForeign(world: World, { model, path }: Step, sent: Resolved, row: Row, errors: ErrorList): boolean {
  if (isRowOf(model, row)) return false
  const owner = world.modelOf(model.table, row)
  // Only the sent value is quoted: a key must not reveal the name of a row of another kind.
  const [[field, value] = ['pk', row.pk]] = sent.identifiers
  errors.add(
    [...path, field],
    'taken',
    `${JSON.stringify(value)} is the ${field === 'pk' ? 'key' : 'name'} of a ${owner?.displayName ?? 'row of another kind'}: choose another.`,
  )
  return true
}

/** @param step the entry as it was sent */
function checkReferences({ world, step: { model, path, attrs, identifiers }, row, values, errors }: Entry): void {
  for (const [name, sentValue] of values) {
    const reference = model.fields.get(name)?.reference
    if (reference === undefined) continue
    const table = world.tableOf(reference)
    const only = onlyOf(world.registry, reference)
    const isLate = only?.atFirst === true && row !== undefined
    for (const { key, tag, at } of placesOf(sentValue, attrs.get(name) ?? identifiers.get(name))) {
      if (typeof key !== 'string' && typeof key !== 'number') continue
      const referred = world.row(table, key)
      // A missing row need not be removed.
      if (referred === undefined && at[0] === 'remove') continue
      // An entry whose row is of another kind, or has no key, has errors of its own.
      if (referred === undefined && tag instanceof KeyOf && !world.isGone(table, key)) continue
      const found = String((only && referred?.[only.column]) ?? '')
      const isUnfit = found !== '' && only?.values.includes(found) === false && !isLate
      if (referred !== undefined && !isUnfit) continue
      errors.add(
        [...path, name, ...at],
        isUnfit ? 'wrong_reference' : 'no_such_row',
        misfit(reference, only, sentAs(tag, key), isUnfit ? found : null),
      )
    }
  }
}

/** @param found the row's value, which does not fit; null without a row */
function misfit({ target }: Reference, only: Only | undefined, what: string, found: string | null): string {
  if (found === null || only === undefined) return `There is no ${target} with the key ${what}.`
  const noun = target.split(' ').at(-1)
  return `The ${noun} ${what} has the ${only.column} ${found}: this field takes ${only.values.join(', ')}.`
}

/** Adds an error for each value that another row has. Its name is for a caller who may view it or who sent the name. */
function checkUnique({ world, resolver, step: { model, path, state }, row, values, sent, errors }: Entry): void {
  if (state === 'absent') return
  for (const [name, value] of values) {
    const field = model.fields.get(name)
    if (field === undefined || !isExclusive(model, field)) continue
    const { reference } = field
    const written = sent.get(name)
    for (const key of keysOf(value instanceof ListEdit ? value.add : value)) {
      const [holder] = hasValue(row, field, key) ? [] : world.find(holders(model, field, key))
      if (holder === undefined || holder.pk === row?.pk) continue
      const of = world.modelOf(model.table, holder) ?? model
      const label = holder[labelColumn(of)]
      const held = reference === undefined ? holder[columnOf(model, name)] : key
      const isNamed = label === written || resolver.views(of, holder)
      if (isNamed && reference === undefined && typeof written === 'string' && written !== held) {
        errors.add([...path, name], 'taken', takenApart(of, String(held), written))
        continue
      }
      const what =
        reference === undefined
          ? `${JSON.stringify(written)} is taken by`
          : `The ${reference.target} ${referredName(world, reference, key, resolver)} belongs to`
      const who = isNamed ? `${of.displayName} ${JSON.stringify(label)}` : `another ${of.displayName}`
      errors.add([...path, name], 'taken', `${what} ${who}.`)
    }
  }
}

/** A referenced row, in a sentence that has its target: the key where the caller may not view it. */
function referredName(world: World, reference: Reference, key: Key, resolver: Resolver): string {
  const table = world.tableOf(reference)
  const row = world.row(table, key)
  const of = row && world.modelOf(table, row)
  return row && of && resolver.views(of, row) ? JSON.stringify(row[labelColumn(of)]) : String(key)
}

/** @param name the name of a row @param written the same name in another spelling */
const takenApart = ({ displayName }: Model, name: string, written: string): string =>
  `${displayName} ${JSON.stringify(name)} exists; names are compared without ${writtenApart(name, written)}.`

function checkLimit({ world, step: { model, path, state }, row, values, errors }: Entry): void {
  const { limit, fields, displayName } = model
  const [key] = limit === undefined ? [] : keysOf(values.get(limit.per))
  if (limit === undefined || key === undefined || state === 'absent' || row !== undefined) return
  if (world.find(counted(model, limit, key)).length < limit.rows) return
  const what = `This ${fields.get(limit.per)?.reference?.target} has ${limit.rows} ${displayName}s that have not expired`
  errors.add([...path, limit.per], 'limit_reached', `${what}, the most that one may have: delete one first.`)
}

/** @param entry as it was sent */
function labelOf({ step: { model, identifiers, attrs }, row, sent }: Entry, pk: unknown): string {
  if (row !== undefined) return String(row[labelColumn(model)])
  const [[first = 'pk'] = []] = model.identifiers
  const tag = identifiers.get(first) ?? attrs.get(first)
  // The key of a row that this document creates has no meaning for a reader.
  if (tag instanceof Named || tag instanceof KeyOf) return tag instanceof Named ? tag.name : tag.id
  return String(sent.get(first) ?? pk ?? '')
}
