import type { Queryable } from '../db/client.ts'
import type { Registry } from '../models/index.ts'
import type { Step } from './compile.ts'
import { KeyOf } from './document.ts'
import { type Asked, type Look, look, type Question } from './look.ts'
import { hasTag, type Keys, pending } from './resolve.ts'
import { keysOf } from './rows.ts'
import { exclusiveLinks } from './statements.ts'

/** Looks at one entry, whose tags are resolved. */
export async function lookAt(
  q: Queryable,
  registry: Registry,
  { model }: Step,
  identifiers: ReadonlyMap<string, unknown>,
  sent: ReadonlyMap<string, unknown>,
): Promise<Look> {
  const [seen] = await ask(q, registry, [{ model, question: { draw: false, ...questionOf(model, identifiers, sent) } }])
  if (seen === undefined) throw new Error('a look answered nothing')
  return seen
}

async function ask(q: Queryable, registry: Registry, asked: readonly Asked[]): Promise<Look[]> {
  const [row] = await q.query<{ looks: Look[] }>(look(registry, asked))
  return row?.looks ?? []
}

function questionOf(
  model: Step['model'],
  identifiers: ReadonlyMap<string, unknown>,
  sent: ReadonlyMap<string, unknown>,
): Omit<Question, 'draw'> {
  // An entry that cannot be looked up (a faulty or pending identifier) still has its references checked.
  const usable = [...identifiers.values()].every((value) => value !== undefined && value !== pending)
  const referred = new Map<string, (string | number)[]>()
  const claimed = new Map<string, (string | number)[]>()
  for (const [name, value] of sent) {
    const family = model.members.get(name)?.reference?.family
    const isClaim = model.unique.includes(name) || exclusiveLinks(model).some(([member]) => member.name === name)
    if (family === undefined && !isClaim) continue
    const keys = keysOf(value)
    if (keys.length === 0) continue
    if (family !== undefined) referred.set(family, [...(referred.get(family) ?? []), ...keys])
    if (isClaim) claimed.set(name, keys)
  }
  return { by: usable ? identifiers : new Map(), referred, claimed }
}

/** An application and its provider: what nearly every document is. Longer ones gain little, and have many shapes. */
export const maxAhead = 2

/**
 * Looks at entries before their turn, all in one statement: those on which no earlier entry can have an effect other
 * than by its key. Whether a look still holds when that key is known, `suffices` says.
 *
 * @param how `draw` the keys of rows that are not there, too: only whoever will write them asks for that. Whoever is
 *   `trusting` asks for the rows alone: what they refer to and claim was looked at a moment ago
 */
export async function lookAhead(
  q: Queryable,
  registry: Registry,
  steps: readonly Step[],
  { draw, trusting }: { readonly draw: boolean; readonly trusting: boolean },
): Promise<ReadonlyMap<Step, Look>> {
  const asked = new Map<Step, Asked>()
  const written = new Set<string>()
  for (const step of steps.slice(0, maxAhead)) {
    const { model, identifiers, state } = step
    const plain = new Map([...identifiers, ...step.attrs].filter(([name, value]) => name !== 'pk' && !hasTag(value)))
    const isWritten = (name: string) =>
      written.has(registry.families.get(model.members.get(name)?.reference?.family ?? '')?.table ?? '')
    const isAffected = written.size > 0 && (written.has(model.table) || [...plain.keys()].some(isWritten))
    const byTag = [...identifiers.values()].some(hasTag)
    if (!byTag && !isAffected)
      asked.set(step, {
        model,
        question: {
          draw: draw && state !== 'absent',
          // An entry that may write nothing would trip no constraint.
          ...questionOf(model, identifiers, trusting && state === 'present' ? new Map() : plain),
        },
      })
    written.add(model.table)
  }
  const looks = await ask(q, registry, [...asked.values()])
  return new Map([...asked.keys()].flatMap((step, index) => (looks[index] === undefined ? [] : [[step, looks[index]]])))
}

/** A key that came by tag was not looked for: that matters where another row could hold it. */
export function suffices(ahead: Look, { model, attrs }: Step, sent: ReadonlyMap<string, unknown>, keys: Keys): boolean {
  return [...attrs].every(([name, value]) => {
    if (!hasTag(value)) return true
    if (value instanceof KeyOf && keys.get(value.id)?.isNew === true) return true
    const place = model.members.get(name)?.place
    const exclusive = model.unique.includes(name) || (place?.in === 'link' && place.exclusive === true)
    const [row] = ahead.rows
    return value instanceof KeyOf && (!exclusive || (place?.in === 'column' && row?.[place.column] === sent.get(name)))
  })
}
