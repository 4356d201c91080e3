import { Find, KeyOf } from '../document/document.ts'
import { evaluate, isTrue } from '../document/evaluate.ts'
import { KeyValue, type Lookup, scopeOf } from '../document/scope.ts'
import { TagError } from '../document/tags.ts'
import type { ErrorCode } from '../error-codes.ts'
import type { FieldError, FieldPath } from '../errors.ts'
import { ErrorList } from '../errors.ts'
import type { Model, Reference } from '../models/define.ts'
import { storable } from '../models/syntax.ts'
import type { Actor } from '../permissions.ts'
import { Deferred } from './deferred.ts'
import { ListEdit, refuseBoth } from './list-edit.ts'
import type { Loader } from './load.ts'
import { finding, storedIn } from './looks.ts'
import { lookupsIn } from './lookups.ts'
import { Misses } from './misses.ts'
import { isTag, Named } from './named.ts'
import { findAny, findNamed, looksFor, onlyOf } from './references.ts'
import { Sight, type Unseen } from './sight.ts'
import { isRowOf, type Key, labelColumn, type Row } from './statements.ts'
import type { Step } from './step.ts'
import type { Asked, World } from './world.ts'

/** The fields of an entry with keys instead of references. A reference that cannot be replaced is undefined, with an error. */
export type Resolved = {
  readonly identifiers: ReadonlyMap<string, unknown>
  /** All fields: those of the identifiers, and the others. */
  readonly values: ReadonlyMap<string, unknown>
  readonly errors: readonly FieldError[]
}

type At = {
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
  readonly world: World
  /** The rows to which `!KeyOf` refers, by the entry's id. */
  readonly #keys = new Map<string, Key>()
  /** Those that were found before the turn of their entries. */
  readonly #keysAhead = new Map<string, Key>()
  readonly #loader: Loader
  readonly #submitter: Actor | Promise<Actor>
  readonly #misses: Misses
  readonly #sight: Sight
  /** Whether the turn of the entries has not come. */
  #isAhead = false
  #unseen: Unseen[] = []

  constructor(loader: Loader, actor: Actor | Promise<Actor>) {
    this.world = loader.world
    this.#loader = loader
    this.#submitter = actor
    this.#misses = new Misses(loader.reader)
    this.#sight = new Sight(loader.world)
  }

  /** The submitter. It is awaited before the turn of the first entry. */
  async actor(): Promise<Actor> {
    const actor = await this.#submitter
    this.#sight.actor = actor
    this.#misses.actor = actor
    return actor
  }

  /** Does work on the world, and does it again until all is loaded that it asks for. */
  async walk<Result>(work: () => Result): Promise<Result> {
    for (;;) {
      const { result, asked } = this.world.asking(work)
      const isLoaded = await this.#loader.load(asked)
      if (!(await this.#misses.load()) && !isLoaded) return result
    }
  }

  /** Does work for an entry whose turn has not come. @returns what it asks for: the rest of its result is not known yet */
  async ahead(work: () => void): Promise<Asked> {
    this.#isAhead = true
    const { asked } = this.world.asking(work)
    this.#isAhead = false
    if (this.#sight.actor !== undefined || !this.#sight.isAwaited) return asked
    await this.actor()
    return this.ahead(work)
  }

  /**
   * Evaluates the conditions that need the database. All others are known when a document is read.
   *
   * @returns the step, with the errors of its conditions; null when they are false
   */
  evaluateConditions(step: Step): Step | null {
    for (const condition of step.conditions ?? []) {
      const errors = new ErrorList()
      const isHeld = this.#evaluated(condition, isTrue, { path: [...step.path, 'conditions'], errors }, true)
      if (errors.any) return { ...step, conditionErrors: errors.list }
      if (!isHeld) return null
    }
    return step
  }

  entry(step: Step): Resolved {
    const context = { errors: new ErrorList(), path: step.path }
    const identifiers = this.#fields(step, step.identifiers, context)
    const attrs = this.#fields(step, step.attrs, context)
    const values = new Map([...identifiers, ...attrs].filter(([name]) => name !== 'pk'))
    return { identifiers, values, errors: context.errors.list }
  }

  #fields(step: Step, sent: ReadonlyMap<string, unknown>, context: At): ReadonlyMap<string, unknown> {
    const values = new Map<string, unknown>()
    for (const [name, value] of sent) {
      const at = { ...context, path: [...step.path, name] }
      const reference = step.model.fields.get(name)?.reference
      const key = this.#value(value, reference, at)
      // A caller who may not write for others gets the same denial for a user who exists and for one who does not.
      const isOwner = value instanceof Named && name === step.model.owner
      values.set(name, isOwner ? (key ?? noRow) : key)
    }
    return values
  }

  #value(value: unknown, reference: Reference | undefined, at: At): unknown {
    if (value instanceof Deferred) {
      // An evaluation may take long: it waits for its turn.
      if (this.#isAhead) return this.findAll(value.value)
      const known = this.#evaluated(value.value, (found) => value.check(found, at.path, at.errors), at)
      return known instanceof ListEdit ? this.#value(known, reference, at) : known
    }
    if (value instanceof ListEdit) {
      const inList = (word: 'add' | 'remove') => ({ ...at, path: [...at.path, word] })
      const add = this.#value(value.add, reference, inList('add'))
      const edit = new ListEdit(add, this.#value(value.remove, reference, { ...inList('remove'), isRemoved: true }))
      refuseBoth(edit, at.path, at.errors)
      return edit
    }
    if (isTag(value)) return this.#keyOf(value, reference, at)
    if (!Array.isArray(value) || !value.some(isTag)) return value
    const keys = value.map((item: unknown, index) =>
      // Names in a list have places of their own, and tags have that of the list.
      isTag(item)
        ? this.#keyOf(item, reference, item instanceof Named ? { ...at, path: [...at.path, index] } : at)
        : item,
    )
    if (value.some((item) => item instanceof Named) && hasTwice(keys))
      at.errors.add(at.path, 'duplicate', 'Must not hold a key twice.')
    return keys
  }

  /** The look-ups since the last call that the caller may not do. */
  unseen(): readonly Unseen[] {
    const unseen = this.#unseen
    this.#unseen = []
    return unseen
  }

  /** Whether the caller may view a row: by permission, or as its owner. */
  views = (model: Model, row: Row): boolean => this.#sight.row(model, row)

  /** A row in messages; null for one that the caller may not view. */
  nameOf = (model: Model, row: Row): string | null =>
    this.views(model, row) ? `${model.displayName} ${JSON.stringify(row[labelColumn(model)])}` : null

  /** Remembers the key of the row that an entry names. */
  found({ id }: Step, key: Key | undefined): void {
    const keys = this.#isAhead ? this.#keysAhead : this.#keys
    if (id !== undefined && key !== undefined) keys.set(id, key)
  }

  wrote = (step: Step): void => this.#sight.wrote(step)

  /** What `check` makes of the value of tags; undefined for tags without a value. @param asks whether only its truth counts */
  #evaluated<Result>(
    value: unknown,
    check: (found: unknown) => Result,
    { path, errors }: At,
    asks = false,
  ): Result | undefined {
    try {
      const evaluation = evaluate(value, { ...scopeOf(value), asks })
      let next = evaluation.next()
      while (next.done !== true) next = evaluation.next(this.#lookUp(next.value))
      return check(next.value)
    } catch (error) {
      if (!(error instanceof TagError)) throw error
      errors.add(path, 'invalid_value', error.message)
      return undefined
    }
  }

  /** @throws {TagError} for a tag without a value; a missing row is none where only the existence of the row counts */
  #lookUp({ tag, asks }: Lookup): KeyValue | null {
    if (tag instanceof KeyOf) {
      const key = this.#keys.get(tag.id)
      if (key !== undefined) return new KeyValue(key, tag)
      if (asks) return null
      throw new TagError(undefined, skipped(tag))
    }
    const identifiers = Object.entries(tag.identifiers).map(
      ([name, value]) => [name, value instanceof KeyValue ? value.key : value] as const,
    )
    const found = this.#find(new Find(tag.model, Object.fromEntries(identifiers)))
    if ('row' in found) return new KeyValue(found.row.pk, tag)
    const { code, message } = found.error()
    if (asks && code === 'no_such_row') return null
    throw new TagError(undefined, message)
  }

  #keyOf(tag: KeyOf | Find | Named, reference: Reference | undefined, context: At): unknown {
    const { errors, path, isRemoved } = context
    if (tag instanceof KeyOf) {
      const key = this.#keys.get(tag.id) ?? (this.#isAhead ? this.#keysAhead.get(tag.id) : undefined)
      if (key === undefined) errors.add(path, 'unknown_entry', skipped(tag))
      return key
    }
    const found = tag instanceof Named ? this.#named(tag, reference) : this.#find(tag)
    if ('row' in found) return found.row.pk
    // An earlier entry may write it.
    if (this.#isAhead) return undefined
    const { code, message } = found.error()
    // A missing row need not be removed: the same document again is unchanged.
    if (!isRemoved || (code !== 'unknown_name' && code !== 'no_such_row')) errors.add(path, code, message)
    return undefined
  }

  #named({ name }: Named, reference: Reference | undefined): LookedUp {
    const target = this.world.registry.targets.get(reference?.target ?? '')
    if (target === undefined || reference === undefined)
      throw new Error(`compile let a name through that refers to nothing: ${name}`)
    const denied = this.#sight.name(name, target)
    if (denied !== null) return this.#denied(denied, name)
    if (!this.world.knows(looksFor(name, target))) return notLoaded
    const only = onlyOf(this.world.registry, reference)
    const match = findNamed(this.world, name, target, only, (row) => this.#sight.shows(target, row))
    return match.is === 'row' ? match : { error: () => this.#misses.errorOf({ name, target, only }, match) }
  }

  #find(tag: Find): LookedUp {
    const model = this.world.registry.byName(tag.model)
    if (model === undefined) throw new Error(`compile let an unknown model through: ${tag.model}`)
    const refuse = (code: ErrorCode, why: string): LookedUp => ({
      error: () => ({ message: `!Find ${tag.model}${why}`, code }),
    })
    const named = Object.entries(tag.identifiers)
    if (named.length === 0 || named.some(([name]) => storedIn(model, name) === undefined))
      return refuse('unknown_field', `: each field must be one of the model's own.`)
    for (const [name, value] of named) {
      const error = storable(String(value))
      if (error !== undefined) return refuse('invalid_text', `: ${name}: ${error}`)
    }
    const denied = this.#sight.find(model, tag.identifiers)
    if (denied !== null) return this.#denied(denied, `!Find ${tag.model}`)
    const look = finding(this.world.registry, tag)
    const looks = look === undefined ? [] : [look]
    if (!this.world.knows(looks)) return notLoaded
    const shows = (row: Row) => isRowOf(model, row) && this.#sight.shows({ table: model.table, models: [model] }, row)
    const [row, another] = findAny(this.world, looks).filter(shows)
    const which = ` ${JSON.stringify(tag.identifiers)}`
    if (row === undefined) return refuse('no_such_row', `${which} finds nothing.`)
    return another === undefined ? { row } : refuse('ambiguous', `${which} finds more than one row.`)
  }

  /** Asks for what each `!Find` in a value finds. */
  findAll(value: unknown): void {
    for (const tag of lookupsIn(value)) if (tag instanceof Find) this.#find(tag)
  }

  /** The judge denies the document: no other error is reported. */
  #denied(denied: Unseen, what: string): LookedUp {
    return {
      error: () => {
        if (!this.#isAhead) this.#unseen.push(denied)
        return { code: 'invalid_value', message: `${what} may not be looked up.` }
      },
    }
  }
}

type LookedUp = { readonly row: Row } | { readonly error: () => { readonly code: ErrorCode; readonly message: string } }

/** Stands in place of a row until the walk is repeated. */
const notLoaded: LookedUp = { error: () => ({ code: 'invalid_value', message: 'The row is not loaded.' }) }

/** Stands in place of the key of an owner that does not exist. */
const noRow = Symbol('no row')

function hasTwice(items: readonly unknown[]): boolean {
  const keys = items.filter((item) => item !== undefined)
  return new Set(keys).size < keys.length
}

const skipped = ({ id }: KeyOf) => `!KeyOf ${id} names an entry that is skipped: it has no key.`
