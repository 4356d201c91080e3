import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { KeyOf } from '../document/document.ts'
import type { Reference } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './compile.ts'
import { hasTag, type Keys, pending } from './resolve.ts'
import { type EntryQuestion, type Question, referenceName, type Seen, seen, snapshotStatement } from './snapshot-sql.ts'
import { exclusiveLinks } from './statements.ts'
import { keysOf } from './storage.ts'

/** What the database holds about the entries of a document. What is not prefetched is read on demand. */
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
}

type Use = {
  /** Take the keys of new rows from their sequences: only for a document that will be written. */
  readonly takesKeys: boolean
}

const answerRow = z.object({ seen: z.array(seen) })

/**
 * Prefetches, in one statement, what the first two entries need: nearly every document is an application and its
 * provider. Later entries, and those that an earlier entry may affect, are read one by one.
 */
export async function openSnapshot(
  reader: EngineReader,
  registry: Registry,
  steps: readonly Step[],
  { takesKeys }: Use,
): Promise<Snapshot> {
  const read = async (questions: readonly EntryQuestion[]): Promise<readonly Seen[]> => {
    if (questions.length === 0) return []
    const [answer] = await reader.query(answerRow, snapshotStatement(registry, questions))
    return answer?.seen ?? []
  }
  const questions = prefetchable(registry, steps, takesKeys)
  const answers = await read([...questions.values()])
  const prefetched = new Map([...questions.keys()].map((step, index) => [step, answers[index]]))
  return {
    entry: async (step, identifiers, sent, keys) => {
      const known = prefetched.get(step)
      if (known !== undefined && isComplete(known, step, sent, keys)) return known
      const { model } = step
      const [seen] = await read([{ model, question: { takesKey: false, ...questionOf(model, identifiers, sent) } }])
      if (seen === undefined) throw new Error('a snapshot answered nothing')
      return seen
    },
  }
}

const maxPrefetched = 2

function prefetchable(
  registry: Registry,
  steps: readonly Step[],
  takesKeys: boolean,
): ReadonlyMap<Step, EntryQuestion> {
  const questions = new Map<Step, EntryQuestion>()
  const written = new Set<string>()
  for (const step of steps.slice(0, maxPrefetched)) {
    const { model, identifiers, state } = step
    const plain = new Map([...identifiers, ...step.attrs].filter(([name, value]) => name !== 'pk' && !hasTag(value)))
    const isWritten = (name: string) =>
      written.has(registry.targets.get(model.fields.get(name)?.reference?.target ?? '')?.table ?? '')
    const isAffected = written.size > 0 && (written.has(model.table) || [...plain.keys()].some(isWritten))
    const byTag = [...identifiers.values()].some(hasTag)
    const takesKey = takesKeys && state !== 'absent'
    if (!byTag && !isAffected)
      questions.set(step, { model, question: { takesKey, ...questionOf(model, identifiers, plain) } })
    written.add(model.table)
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
  const referred: Map<string, { reference: Reference; keys: (string | number)[] }> = new Map()
  const claimed = new Map<string, (string | number)[]>()
  for (const [name, value] of sent) {
    const field = model.fields.get(name)
    const reference = field?.reference
    const isClaim =
      field?.folded === true ||
      model.unique.includes(name) ||
      exclusiveLinks(model).some(([field]) => field.name === name)
    if (reference === undefined && !isClaim) continue
    const keys = keysOf(value)
    if (keys.length === 0) continue
    if (reference !== undefined)
      referred.getOrInsertComputed(referenceName(reference), () => ({ reference, keys: [] })).keys.push(...keys)
    if (isClaim) claimed.set(name, keys)
  }
  const [counted] = model.limit === undefined ? [] : keysOf(sent.get(model.limit.per))
  return { by: usable ? identifiers : new Map(), referred, claimed, counted }
}

/**
 * Whether the prefetched answer covers the entry. The prefetch did not know the keys behind tags: that matters for a
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
