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
import { ListEdit, refuseBoth } from './list-edit.ts'
import type { Loader } from './load.ts'
import { finding, type Looked, looksUp, ownLooks, storedIn } from './looks.ts'
import { Misses } from './misses.ts'
import { isRowOf } from './model-of.ts'
import { Named } from './named.ts'
import { findAny, findNamed, looksFor, onlyOf } from './references.ts'
import type { Key } from './row-set.ts'
import { Sight, type Unseen } from './sight.ts'
import { labelColumn, type Row } from './statements.ts'
import type { EntryRow, World } from './world.ts'

/** The fields of an entry with keys instead of references. A reference that cannot be replaced is undefined, with an error. */
export type Resolved = {
  readonly identifiers: ReadonlyMap<string, unknown>
  /** All fields: those of the identifiers, and the others. */
  readonly values: ReadonlyMap<string, unknown>
  readonly errors: readonly FieldError[]
}

type Context = {
  readonly path: FieldPath
  readonly errors: ErrorList
  /** Whether it stands in `remove` of a list. */
  readonly isRemoved?: boolean
}

/**
 * Replaces the values in place of keys: a name, `!KeyOf`, `!Find`, and tags around them. All are looked up in the world, after
 * the entries before.
 */
export class Resolver {
  /** The rows to which `!KeyOf` refers, by the entry's id. */
  readonly #keys = new Map<string, Key>()
  /** The entries, by their ids. */
  readonly #steps: ReadonlyMap<string | undefined, Step>
  readonly #looked = new WeakMap<Step, readonly Looked[]>()
  readonly #loader: Loader
  readonly #world: World
  readonly #registry: Registry
  readonly #misses: Misses
  readonly #sight: Sight

  constructor(registry: Registry, loader: Loader, steps: readonly Step[], actor: Actor | Promise<Actor>) {
    this.#registry = registry
    this.#steps = new Map(steps.map((step) => [step.id, step]))
    this.#loader = loader
    this.#world = loader.world
    this.#misses = new Misses(loader.reader, actor)
    this.#sight = new Sight(actor, loader.world)
  }

  /** The questions of the look-ups of an entry, of those that the caller may ask in any case. */
  lookUps = (step: Step): Promise<readonly Looked[]> =>
    this.#sight.readable(this.#looked.getOrInsertComputed(step, () => looksUp(this.#registry, step)))

  /** The fields whose rows are loaded. The others are left out. */
  knownFields(step: Step, sent: ReadonlyMap<string, unknown>): Map<string, unknown> {
    const known = new Map<string, unknown>()
    for (const [name, value] of sent) {
      const reference = step.model.fields.get(name)?.reference
      const one = (item: unknown): unknown => {
        if (!isTag(item)) return item
        if (item instanceof KeyOf) return this.#keys.get(item.id) ?? this.#rowOf(item)?.pk
        if (item instanceof Named) {
          const match = this.#namedRow(item, reference)
          return match?.is === 'row' ? match.row.pk : undefined
        }
        const [row, another] = this.#foundRows(item)
        return another === undefined ? row?.pk : undefined
      }
      if (value instanceof Deferred) continue
      const list = (items: unknown) =>
        Array.isArray(items) ? items.map(one).filter((item) => item !== undefined) : one(items)
      const plain = value instanceof ListEdit ? new ListEdit(list(value.add), list(value.remove)) : list(value)
      if (plain !== undefined) known.set(name, plain)
    }
    return known
  }

  /** The row of an entry whose turn has not come yet, where it is loaded. */
  #rowOf({ id }: KeyOf): Row | undefined {
    const step = this.#steps.get(id)
    const looks = step === undefined ? [] : ownLooks(step, this.knownFields(step, step.identifiers))
    return findAny(
      this.#world,
      looks.filter((look) => this.#world.knows(look)),
    )[0]
  }

  /** The fields of an entry. Call it when it is the entry's turn. */
  async entry(step: Step): Promise<Resolved> {
    const context = { errors: new ErrorList(), path: step.path }
    const identifiers = await this.#fields(step, step.identifiers, context)
    const attrs = await this.#fields(step, step.attrs, context)
    const values = new Map([...identifiers, ...attrs].filter(([name]) => name !== 'pk'))
    return { identifiers, values, errors: context.errors.list }
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
  async called(name: string, model: Model): Promise<Row[]> {
    const target = this.#registry.targets.get(model.target)
    const looks = target === undefined ? [] : looksFor(name, target)
    await this.#loader.load({ looks })
    return findAny(this.#world, looks)
  }

  /** The row of an earlier entry to which a reference refers. */
  entryOf = (key: unknown, { target }: Reference): EntryRow | undefined =>
    typeof key === 'string' || typeof key === 'number'
      ? this.#world.entryOf(this.#registry.targets.get(target)?.table ?? '', key)
      : undefined

  /** Remembers the key of the row that an entry names. */
  wrote(effect: Effect, key: Key | undefined): void {
    const { id } = effect.step
    if (id !== undefined && key !== undefined) this.#keys.set(id, key)
    this.#sight.wrote(effect)
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
    if ('row' in found) return new KeyValue(found.row.pk, tag)
    if (asks && found.code === 'no_such_row') return null
    throw new TagError(undefined, found.message)
  }

  async #keyOf(tag: KeyOf | Find | Named, reference: Reference | undefined, context: Context): Promise<unknown> {
    const { errors, path, isRemoved } = context
    if (tag instanceof KeyOf) {
      const key = this.#keys.get(tag.id)
      if (key === undefined) errors.add(path, 'unknown_entry', skipped(tag))
      return key
    }
    const found = tag instanceof Named ? await this.#named(tag, reference) : await this.#find(tag)
    if ('row' in found) return found.row.pk
    // A missing row need not be removed: the same document again is unchanged.
    if (!isRemoved || (found.code !== 'unknown_name' && found.code !== 'no_such_row'))
      errors.add(path, found.code, found.message)
    return undefined
  }

  /** The row with a name; undefined where it is not loaded. */
  #namedRow({ name }: Named, reference: Reference | undefined) {
    const target = this.#registry.targets.get(reference?.target ?? '')
    if (target === undefined || reference === undefined) return undefined
    if (!looksFor(name, target).every((look) => this.#world.knows(look))) return undefined
    const shows = (row: Row) => this.#sight.shows(target, row)
    return findNamed(this.#world, name, target, onlyOf(this.#registry, reference), shows)
  }

  async #named(tag: Named, reference: Reference | undefined): Promise<Found> {
    const target = this.#registry.targets.get(reference?.target ?? '')
    if (target === undefined || reference === undefined)
      throw new Error(`compile let a name through that refers to nothing: ${tag.name}`)
    if (!(await this.#sight.name(tag.name, target))) return unseen(tag.name)
    await this.#loader.load({ looks: looksFor(tag.name, target) })
    const match = this.#namedRow(tag, reference) ?? { is: 'unknown' }
    if (match.is === 'row') return match
    return this.#misses.errorOf({ name: tag.name, target, only: onlyOf(this.#registry, reference) }, match)
  }

  /** The rows that a tag finds, as far as they are loaded. */
  #foundRows(tag: Find): Row[] {
    const model = this.#registry.byName(tag.model)
    const look = finding(this.#registry, tag)
    if (model === undefined || look === undefined || !this.#world.knows(look)) return []
    const shows = (row: Row) => isRowOf(model, row) && this.#sight.shows({ table: model.table, models: [model] }, row)
    return this.#world.find(look).filter(shows)
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
    const look = finding(this.#registry, tag)
    if (look !== undefined) await this.#loader.load({ looks: [look] })
    const [row, another] = this.#foundRows(tag)
    const which = ` ${JSON.stringify(tag.identifiers)}`
    if (row === undefined) return refuse('no_such_row', `${which} finds nothing.`)
    return another === undefined ? { row } : refuse('ambiguous', `${which} finds more than one row.`)
  }
}

/** The error of a denied look-up. The judge denies the document: no other error is reported. */
const unseen = (what: string): Found => ({ code: 'invalid_value', message: `${what} may not be looked up.` })

type Found = { readonly row: Row } | { readonly code: ErrorCode; readonly message: string }

/** Stands in place of the key of an owner that does not exist. */
const noRow = Symbol('no row')

/** The path of an item in messages: names in a list have one of their own, and tags have that of the list. */
const placeOf = (item: unknown, index: number): FieldPath => (item instanceof Named ? [index] : [])

function hasTwice(items: readonly unknown[]): boolean {
  const keys = items.filter((item) => item !== undefined)
  return new Set(keys).size < keys.length
}

const skipped = ({ id }: KeyOf) => `!KeyOf ${id} names an entry that is skipped: it has no key.`
