import type { z } from 'zod'
import { type Blueprint, type Entry, type Find, KeyOf } from '../document/document.ts'
import { isForNew, isGenerate, isKept, isOverlap, isUnset, isWithOverlap } from '../document/generate.ts'
import { ErrorList, type ErrorSink, type FieldPath } from '../errors.ts'
import type { JsonObject } from '../json-object.ts'
import { addIssues, unknownName } from '../messages.ts'
import type { Field, Model } from '../models/define.ts'
import { overlap } from '../models/overlap.ts'
import type { Registry } from '../models/registry.ts'
import { atOnce, inTurns } from '../turns.ts'
import { Deferred, isDeferred, withKeys } from './deferred.ts'
import type { Conditions } from './engine.ts'
import { editOf, isEdit, itemsOf } from './list-edit.ts'
import { checkLookup, checkLookups, findsIn, inCircle, maxFinds, skippedEntry, type Targets } from './lookups.ts'
import { isTag, keySchemas, listError, Named, nameError, withNames } from './named.ts'
import { inOrder, type Placed } from './order.ts'
import { refusePlaceholders } from './placeholders.ts'
import { wasOf } from './rename.ts'
import { withDefaults } from './reset.ts'
import { RowsNamed } from './rows-named.ts'
import { ForNew, generateNew, keptSecret, unsetSecret } from './secret-forms.ts'
import { type Step, skippedLine } from './step.ts'
import { unknownModel } from './unknown-model.ts'

/**
 * The checked entries, in the order in which they are judged. `errors` has those that are found without the database; `skipped` has a line of the log
 * for each entry whose conditions are false.
 */
export type Plan = { readonly steps: readonly Step[]; readonly errors: ErrorList; readonly skipped?: readonly string[] }

/**
 * Checks a document against the models. This is a pure function. It collects all errors, so that one answer reports them all.
 *
 * @param pathOf the path at which an entry's errors are reported
 */
export const compile = (blueprint: Blueprint, registry: Registry, pathOf?: PathOf, use?: Use): Plan =>
  atOnce(compiling(blueprint, registry, pathOf, use))

/** Does the same, in turns with other work of the process: a large document takes longer than others should wait. */
export const compileInTurns = (blueprint: Blueprint, registry: Registry, pathOf?: PathOf, use?: Use): Promise<Plan> =>
  inTurns(compiling(blueprint, registry, pathOf, use))

type PathOf = (entry: Entry, index: number) => FieldPath

/** @property reset whether fields that no entry names go back to their defaults */
type Use = Pick<Conditions, 'reset' | 'without'>

function* compiling(
  blueprint: Blueprint,
  registry: Registry,
  pathOf: PathOf = (_, index) => ['entries', index],
  { reset, without }: Use = { reset: false },
): Generator<void, Plan> {
  const errors = new ErrorList()
  const targets: Targets = new Map()
  const steps: Step[] = []
  const skipped: string[] = []
  const finds = new Set<string>()
  const rows = new RowsNamed()
  const left = new Set(without)
  const { entries } = blueprint
  const placed = entries.map((entry, index) => {
    // The row of a left entry with the state `created` exists, and other entries may refer to it.
    const isOut = entry.conditions?.includes(false) === true || (left.has(index) && entry.state !== 'created')
    return { entry, index, model: registry.byName(entry.model), isOut }
  })
  const { order, circles } = yield* inOrder(placed, registry)
  for (const circle of circles) {
    const message = `Refers to itself in a circle: ${wayOf(circle)}.`
    for (const { entry, index } of circle) {
      errors.of('entry').add(pathOf(entry, index), 'circle', message)
      if (entry.id !== undefined) targets.set(entry.id, inCircle)
    }
  }
  for (const { entry, index, model, isOut } of order) {
    yield
    const path = pathOf(entry, index)
    for (const find of findsIn([entry.identifiers, entry.attrs, entry.conditions])) finds.add(find)
    if (finds.size > maxFinds) {
      const message = `With this entry, the document looks up more than ${maxFinds} rows by !Find: send it in parts, or name rows where they are referred to.`
      errors.of('entry').add(path, 'too_long', message)
      return { steps: [], errors, skipped: [] }
    }
    if (isOut) {
      const name = model?.displayName ?? entry.model
      skipped.push(skippedLine(index, name, Object.values(entry.identifiers), left.has(index)))
      if (entry.id !== undefined) targets.set(entry.id, skippedEntry)
      continue
    }
    if (model === undefined) {
      errors.of('entry').add([...path, 'model'], 'unknown_model', () => unknownModel(entry.model, registry.models))
      continue
    }
    const overlaps = new Map<string, string>()
    const context: Context = { registry, model, targets, overlaps, errors, path }
    const was = wasOf(entry, model, path, errors.of('entry'))
    const owner = ownerOf(entry, model, path, errors.of('entry'))
    const ofEntry = { ...context, errors: errors.of('entry') }
    const isChecked = checkLookups(entry.conditions, [...path, 'conditions'], ofEntry, true)
    const conditions = entry.conditions && isChecked ? entry.conditions : undefined
    const step: Step = {
      id: entry.id,
      entry: index,
      model,
      state: entry.state,
      identifiers: checkIdentifiers(entry, { ...context, errors: errors.of('identifiers') }),
      attrs: checkFields(entry.attrs, { ...context, errors: errors.of('attrs') }),
      path,
      ...(was !== undefined && { was }),
      ...(owner !== undefined && { owner }),
      ...(entry.retain === true && { retain: true }),
      ...(conditions !== undefined && { conditions }),
      ...(left.has(index) && { isLeft: true }),
      ...(overlaps.size > 0 && { overlaps }),
    }
    if (!entry.conditions?.length) rows.addStep(step, index, registry, errors)
    steps.push(step)
    if (entry.id === undefined) continue
    const other = targets.get(entry.id)
    if (other !== undefined && other !== inCircle)
      errors.of('entry').add([...path, 'id'], 'duplicate_id', `Another entry is called ${entry.id} too.`)
    targets.set(entry.id, entry.state === 'absent' ? null : model.target)
  }
  return { steps: reset ? withDefaults(steps) : steps, errors, skipped }
}

const longestWay = 10

/** `group "a" -> group "b" -> group "a"` */
function wayOf(circle: readonly Placed[]): string {
  const names = circle.slice(0, longestWay).map(({ entry, model }) => {
    const [first] = Object.values(entry.identifiers)
    return `${model?.displayName ?? entry.model} ${JSON.stringify(first)}`
  })
  return [...names, ...(circle.length > longestWay ? ['...'] : []), ...names.slice(0, 1)].join(' -> ')
}

/** The label of an entry. One on a row that keeps none would have no effect: it is refused. */
function ownerOf({ owner }: Entry, { displayName, isLabelled }: Model, path: FieldPath, errors: ErrorSink) {
  if (isLabelled === true) return owner
  if (typeof owner === 'string')
    errors.add([...path, 'owner'], 'not_stored', `No owner is kept of a ${displayName}: leave this out.`)
  return undefined
}

type Context = {
  registry: Registry
  model: Model
  targets: Targets
  /** The overlaps that the entry requests. */
  overlaps: Map<string, string>
  errors: ErrorSink
  path: FieldPath
}

function checkIdentifiers(entry: Entry, context: Context): Map<string, unknown> {
  const { model, errors, path } = context
  const names = Object.keys(entry.identifiers)
  const sets = [['pk'], ...model.identifiers]
  const fits = sets.some((set) => set.every((field) => names.includes(field)))
  if (!fits) {
    const [first = []] = model.identifiers
    for (const field of first)
      if (!names.includes(field)) errors.add([...path, field], 'required', 'This field is required.')
    if (first.length === 0) errors.add(path, 'required', 'The entry has no identifiers.')
  }
  const sent = { ...entry.identifiers }
  for (const name of names) {
    const storage = model.fields.get(name)?.storage
    if (storage === undefined || (storage.in === 'column' && !storage.json)) continue
    errors.add([...path, name], 'not_an_identifier', 'No row can be found by this field: move it to attrs.')
    delete sent[name]
  }
  return checkFields(sent, context, { ...pkField, schema: keySchemas[model.key] })
}

const pkField = {
  name: 'pk',
  required: false,
  initial: undefined,
  reference: undefined,
  folded: false,
  isSet: false,
  isFree: false,
  storage: { in: 'column', column: 'pk', json: false },
} as const

/** @param key the field `pk` among identifiers, where it finds a row; omitted for attributes, where it is read-only */
function checkFields(sent: Readonly<Record<string, unknown>>, context: Context, key?: Field): Map<string, unknown> {
  const { model, errors, path } = context
  const checked = new Map<string, unknown>()
  for (const [name, value] of Object.entries(sent)) {
    const field = name === 'pk' ? key : model.fields.get(name)
    if (field !== undefined) {
      const check = key === undefined ? checkAttribute : checkValue
      checked.set(name, checkTagged(value, field, check, context))
    } else if (model.alwaysNull?.includes(name)) {
      if (value !== null) errors.add([...path, name], 'not_stored', 'This is not stored: leave it out, or send null.')
    } else if (!model.readOnly.includes(name)) {
      errors.add([...path, name], 'unknown_field', () => unknownName('field', name, model.fields.keys()))
    }
  }
  return checked
}

function checkTagged(value: unknown, field: Field, check: typeof checkValue, context: Context): unknown {
  const isLater = isDeferred(value) && !isEdit(field, value)
  return isLater ? defer(value, field, check, context) : check(value, field, context)
}

/** The value of a field that depends on the database: it is checked once it is known. */
function defer(value: unknown, field: Field, check: typeof checkValue, context: Context): Deferred | undefined {
  const { path, registry, targets } = context
  if (!checkLookups(value, [...path, field.name], context)) return undefined
  const targetOf = (tag: KeyOf | Find) => {
    const target = tag instanceof KeyOf ? targets.get(tag.id) : registry.byName(tag.model)?.target
    return typeof target === 'string' ? target : undefined
  }
  return new Deferred(value, (found, at, errors) => {
    const sent = withKeys(found, field, registry, targetOf)
    const checked = check(sent, field, { ...context, path: at.slice(0, -1), errors })
    if (!itemsOf(checked).some((each) => each instanceof Named)) return checked
    errors.add(at, 'wrong_reference', 'A name cannot come out of tags that depend on the database: write !Find there.')
    return undefined
  })
}

/** Checks the value of a field. `null` stands for the default of a field that has one, unless null is a value of its own. */
function checkAttribute(sent: unknown, field: Field, context: Context): unknown {
  const { initial, generate, schema } = field
  if (sent === null && !schema.safeParse(null).success) {
    if (initial !== undefined) return initial
    if (generate !== undefined) {
      const message = 'May not be null: leave this field out to keep it, or send {"generate": true} for a new one.'
      return void context.errors.add([...context.path, field.name], 'wrong_type', message)
    }
  }
  if (isEdit(field, sent)) {
    const at = [...context.path, field.name]
    return editOf(sent, at, context.errors, (list, word) =>
      checkTagged(list, { ...field, name: word }, checkValue, { ...context, path: at }),
    )
  }
  if (field.secret && isForNew(sent)) {
    if (isUnset(sent.create)) return unsetSecret(sent.create.env)
    const value = checkSent(sent.create, field, context)
    return value instanceof ForNew ? value : new ForNew(value)
  }
  if (field.overlap && isWithOverlap(sent)) return checkOverlap(sent, field, context)
  return generate !== undefined && isGenerate(sent) ? generateNew : checkSent(sent, field, context)
}

function checkSent(sent: unknown, field: Field, context: Context): unknown {
  if (field.secret && isKept(sent)) return keptSecret(field, sent)
  const at = [...context.path, field.name]
  const checked = refusePlaceholders(sent, field, at, context.errors) ? undefined : checkValue(sent, field, context)
  // The object of a secret may be sent as its text.
  return field.secret && isKept(checked) ? keptSecret(field, checked) : checked
}

/** Checks `{"generate": true, "overlap": "hours=24"}` or `{"value": "...", "overlap": "hours=24"}`. */
function checkOverlap({ overlap: time, ...asked }: JsonObject, field: Field, context: Context): unknown {
  const at = [...context.path, field.name]
  if (isOverlap(time)) context.overlaps.set(field.name, time)
  else if (typeof time === 'string') context.errors.add([...at, 'overlap'], 'wrong_format', overlap(time) ?? '')
  else context.errors.add([...at, 'overlap'], 'wrong_type', 'Must be text.')
  if (isGenerate(asked)) return generateNew
  if (Object.keys(asked).join() === 'value') return checkSent(asked.value, field, context)
  const message = 'Takes either "generate": true or "value" beside "overlap", and nothing else.'
  return void context.errors.add(at, 'invalid_combination', message)
}

/** @returns the value as it will be stored; undefined for a value with errors, and for each key of a list with errors */
function checkValue(sent: unknown, field: Field, context: Context): unknown {
  const { errors, path, registry } = context
  const at = [...path, field.name]
  const target = registry.targets.get(field.reference?.target ?? '')
  const value = withNames(sent, target)
  if (isTag(value) && !(value instanceof Named && field.reference?.many === true))
    return checkTag(value, field, at, context)
  if (Array.isArray(value) && value.some(isTag) && field.reference?.many !== false) {
    const isNamed = value.some((item) => item instanceof Named)
    const error = target !== undefined && isNamed ? listError(field, target, value.length) : undefined
    if (error !== undefined) return void errors.add(at, error.code, error.message)
    return value.flatMap((item, index) =>
      isTag(item) ? [checkTag(item, field, [...at, index], context)] : parseValue([item], field, at, errors, index),
    )
  }
  return parseValue(sent, field, at, errors)
}

/** @param from the index in the document's list of the first item of `value` */
function parseValue(value: unknown, field: Field, at: FieldPath, errors: ErrorSink, from = 0): unknown {
  const parsed = field.schema.safeParse(value)
  if (parsed.success) return parsed.data
  const found = new ErrorList()
  addIssues(found, withoutConsequences(parsed.error.issues), { input: value })
  for (const { path, code, message } of found.list) {
    const [index, ...inside] = path
    errors.add([...at, ...(typeof index === 'number' ? [index + from, ...inside] : path)], code, message)
  }
  return field.reference?.many === true && Array.isArray(value) ? validKeys(value, field) : undefined
}

/** The valid keys of a list with errors. The judge checks them too, so that missing rows are reported as well. */
const validKeys = (list: readonly unknown[], { schema }: Field): unknown[] =>
  list.flatMap((key) => schema.safeParse([key]).data ?? [undefined])

/** Removes the other errors of a value that has the wrong type: they follow from it. */
function withoutConsequences(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const pathOf = ({ path }: z.core.$ZodIssue) => JSON.stringify(path.map(String))
  const mistyped = new Set(issues.filter(({ code }) => code === 'invalid_type').map(pathOf))
  return issues.filter((issue) => issue.code === 'invalid_type' || !mistyped.has(pathOf(issue)))
}

function checkTag(tag: KeyOf | Find | Named, field: Field, at: FieldPath, context: Context): unknown {
  const { registry, errors } = context
  if (tag instanceof Named) {
    const error = nameError(tag)
    if (error === undefined) return tag
    return void errors.add(at, error.code, error.message)
  }
  const target = field.reference === undefined ? undefined : registry.targets.get(field.reference.target)
  if (target === undefined) {
    const message = 'Takes a plain value: !KeyOf and !Find stand only where a row is referred to.'
    return void errors.add(at, 'wrong_reference', message)
  }
  const found = checkLookup(tag, at, context)
  if (found === undefined) return undefined
  const name = tag instanceof KeyOf ? `!KeyOf ${tag.id}` : `!Find ${tag.model}`
  if (registry.targets.get(found)?.table !== target.table)
    errors.add(at, 'wrong_reference', `${name} is a ${found}: a ${field.reference?.target} is needed.`)
  return tag
}
