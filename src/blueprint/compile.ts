import type { z } from 'zod'
import { Faults, type FieldPath } from '../errors.ts'
import { unknownName } from '../messages.ts'
import type { Member, Model } from '../models/define.ts'
import { int32, uuid } from '../models/fields.ts'
import type { Registry } from '../models/index.ts'
import { type Blueprint, type Entry, type EntryState, Find, KeyOf } from './document.ts'

/** One entry, checked against its model. References by tag are still tags: their keys are known only while applying. */
export type Step = {
  readonly id: string | undefined
  readonly model: Model
  readonly state: EntryState
  readonly identifiers: ReadonlyMap<string, unknown>
  readonly attrs: ReadonlyMap<string, unknown>
  /** Where the entry's faults stand in an answer: `['provider']`, or `['entries', 3]`. */
  readonly path: FieldPath
}

/** What will be looked at and written, in order. `faults` are those that the text alone shows. */
export type Plan = { readonly steps: readonly Step[]; readonly faults: Faults }

/** A value that compiles to no more than itself: an entry whose identifiers are unusable cannot be looked up. */
export const pkMember: Readonly<Record<'uuid' | 'integer', Member>> = {
  uuid: keyMember(uuid()),
  integer: keyMember(int32(1)),
}

function keyMember(schema: z.ZodType): Member {
  const place = { in: 'column', column: 'pk', json: false } as const
  return {
    name: 'pk',
    schema,
    required: false,
    initial: undefined,
    reference: undefined,
    secret: false,
    makeUp: undefined,
    time: false,
    place,
  }
}

/**
 * Checks a document against the models: pure, and complete, so that all faults are told at once.
 *
 * @param pathOf where an entry's faults stand in the answer
 */
export function compile(
  blueprint: Blueprint,
  registry: Registry,
  pathOf: (entry: Entry, index: number) => FieldPath = (_, index) => ['entries', index],
): Plan {
  const faults = new Faults()
  const families = new Map<string, string | null>()
  const steps: Step[] = []
  for (const [index, entry] of blueprint.entries.entries()) {
    const path = pathOf(entry, index)
    const model = registry.byName(entry.model)
    if (model === undefined) {
      faults.add(
        [...path, 'model'],
        unknownName(
          'model',
          entry.model,
          registry.models.map(({ name }) => name),
        ),
      )
      continue
    }
    const context: Context = { registry, model, families, faults, path }
    steps.push({
      id: entry.id,
      model,
      state: entry.state,
      identifiers: checkIdentifiers(entry, context),
      attrs: checkMembers(entry.attrs, context),
      path,
    })
    if (entry.id === undefined) continue
    if (families.has(entry.id)) faults.add([...path, 'id'], `Another entry is called ${entry.id} too.`)
    families.set(entry.id, entry.state === 'absent' ? null : model.family)
  }
  return { steps, faults }
}

type Context = {
  registry: Registry
  model: Model
  /** By entry id; null for an entry that leaves no row. */
  families: ReadonlyMap<string, string | null>
  faults: Faults
  path: FieldPath
}

function checkIdentifiers(entry: Entry, context: Context): Map<string, unknown> {
  const { model, faults, path } = context
  const names = Object.keys(entry.identifiers)
  const sets = [['pk'], ...model.identifiers]
  const fits = sets.some((set) => set.every((member) => names.includes(member)))
  if (!fits) {
    const [first = []] = model.identifiers
    for (const member of first) if (!names.includes(member)) faults.add([...path, member], 'This member is required.')
    if (first.length === 0) faults.add(path, 'The entry has no identifiers.')
  }
  for (const name of names) {
    const place = model.members.get(name)?.place
    const findsRows = place === undefined || (place.in === 'column' && !place.json)
    if (!findsRows) faults.add([...path, name], 'No row can be found by this member: move it to attrs.')
  }
  return checkMembers(entry.identifiers, context, pkMember[model.key])
}

/** @param key what `pk` must be: among identifiers it finds a row, among attributes it is only shown */
function checkMembers(sent: Readonly<Record<string, unknown>>, context: Context, key?: Member): Map<string, unknown> {
  const { model, faults, path } = context
  const checked = new Map<string, unknown>()
  for (const [name, value] of Object.entries(sent)) {
    const member = name === 'pk' ? key : model.members.get(name)
    if (member !== undefined) {
      checked.set(name, checkValue(value, member, context))
    } else if (!model.shown.includes(name)) {
      faults.add([...path, name], unknownName('member', name, model.members.keys()))
    }
  }
  return checked
}

/** @returns the value as it will be stored, or undefined when it has faults; so are faulty keys of a list of them */
function checkValue(value: unknown, member: Member, context: Context): unknown {
  const { faults, path } = context
  const at = [...path, member.name]
  if (value instanceof KeyOf || value instanceof Find) return checkTag(value, member, at, context)
  if (Array.isArray(value) && value.some((item) => item instanceof KeyOf || item instanceof Find)) {
    return value.flatMap((item, index) =>
      item instanceof KeyOf || item instanceof Find
        ? [checkTag(item, member, [...at, index], context)]
        : parseValue([item], member, at, faults, index),
    )
  }
  return parseValue(value, member, at, faults)
}

/** @param from where in the document's list the items of a given part of it begin */
function parseValue(value: unknown, member: Member, at: FieldPath, faults: Faults, from = 0): unknown {
  const parsed = member.schema.safeParse(value)
  if (parsed.success) return parsed.data
  for (const issue of withoutConsequences(parsed.error.issues)) {
    const [index, ...inside] = issue.path
    const place = [
      ...at,
      ...(typeof index === 'number' ? [index + from, ...inside] : issue.path).map((part) =>
        typeof part === 'symbol' ? String(part) : part,
      ),
    ]
    const keys = issue.code === 'unrecognized_keys' ? issue.keys : []
    for (const key of keys) faults.add([...place, key], 'Unknown member.')
    if (keys.length === 0) faults.add(place, issue.message)
  }
  return member.reference?.many === true && Array.isArray(value) ? soundKeys(value, member) : undefined
}

/** What the sound keys of a list name is looked for all the same: a row that is not there is one fault more. */
const soundKeys = (list: readonly unknown[], { schema }: Member): unknown[] =>
  list.flatMap((key) => schema.safeParse([key]).data ?? [undefined])

/** A value of the wrong type has that one fault, whatever else was measured of it. */
function withoutConsequences(issues: readonly z.core.$ZodIssue[]): z.core.$ZodIssue[] {
  const placeOf = ({ path }: z.core.$ZodIssue) => JSON.stringify(path.map(String))
  const mistyped = new Set(issues.filter(({ code }) => code === 'invalid_type').map(placeOf))
  return issues.filter((issue) => issue.code === 'invalid_type' || !mistyped.has(placeOf(issue)))
}

function checkTag(tag: KeyOf | Find, member: Member, at: FieldPath, { registry, families, faults }: Context): unknown {
  const target = member.reference === undefined ? undefined : registry.families.get(member.reference.family)
  if (target === undefined) {
    faults.add(at, 'Takes a plain value: !KeyOf and !Find stand only where a row is referred to.')
    return undefined
  }
  const found = tag instanceof KeyOf ? families.get(tag.id) : registry.byName(tag.model)?.family
  const name = tag instanceof KeyOf ? `!KeyOf ${tag.id}` : `!Find ${tag.model}`
  if (found === undefined) faults.add(at, `${name} names nothing that stands before this entry.`)
  else if (found === null) faults.add(at, `${name} names an entry that is absent: it has no key.`)
  else if (registry.families.get(found)?.table !== target.table)
    faults.add(at, `${name} is a ${found}: a ${member.reference?.family} is needed.`)
  return tag
}
