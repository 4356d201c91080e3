import type { EngineReader } from '../db/engine-tx.ts'
import { Find, KeyOf } from '../document/document.ts'
import { evaluate, isTrue } from '../document/evaluate.ts'
import { Key as KeyValue, type Lookup, scopeOf } from '../document/scope.ts'
import { TagError } from '../document/tags.ts'
import type { ErrorCode } from '../error-codes.ts'
import type { FieldError, FieldPath } from '../errors.ts'
import { ErrorList } from '../errors.ts'
import type { Model, Reference } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { storable } from '../models/syntax.ts'
import type { Actor } from '../permissions.ts'
import type { Step } from './compile.ts'
import { Deferred } from './deferred.ts'
import type { Effect } from './effect.ts'
import { isTag } from './key-tags.ts'
import { type KnownRow, KnownRows, namesOf } from './known-rows.ts'
import { itemsOf, ListEdit, refuseBoth } from './list-edit.ts'
import { type By, readRows } from './lookup-sql.ts'
import { Misses } from './misses.ts'
import { Named } from './named.ts'
import type { Key } from './row-set.ts'
import { Sight, type Unseen } from './sight.ts'
import { onlyOf } from './snapshot-sql.ts'
import { labelColumn, type Row } from './statements.ts'
import { byOf, lookupsOf, type StepLookup, storedIn } from './step-lookups.ts'
import { keysOf } from './storage.ts'
import type { EntryRow, World } from './world.ts'

/** The fields of an entry with keys instead of references. A reference that cannot be replaced is undefined, with an error. */
export type Resolved = {
  readonly identifiers: ReadonlyMap<string, unknown>
  /** All fields: those of the identifiers, and the others. */
  readonly values: ReadonlyMap<string, unknown>
  readonly errors: readonly FieldError[]
  /** Keys of rows that were looked up, or that an earlier entry writes: such a row is there, and fits. */
  readonly known: ReadonlySet<unknown>
}

type Context = {
  readonly path: FieldPath
  readonly errors: ErrorList
  readonly known: Set<unknown>
  /** Whether it stands in `remove` of a list. */
  readonly isRemoved?: boolean
}

/**
 * Replaces the values in place of keys: a name, `!KeyOf`, `!Find`, and tags around them. All are looked up in one way: rows are
 * prefetched for many entries, and seen as earlier entries leave them (`known-rows.ts`).
 */
export class Resolver {
  /** The rows to which `!KeyOf` refers, by the entry's id. */
  readonly #keys = new Map<string, Key>()
  readonly #reader: EngineReader
  readonly #registry: Registry
  readonly #world: World
  /** The tables in which the document looks rows up. */
  readonly #tables = new Map<string, KnownRows>()
  /** The look-ups of each entry. */
  readonly #lookups: ReadonlyMap<Step, readonly StepLookup[]>
  readonly #misses: Misses
  readonly #sight: Sight

  constructor(
    reader: EngineReader,
    registry: Registry,
    steps: readonly Step[],
    world: World,
    actor: Actor | Promise<Actor>,
  ) {
    this.#reader = reader
    this.#registry = registry
    this.#world = world
    this.#misses = new Misses(reader, actor)
    this.#sight = new Sight(actor)
    this.#lookups = new Map(steps.map((step) => [step, lookupsOf(registry, step)]))
    for (const { model, columns } of [...this.#lookups.values()].flat()) {
      const { columns: known } = this.#tables.getOrInsertComputed(
        model.table,
        () => new KnownRows(model, registry, world),
      )
      for (const column of columns) known.add(column)
    }
  }

  /** Prefetches the rows that these steps look up by plain values, by one statement; none when they look up nothing. */
  async readAhead(steps: readonly Step[]): Promise<void> {
    await this.#read(await this.#sight.readable(steps.flatMap((step) => this.#lookups.get(step) ?? [])))
  }

  /** The fields whose rows are known now. The others are left out. */
  knownFields(step: Step, sent: ReadonlyMap<string, unknown>): Map<string, unknown> {
    const known = new Map<string, unknown>()
    for (const [name, value] of sent) {
      const reference = step.model.fields.get(name)?.reference
      const one = (item: unknown): unknown => {
        if (!isTag(item)) return item
        if (item instanceof KeyOf) return undefined
        const row = item instanceof Named ? this.#namedRow(item, reference) : this.#foundRows(item)
        const found = Array.isArray(row) ? row : row?.is === 'row' ? [row.row] : []
        return found.length === 1 ? found[0]?.key : undefined
      }
      if (value instanceof Deferred) continue
      const list = (items: unknown) =>
        Array.isArray(items) ? items.map(one).filter((item) => item !== undefined) : one(items)
      const plain = value instanceof ListEdit ? new ListEdit(list(value.add), list(value.remove)) : list(value)
      if (plain !== undefined) known.set(name, plain)
    }
    return known
  }

  /** The fields of an entry. Call it when it is the entry's turn. */
  async entry(step: Step): Promise<Resolved> {
    const context = { errors: new ErrorList(), known: new Set(), path: step.path }
    const identifiers = await this.#fields(step, step.identifiers, context)
    const attrs = await this.#fields(step, step.attrs, context)
    const values = new Map([...identifiers, ...attrs].filter(([name]) => name !== 'pk'))
    const { errors, known } = context
    return { identifiers, values, errors: errors.list, known }
  }

  async #fields(
    step: Step,
    sent: ReadonlyMap<string, unknown>,
    context: Context,
  ): Promise<ReadonlyMap<string, unknown>> {
    const values = new Map<string, unknown>()
    for (const [name, value] of sent) {
      const at = { ...context, path: [...step.path, name] }
      const reference = step.model.fields.get(name)?.reference
      const key = await this.#value(value, reference, at)
      // A caller who may not write for others gets the same denial for a user who exists and for one who does not.
      const isOwner = value instanceof Named && name === step.model.owner
      values.set(name, isOwner ? (key ?? noRow) : key)
      // A document may refer to a new row by the key that it chooses.
      for (const each of keysOf(itemsOf(key))) {
        if (reference && this.entryOf(each, reference)?.isGone === false) context.known.add(each)
      }
    }
    return values
  }

  async #value(value: unknown, reference: Reference | undefined, at: Context): Promise<unknown> {
    if (value instanceof Deferred) {
      const known = await this.#evaluated(value, at)
      return known instanceof ListEdit ? this.#value(known, reference, at) : known
    }
    if (value instanceof ListEdit) {
      const inList = (word: 'add' | 'remove') => ({ ...at, path: [...at.path, word] })
      const add = await this.#value(value.add, reference, inList('add'))
      const edit = new ListEdit(
        add,
        await this.#value(value.remove, reference, { ...inList('remove'), isRemoved: true }),
      )
      refuseBoth(edit, at.path, at.errors)
      return edit
    }
    if (isTag(value)) return this.#keyOf(value, reference, at)
    if (!Array.isArray(value) || !value.some(isTag)) return value
    const keys: unknown[] = []
    for (const [index, item] of value.entries())
      keys.push(
        isTag(item) ? await this.#keyOf(item, reference, { ...at, path: [...at.path, ...placeOf(item, index)] }) : item,
      )
    if (value.some((item) => item instanceof Named) && hasTwice(keys))
      at.errors.add(at.path, 'duplicate', 'Must not hold a key twice.')
    return keys
  }

  /**
   * Evaluates the conditions that need the database. All others are known when a document is read.
   *
   * @returns the step, with the errors of its conditions; null when they are false
   */
  async evaluateConditions(step: Step): Promise<Step | null> {
    for (const condition of step.conditions ?? []) {
      try {
        if (!isTrue(await this.#evaluate(condition, true))) return null
      } catch (error) {
        if (!(error instanceof TagError)) throw error
        const path = [...step.path, 'conditions']
        return { ...step, conditionErrors: [{ path, code: 'invalid_value', message: error.message }] }
      }
    }
    return step
  }

  /** The look-ups since the last call that the caller may not do. */
  unseen = (): readonly Unseen[] => this.#sight.take()

  /** Whether the caller may view a row: by permission, or as its owner. */
  views = (model: Model, row: Row): Promise<boolean> => this.#sight.row(model, row)

  /** A row in messages; null for one that the caller may not view. */
  nameOf = async (model: Model, row: Row): Promise<string | null> =>
    (await this.views(model, row)) ? `${model.displayName} ${JSON.stringify(row[labelColumn(model)])}` : null

  /** The rows that have a name in one of the fields that name rows of this model. */
  async called(name: string, model: Model): Promise<KnownRow[]> {
    const target = this.#registry.targets.get(model.target)
    return target === undefined ? [] : this.rowsBy(model, namesOf(name, target))
  }

  /** The rows that any of these look-ups finds. `lookupsOf` names their table. */
  async rowsBy(model: Model, by: readonly By[]): Promise<KnownRow[]> {
    await this.#read([{ model, by }])
    return this.#tables.get(model.table)?.findAny(by) ?? []
  }

  /** The row of an earlier entry to which a reference refers. */
  entryOf = (key: unknown, { target }: Reference): EntryRow | undefined =>
    typeof key === 'string' || typeof key === 'number'
      ? this.#world.entryOf(this.#registry.targets.get(target)?.table ?? '', key)
      : undefined

  /** Remembers the effect of an entry. @param key that of its row, where there is one @param entry its index in the document */
  wrote(effect: Effect, key: Key | undefined, entry: number): void {
    const { id, model } = effect.step
    if (id !== undefined && key !== undefined) this.#keys.set(id, key)
    this.#sight.wrote(effect)
    this.#tables.get(model.table)?.wrote(effect, entry)
  }

  async #read(lookups: readonly { model: Model; by: readonly By[] }[]): Promise<void> {
    const asked = [...Map.groupBy(lookups, ({ model }) => model.table)].flatMap(([table, of]) => {
      const rows = this.#tables.get(table)
      const by = rows?.unread(of.flatMap((each) => each.by)) ?? []
      return rows === undefined || by.length === 0 ? [] : [{ table, model: rows.model, columns: [...rows.columns], by }]
    })
    if (asked.length === 0) return
    const found = await readRows(this.#reader, asked)
    for (const [table, rows] of found) this.#tables.get(table)?.read(rows)
  }

  async #evaluated(deferred: Deferred, { path, errors }: Context): Promise<unknown> {
    try {
      return deferred.check(await this.#evaluate(deferred.value), path, errors)
    } catch (error) {
      if (!(error instanceof TagError)) throw error
      errors.add(path, 'invalid_value', error.message)
      return undefined
    }
  }

  /**
   * @param asks whether only the truth of the value counts: a missing row is no error then
   * @throws {TagError} for a tag without a value
   */
  async #evaluate(value: unknown, asks = false): Promise<unknown> {
    const evaluation = evaluate(value, { ...scopeOf(value), asks })
    let next = evaluation.next()
    while (next.done !== true) next = evaluation.next(await this.#lookUp(next.value))
    return next.value
  }

  async #lookUp({ tag, asks }: Lookup): Promise<KeyValue | null> {
    if (tag instanceof KeyOf) {
      const key = this.#keys.get(tag.id)
      if (key !== undefined) return new KeyValue(key, tag)
      if (asks) return null
      throw new TagError(undefined, skipped(tag))
    }
    const identifiers = Object.entries(tag.identifiers).map(
      ([name, value]) => [name, value instanceof KeyValue ? value.key : value] as const,
    )
    const found = await this.#find(new Find(tag.model, Object.fromEntries(identifiers)))
    if ('row' in found) return new KeyValue(found.row.key, tag)
    if (asks && found.code === 'no_such_row') return null
    throw new TagError(undefined, found.message)
  }

  async #keyOf(tag: KeyOf | Find | Named, reference: Reference | undefined, context: Context): Promise<unknown> {
    const { errors, path, isRemoved } = context
    if (tag instanceof KeyOf) {
      const key = this.#keys.get(tag.id)
      if (key === undefined) errors.add(path, 'unknown_entry', skipped(tag))
      context.known.add(key)
      return key
    }
    const found = tag instanceof Named ? await this.#named(tag, reference) : await this.#find(tag)
    if ('row' in found) {
      // `!Find` names a row without a restriction: the fit is checked together with the keys that were sent.
      if (tag instanceof Named) context.known.add(found.row.key)
      return found.row.key
    }
    // A missing row need not be removed: the same document again is unchanged.
    if (!isRemoved || (found.code !== 'unknown_name' && found.code !== 'no_such_row'))
      errors.add(path, found.code, found.message)
    return undefined
  }

  #namedRow({ name }: Named, reference: Reference | undefined) {
    const target = this.#registry.targets.get(reference?.target ?? '')
    if (target === undefined || reference === undefined) return undefined
    const only = onlyOf(this.#registry, reference)
    return this.#tables.get(target.table)?.findNamed(name, target, only, (row) => this.#sight.shows(target.models, row))
  }

  async #named(tag: Named, reference: Reference | undefined): Promise<Found> {
    const target = this.#registry.targets.get(reference?.target ?? '')
    const [model] = target?.models ?? []
    if (target === undefined || model === undefined || reference === undefined)
      throw new Error(`compile let a name through that refers to nothing: ${tag.name}`)
    if (!(await this.#sight.name(tag.name, target))) return unseen(tag.name)
    await this.#read([{ model, by: namesOf(tag.name, target) }])
    const match = this.#namedRow(tag, reference) ?? { is: 'unknown' }
    if (match.is === 'row') return match
    return this.#misses.errorOf({ name: tag.name, target, only: onlyOf(this.#registry, reference) }, match)
  }

  #foundRows(tag: Find): KnownRow[] {
    const model = this.#registry.byName(tag.model)
    const by = byOf(this.#registry, tag)
    const rows = by === undefined ? [] : (this.#tables.get(model?.table ?? '')?.find(by) ?? [])
    const own = Object.entries(model?.discriminator ?? {})
    return rows
      .filter(({ values }) => own.every(([column, value]) => values.get(column) === value))
      .filter((row) => model !== undefined && this.#sight.shows([model], row))
  }

  async #find(tag: Find): Promise<Found> {
    const model = this.#registry.byName(tag.model)
    if (model === undefined) throw new Error(`compile let an unknown model through: ${tag.model}`)
    const refuse = (code: ErrorCode, why: string): Found => ({ message: `!Find ${tag.model}${why}`, code })
    const named = Object.entries(tag.identifiers)
    if (named.length === 0 || named.some(([name]) => storedIn(model, name) === undefined))
      return refuse('unknown_field', `: each field must be one of the model's own.`)
    for (const [name, value] of named) {
      const error = storable(String(value))
      if (error !== undefined) return refuse('invalid_text', `: ${name}: ${error}`)
    }
    if (!(await this.#sight.find(model, tag.identifiers))) return unseen(`!Find ${tag.model}`)
    const by = byOf(this.#registry, tag)
    if (by !== undefined) await this.#read([{ model, by: [by] }])
    const [row, another] = this.#foundRows(tag)
    const which = ` ${JSON.stringify(tag.identifiers)}`
    if (row === undefined) return refuse('no_such_row', `${which} finds nothing.`)
    return another === undefined ? { row } : refuse('ambiguous', `${which} finds more than one row.`)
  }
}

/** The error of a denied look-up. The judge denies the document: no other error is reported. */
const unseen = (what: string): Found => ({ code: 'invalid_value', message: `${what} may not be looked up.` })

type Found = { readonly row: KnownRow } | { readonly code: ErrorCode; readonly message: string }

/** In place of the key of an owner who does not exist. */
const noRow = Symbol('no row')

/** The path of an item in messages: names in a list have one of their own, and tags have that of the list. */
const placeOf = (item: unknown, index: number): FieldPath => (item instanceof Named ? [index] : [])

function hasTwice(items: readonly unknown[]): boolean {
  const keys = items.filter((item) => item !== undefined)
  return new Set(keys).size < keys.length
}

const skipped = ({ id }: KeyOf) => `!KeyOf ${id} names an entry that is skipped: it has no key.`
