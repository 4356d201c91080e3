import type { Condition } from '../runs/changes.ts'
import type { RunEvent } from './event.ts'
import type { Reader } from './reader.ts'

/** The conditions of readers, each asked once however many readers have it. */
export class Conditions {
  readonly all: readonly Condition[]
  readonly #numberOf: ReadonlyMap<Reader, number>

  constructor(readers: readonly Reader[]) {
    const numbers = new Map<string, number>()
    const all: Condition[] = []
    this.#numberOf = new Map(
      readers.map((reader) => {
        const { condition } = reader
        const key = textOf(condition)
        const number = numbers.get(key) ?? all.push(condition) - 1
        numbers.set(key, number)
        return [reader, number]
      }),
    )
    this.all = all
  }

  /** Those that a reader may see; none for a reader that was not asked about. */
  seenBy<Event extends Pick<RunEvent, 'seen'>>(reader: Reader, events: readonly Event[]): Event[] {
    const number = this.#numberOf.get(reader)
    return number === undefined ? [] : events.filter(({ seen }) => seen[number] === true)
  }
}

/** Two with the same text and values are the same condition. */
export function textOf(condition: Condition): string {
  const values: unknown[] = []
  const text = condition((value) => `$${values.push(value)}`)
  return JSON.stringify([text, values])
}
