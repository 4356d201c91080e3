import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Reference } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './compile.ts'
import { keysNamed } from './edited-lists.ts'
import { hasTag } from './key-tags.ts'
import { ListEdit } from './list-edit.ts'
import { overlaid } from './overlay.ts'
import type { Resolved, Resolver } from './resolve.ts'
import {
  type Asked,
  type EntryQuestion,
  keyRow,
  keyStatement,
  referenceName,
  type Seen,
  type StepUse,
  seen,
  shapeOf,
  snapshotOfMany,
  snapshotStatement,
} from './snapshot-sql.ts'
import { exclusiveLinks, linksOf } from './statements.ts'
import { keysOf, storedKeys } from './storage.ts'
import { waysToFind } from './ways-to-find.ts'
import type { World } from './world.ts'

/**
 * The rows that concern the entries of a document, as they are after the entries before. Some are prefetched, the others are read
 * later.
 */
export type Snapshot = {
  entry(step: Step, sent: Resolved): Promise<Seen>
}

type Use = {
  /** Whether keys of new rows are taken from their sequences: only for a document that will be written. */
  readonly takesKeys: boolean
  /** Whether links that may be very many are read where no entry needs them: a plan has their digest. */
  readonly readsAll: boolean
}

/** The prefetched answer for an entry, with its question. */
type Ahead = EntryQuestion & { readonly seen: Seen }

const answerRow = z.object({ seen: z.array(seen) })

const maxAhead = 500

/** The most entries that are prefetched by one statement for all. More are prefetched by one for each shape of question. */
const maxTogether = 2

/**
 * Prefetches the rows of the next entries, and those that they look up. Nearly every document is an application and its provider:
 * one statement. A set takes one for each model in the next 500 entries.
 */
export async function openSnapshot(
  reader: EngineReader,
  registry: Registry,
  steps: readonly Step[],
  resolver: Resolver,
  world: World,
  { takesKeys, readsAll }: Use,
): Promise<Snapshot> {
  const places = steps.length > maxAhead ? new Map(steps.map((step, index) => [step, index])) : undefined
  let ahead: ReadonlyMap<Step, Ahead> = new Map()
  const takesKey = ({ state }: Step) => takesKeys && state !== 'absent'
  const use = (step: Step): StepUse => ({ takesKey: takesKey(step), links: linksRead(step, readsAll) })

  const readAhead = async (from: number) => {
    const next = steps.slice(from, from + maxAhead)
    await resolver.readAhead(next)
    ahead = await readTogether(reader, registry, plainQuestions(next, resolver, use))
  }
  await readAhead(0)

  const readNow = async (step: Step, asked: Asked): Promise<Seen> => {
    const question = { takesKey: false, links: use(step).links, ...asked }
    const [answer] = await reader.query(answerRow, snapshotStatement(registry, [{ model: step.model, question }]))
    const [seen] = answer?.seen ?? []
    if (seen === undefined) throw new Error('a snapshot answered nothing')
    return seen
  }
  const takeKey = async (model: Step['model']): Promise<number | null> => {
    const [row] = await reader.query(keyRow, keyStatement(model))
    return row?.key ?? null
  }

  return {
    entry: async (step, sent) => {
      const { model } = step
      const place = places?.get(step)
      if (place !== undefined && place > 0 && place % maxAhead === 0) await readAhead(place)
      const found = ahead.get(step)
      const asked = questionOf(model, sent)
      const read =
        found !== undefined && covers(found, asked, registry, world) ? found.seen : await readNow(step, asked)
      const seen = overlaid(world, registry, model, asked, read)
      const [row, another] = seen.rows
      if (row === undefined && model.key === 'integer' && takesKey(step))
        return { ...seen, newKey: found?.seen.newKey ?? read.newKey ?? (await takeKey(model)) }
      // The row was found by a name that an earlier entry gave: its links were not read.
      const isRead = use(step).links.every((name) => row?.links?.[name] !== undefined)
      if (row === undefined || another !== undefined || isRead) return seen
      const byKey = { ...asked, by: new Map([['pk', row.pk]]) }
      const again = overlaid(world, registry, model, byKey, await readNow(step, byKey))
      return again.rows.length === 0 ? seen : again
    },
  }
}

async function readTogether(
  reader: EngineReader,
  registry: Registry,
  questions: ReadonlyMap<Step, EntryQuestion>,
): Promise<ReadonlyMap<Step, Ahead>> {
  const groups =
    questions.size <= maxTogether
      ? [[...questions]]
      : Map.groupBy(questions, ([, question]) => shapeOf(question)).values()
  const ahead = new Map<Step, Ahead>()
  for (const group of groups) {
    if (group.length === 0) continue
    const asked = group.map(([, question]) => question)
    const statement = questions.size <= maxTogether ? snapshotStatement : snapshotOfMany
    const [answer] = await reader.query(answerRow, statement(registry, asked))
    for (const [index, [step, question]] of group.entries()) {
      const seen = answer?.seen[index]
      if (seen !== undefined) ahead.set(step, { ...question, seen })
    }
  }
  return ahead
}

/** The questions of the entries as far as they are known before their turn: keys behind unknown tags are left out. */
function plainQuestions(
  steps: readonly Step[],
  resolver: Resolver,
  use: (step: Step) => StepUse,
): ReadonlyMap<Step, EntryQuestion> {
  const questions = new Map<Step, EntryQuestion>()
  for (const step of steps) {
    const { model } = step
    const identifiers = resolver.knownFields(step, step.identifiers)
    if (identifiers.size < step.identifiers.size) continue
    const attrs = resolver.knownFields(step, step.attrs)
    const fields = new Map([...identifiers, ...attrs].filter(([name]) => name !== 'pk'))
    const looked = [...step.attrs].filter(([name, value]) => attrs.has(name) && hasTag(value))
    const known = new Set(looked.flatMap(([name]) => allKeys(attrs.get(name))))
    const sent = { identifiers, values: fields, errors: [], known }
    questions.set(step, { model, question: { ...use(step), ...questionOf(model, sent) } })
  }
  return questions
}

const linksRead = ({ model, state, attrs }: Step, readsAll: boolean): string[] =>
  linksOf(model).flatMap(([{ name }, { many = false }]) =>
    !many || readsAll || state === 'absent' || attrs.has(name) ? [name] : [],
  )

function questionOf(model: Step['model'], { identifiers, values, known }: Resolved): Asked {
  // References are checked even when the entry's row cannot be found yet.
  const usable = [...identifiers.values()].every((value) => value !== undefined && typeof value !== 'symbol')
  const finding = new Set(waysToFind(model, [...identifiers.keys()]).flat())
  const by = new Map(usable ? [...identifiers].filter(([name]) => finding.has(name)) : [])
  const referred: Map<string, { reference: Reference; keys: (string | number)[] }> = new Map()
  const exclusive = new Map<string, (string | number)[]>()
  const claims = new Map<string, (string | number)[]>()
  const within = new Map<string, readonly (string | number)[]>()
  for (const [name, value] of values) {
    const field = model.fields.get(name)
    const named = keysNamed(value)
    if (named !== undefined && field?.storage.in === 'link' && field.storage.many) within.set(name, named)
    const reference = field?.reference
    const isExclusive =
      field?.folded === true ||
      model.unique.includes(name) ||
      exclusiveLinks(model).some(([field]) => field.name === name)
    if (reference === undefined && !isExclusive) continue
    const keys = keysOf(value instanceof ListEdit ? value.add : value)
    const all = allKeys(value)
    // A look-up does not show whether the row fits now.
    const unknown = reference?.only?.atFirst ? all : all.filter((key) => !known.has(key))
    if (reference !== undefined && unknown.length > 0)
      referred.getOrInsertComputed(referenceName(reference), () => ({ reference, keys: [] })).keys.push(...unknown)
    if (keys.length === 0) continue
    if (isExclusive) exclusive.set(name, keys)
    if (model.claims?.includes(name) || reference?.needs !== undefined) claims.set(name, keys)
  }
  const [counted] = model.limit === undefined ? [] : keysOf(values.get(model.limit.per))
  return { by, within, referred, exclusive, claims, counted }
}

const allKeys = (value: unknown) => keysNamed(value) ?? keysOf(value)

/**
 * Whether the prefetched answer covers the question of the entry now. Keys behind tags may not have been known: that matters
 * where another row could have them. No row outside of the document refers to one that the document creates.
 */
function covers({ model, question, seen }: Ahead, asked: Asked, { targets }: Registry, world: World): boolean {
  const [row] = seen.rows
  const entryOf = (reference: Reference | undefined, key: string | number) =>
    world.entryOf(targets.get(reference?.target ?? '')?.table ?? '', key)
  const isCovered = (name: string, keys: readonly (string | number)[], before: readonly unknown[] = []) => {
    const field = model.fields.get(name)
    const had = new Set<unknown>([
      ...before,
      ...(row === undefined || field === undefined ? [] : storedKeys(field, row)),
    ])
    return keys.every((key) => had.has(key) || entryOf(field?.reference, key)?.isNew === true)
  }
  const { by, within, exclusive, claims, referred, counted } = asked
  return (
    [...by].every(([name, value]) => question.by.get(name) === value) &&
    [...within].every(([name, keys]) => isCovered(name, keys, question.within.get(name))) &&
    [...exclusive].every(([name, keys]) => isCovered(name, keys, question.exclusive.get(name))) &&
    [...claims].every(([name, keys]) => isCovered(name, keys, question.claims.get(name))) &&
    [...referred].every(([name, { reference, keys }]) => {
      const before = question.referred.get(name)?.keys
      return keys.every((key) => before?.includes(key) || entryOf(reference, key) !== undefined)
    }) &&
    (counted === undefined || isCovered(model.limit?.per ?? '', [counted], [question.counted]))
  )
}
