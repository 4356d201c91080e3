import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import type { Statement } from '../db/raw.ts'
import { KeyOf } from '../document/document.ts'
import type { Reference } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './compile.ts'
import { hasTag, type Keys, pending } from './resolve.ts'
import {
  type EntryQuestion,
  type Question,
  referenceName,
  type Seen,
  seen,
  shapeOf,
  snapshotOfMany,
  snapshotStatement,
  waysToFind,
} from './snapshot-sql.ts'
import { exclusiveLinks, quoted } from './statements.ts'
import { keysOf } from './storage.ts'
import { type Ahead, type Effect, Written } from './written.ts'

/** What the database holds about the entries of a document. What is not read ahead is read when its entry is due. */
export type Snapshot = {
  /**
   * @param identifiers of the entry, with tags replaced by keys
   * @param sent all its fields, with tags replaced by keys
   */
  entry(
    step: Step,
    identifiers: ReadonlyMap<string, unknown>,
    sent: ReadonlyMap<string, unknown>,
    keys: Keys,
  ): Promise<Seen>
  /** Takes down an entry that was written. Entries that it may affect are read again. */
  wrote(effect: Effect): void
  /** Reads that have the same answer until an entry is written. */
  readonly unwritten: EngineReader
}

type Use = {
  /** Take the keys of new rows from their sequences: only for a document that will be written. */
  readonly takesKeys: boolean
}

const answerRow = z.object({ seen: z.array(seen) })

/** How many entries are read ahead. */
const maxAhead = 500

/** So many entries are read ahead by one statement that asks for each; of more, by one for each shape of question. */
const maxTogether = 2

/**
 * Reads ahead what the next entries need. Nearly every document is an application and its provider: one statement. Of a
 * set, one for each model in the next 500 entries. Entries that an earlier one affects are read one by one.
 */
export async function openSnapshot(
  reader: EngineReader,
  registry: Registry,
  steps: readonly Step[],
  { takesKeys }: Use,
): Promise<Snapshot> {
  const places = steps.length > maxAhead ? new Map(steps.map((step, index) => [step, index])) : undefined
  let ahead: ReadonlyMap<Step, Ahead> = new Map()
  let written = new Written(registry)
  const known = new Map<string, { readonly text: string; readonly rows: Promise<unknown[]> }>()
  const takesKey = ({ state }: Step) => takesKeys && state !== 'absent'

  const readAhead = async (from: number) => {
    written = new Written(registry)
    ahead = await readTogether(reader, registry, plainQuestions(steps.slice(from, from + maxAhead), takesKey))
  }
  await readAhead(0)

  return {
    entry: async (step, identifiers, sent, keys) => {
      const place = places?.get(step)
      if (place !== undefined && place > 0 && place % maxAhead === 0) await readAhead(place)
      const found = ahead.get(step)
      if (found !== undefined && isComplete(found.seen, step, sent, keys) && !written.affects(found)) return found.seen
      // A key that was taken ahead is not taken twice.
      const newKey = found?.seen.newKey ?? null
      const question = { takesKey: takesKey(step) && newKey === null, ...questionOf(step.model, identifiers, sent) }
      const [answer] = await reader.query(answerRow, snapshotStatement(registry, [{ model: step.model, question }]))
      const [seen] = answer?.seen ?? []
      if (seen === undefined) throw new Error('a snapshot answered nothing')
      return newKey !== null && seen.rows.length === 0 ? { ...seen, newKey } : seen
    },
    wrote: (effect) => {
      written.add(effect)
      const table = quoted(effect.step.model.table)
      for (const [key, { text }] of known) if (text.includes(table)) known.delete(key)
    },
    unwritten: {
      query: <Row>(row: z.ZodType<Row>, statement: Statement) => {
        const { text, values } = statement
        const read = () => ({ text, rows: reader.query(row, statement) })
        return known.getOrInsertComputed(JSON.stringify([text, values]), read).rows as Promise<Row[]>
      },
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

/** What the entries ask as far as it is known before they are due: without the keys behind tags. */
function plainQuestions(steps: readonly Step[], takesKey: (step: Step) => boolean): ReadonlyMap<Step, EntryQuestion> {
  const questions = new Map<Step, EntryQuestion>()
  for (const step of steps) {
    const { model, identifiers } = step
    if ([...identifiers.values()].some(hasTag)) continue
    const plain = new Map([...identifiers, ...step.attrs].filter(([name, value]) => name !== 'pk' && !hasTag(value)))
    questions.set(step, { model, question: { takesKey: takesKey(step), ...questionOf(model, identifiers, plain) } })
  }
  return questions
}

function questionOf(
  model: Step['model'],
  identifiers: ReadonlyMap<string, unknown>,
  sent: ReadonlyMap<string, unknown>,
): Omit<Question, 'takesKey'> {
  // References are checked even when the entry's row cannot be found yet.
  const usable = [...identifiers.values()].every((value) => value !== undefined && value !== pending)
  const finding = new Set(waysToFind(model, [...identifiers.keys()]).flat())
  const by = new Map(usable ? [...identifiers].filter(([name]) => finding.has(name)) : [])
  const referred: Map<string, { reference: Reference; keys: (string | number)[] }> = new Map()
  const exclusive = new Map<string, (string | number)[]>()
  const claims = new Map<string, (string | number)[]>()
  for (const [name, value] of sent) {
    const field = model.fields.get(name)
    const reference = field?.reference
    const isExclusive =
      field?.folded === true ||
      model.unique.includes(name) ||
      exclusiveLinks(model).some(([field]) => field.name === name)
    if (reference === undefined && !isExclusive) continue
    const keys = keysOf(value)
    if (keys.length === 0) continue
    if (reference !== undefined)
      referred.getOrInsertComputed(referenceName(reference), () => ({ reference, keys: [] })).keys.push(...keys)
    if (isExclusive) exclusive.set(name, keys)
    if (model.claims?.includes(name)) claims.set(name, keys)
  }
  const [counted] = model.limit === undefined ? [] : keysOf(sent.get(model.limit.per))
  return { by, referred, exclusive, claims, counted }
}

/**
 * Whether the answer that was read ahead covers the entry. The keys behind tags were not known: that matters for a
 * unique field, whose key another row could have, and for a limited one.
 */
function isComplete(seen: Seen, { model, attrs }: Step, sent: ReadonlyMap<string, unknown>, keys: Keys): boolean {
  return [...attrs].every(([name, value]) => {
    if (!hasTag(value)) return true
    if (value instanceof KeyOf && keys.get(value.id)?.isNew === true) return true
    const storage = model.fields.get(name)?.storage
    const isLimited = model.limit?.per === name
    const exclusive = model.unique.includes(name) || isLimited || (storage?.in === 'link' && storage.exclusive === true)
    const [row] = seen.rows
    return (
      value instanceof KeyOf && (!exclusive || (storage?.in === 'column' && row?.[storage.column] === sent.get(name)))
    )
  })
}
