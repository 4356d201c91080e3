import { KeyOf } from '../document/document.ts'
import { ErrorList } from '../errors.ts'
import type { Model } from '../models/define.ts'
import { checkLimit, checkNamesakes, checkReferences, checkUnique } from './checks.ts'
import { compute } from './compute.ts'
import { diff, type Entry, noChange } from './diff.ts'
import { keysNamed, withResults } from './edited-lists.ts'
import type { Effect } from './effect.ts'
import type { Engine } from './engine.ts'
import type { Loader } from './load.ts'
import type { LinkLook, Look } from './look.ts'
import { claimingFields, claimLooks, namesakeLooks, ownLooks, renameLooks } from './looks.ts'
import { Named } from './named.ts'
import { findAny } from './references.ts'
import { checkNeeds, checkReferrers, holderLooks } from './referrers.ts'
import type { Resolved, Resolver } from './resolve.ts'
import { ForNew } from './secret-forms.ts'
import { isRowOf, type Key, labelColumn, linksOf, type Row } from './statements.ts'
import type { Step } from './step.ts'
import { keysOf, storedKeys } from './storage.ts'
import type { World } from './world.ts'

export type Context = {
  readonly engine: Engine
  readonly loader: Loader
  readonly resolver: Resolver
  readonly takeTurns: () => Promise<void>
  /** True for a plan, and for the apply of a reviewed one: a row that the caller may not view is not compared. */
  readonly isReviewed: boolean
}

/** The entries whose rows are loaded at once. */
export const mostAhead = 500

/** The most rounds: the rows of one may be the arguments of look-ups in the next. What is left is loaded at its entry's turn. */
const mostRounds = 4

/**
 * Loads the rows of entries before their turn, as far as the entries name them by known values: one statement a round. Nearly every
 * document is an application and its provider, which take one round.
 */
export async function loadAhead(context: Context, steps: readonly Step[]): Promise<void> {
  const { loader, resolver, takeTurns } = context
  const drawn = new Set<Step>()
  for (let round = 0; round < mostRounds; round += 1) {
    const questions = { looks: [] as Look[], links: [] as LinkLook[], newKeys: [] as Look[] }
    for (const step of steps) {
      await takeTurns()
      const { looks, links } = await resolver.ahead(() => {
        resolver.findAll(step.conditions)
        loader.world.knows(renameLooks(step))
        const { rows, identifiers } = see(context, step)
        resolver.found(step, rows[0]?.pk)
        const [own] = ownLooks(step, identifiers)
        if (own === undefined || step.model.key !== 'integer' || step.state === 'absent') return
        if (!drawn.has(step)) questions.newKeys.push(own)
        drawn.add(step)
      })
      questions.looks.push(...looks)
      questions.links.push(...links)
    }
    if (!(await loader.load(questions))) return
  }
}

/** Computes the effect of one entry, and only reads. */
export async function inspect(context: Context, asked: Step): Promise<Effect> {
  const { engine, resolver, isReviewed } = context
  const { world } = resolver
  const { model } = asked
  const seen = await resolver.walk(() => see(context, asked))
  const { rows, step, row, values, sent, errors, isForeign, label, takes, masks } = seen
  const isHidden = row !== undefined && !resolver.views(model, row)
  const pk = chosenKey(seen)
  const base = { step, row, sent, isForeign, label, errors, takes, masks, pk, isHidden }
  if (rows.length > 1) return { ...base, ...noChange }
  const comparison = !isHidden ? 'open' : isReviewed ? 'blind' : 'hidden'
  const own = isForeign ? undefined : row
  // The rules of a row say nothing where an earlier entry had errors.
  const isBroken = own !== undefined && world.entryOf(model.table, own.pk)?.isBroken === true
  const entry: Entry = { resolver, errors: isBroken ? new ErrorList() : errors, step, row: own, values, sent }
  const rowDiff = await diff(entry, engine.keyring, comparison)
  const [ofReferrers, ofNames] = await resolver.walk(() => {
    const found = [new ErrorList(), new ErrorList()] as const
    checkReferrers({ ...entry, errors: found[0] }, rowDiff)
    checkNeeds({ ...entry, errors: found[0] }, rowDiff)
    checkNamesakes({ ...entry, errors: found[1] }, rowDiff)
    return found
  })
  entry.errors.include([ofReferrers])
  errors.include([ofNames])
  return { ...base, ...(await compute(entry, rowDiff, context)) }
}

/** An entry and its row, as far as they are loaded. It asks for the rest. */
type Seen = Entry &
  Pick<Effect, 'isForeign' | 'label' | 'takes' | 'masks'> & {
    /** The rows that the identifiers find, two at most: more than one is an error. */
    readonly rows: readonly Row[]
    readonly identifiers: ReadonlyMap<string, unknown>
  }

function see({ resolver, isReviewed }: Context, asked: Step): Seen {
  const errors = new ErrorList()
  const { world } = resolver
  const { model } = asked
  const resolved = resolver.entry(asked)
  const { identifiers, values } = resolved
  const rows = findAny(world, ownLooks(asked, identifiers)).slice(0, 2)
  const isAmbiguous = rows.length > 1
  if (isAmbiguous) errors.add(asked.path, 'ambiguous', ambiguous(model, rows, resolver))
  const [found] = rows
  const row = found === undefined || isAmbiguous ? found : withLinks(world, asked, found, values, isReviewed)
  // They are loaded together with the other rows, and used behind the diff: names of others, and what claims a deleted row.
  for (const name of model.names) world.knows(namesakeLooks(world, model, values.get(name)))
  if (row !== undefined && asked.state === 'absent')
    world.knows([...claimLooks(world, model.table, row.pk), ...holderLooks(world.registry, asked, row.pk)])
  const isForeign = row !== undefined && refuseForeign(world, asked, resolved, row, errors)
  addErrors(asked, row, resolved, errors)
  // The entry needs another name than a foreign row, and is checked like one for a new row.
  const own = isForeign ? undefined : row
  const { step, sent } = withResults(world.registry, asked, own, values, errors)
  const entry: Entry = { resolver, errors, step, row, values, sent }
  checkReferences({ ...entry, step: asked })
  if (!isAmbiguous) checkUnique(entry)
  checkLimit(entry)
  const masks = [...values].flatMap(([name, value]) =>
    value instanceof ForNew && value.keeps === 'mask' ? [name] : [],
  )
  const label = labelOf({ ...entry, step: asked, row: own }, identifiers.get('pk'))
  return { ...entry, rows, identifiers, isForeign, label, takes: takenBy({ ...entry, row: own }), masks }
}

/** The row with the links that the entry needs. Others may be very many, and are kept: a plan has the digest of all. */
function withLinks(
  world: World,
  { model, state, attrs }: Step,
  row: Row,
  values: ReadonlyMap<string, unknown>,
  readsAll: boolean,
): Row {
  const links = linksOf(model).flatMap(([{ name }, { many }]): [string, readonly Key[]][] => {
    if (many !== true) return [[name, row.links?.[name] ?? []]]
    if (!readsAll && state !== 'absent' && !attrs.has(name)) return []
    const among = keysNamed(values.get(name))
    const keys = world.links({ model, name, pk: row.pk, among })
    return [[name, among === undefined ? keys : keys.filter((key) => among.includes(key))]]
  })
  return { ...row, links: Object.fromEntries(links) }
}

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
function takenBy({ resolver, step: { model, path, owner }, row, sent }: Entry): Effect[] {
  const { world } = resolver
  const fields = claimingFields(model)
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
      const none = { sent: new Map(), isForeign: false, errors: new ErrorList(), takes: [], masks: [], pk: undefined }
      const label = String(claimed[labelColumn(of)])
      taken.push({ ...noChange, ...none, action: 'unchanged', step, row: claimed, label, isHidden })
    }
  }
  return taken
}

/** A document may choose a UUID key. Integer keys come from the table's sequence. */
function chosenKey({ step: { model, path, state }, row, errors, identifiers }: Seen): string | undefined {
  const pk = identifiers.get('pk')
  if (typeof pk === 'number' && row === undefined && state !== 'absent')
    errors.add([...path, 'pk'], 'no_such_row', `There is no ${model.displayName} with the key ${pk}.`)
  return typeof pk === 'string' ? pk : undefined
}

/** Provider kinds share a table and its unique names: an entry may not write a row of another kind. */
function refuseForeign(world: World, { model, path }: Step, sent: Resolved, row: Row, errors: ErrorList): boolean {
  if (isRowOf(model, row)) return false
  const owner = world.modelOf(model.table, row)
  // Only the sent value is quoted: a key must not reveal the name of a row of another kind.
  const [[field, value] = ['pk', row.pk]] = sent.identifiers
  const is = `${JSON.stringify(value)} is the ${field === 'pk' ? 'key' : 'name'}`
  errors.add([...path, field], 'taken', `${is} of a ${owner?.displayName ?? 'row of another kind'}: choose another.`)
  return true
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
