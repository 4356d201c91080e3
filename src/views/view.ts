import type { z } from 'zod'
import type { Db, Tx } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import type { Portion, Source } from '../db/snapshot.ts'
import type { Actor } from '../permissions.ts'
import type { UidOf } from './uid.ts'

/** A model's fields that are columns. They come from `schema.prisma`: a renamed field does not compile. */
export type FieldOf<Model extends Prisma.ModelName> = Model extends Prisma.ModelName
  ? keyof Prisma.TypeMap['model'][Model]['fields'] & string
  : never

export type Key = number | string

export type Reading = {
  readonly uidOf: UidOf
  /** Whether to read the related objects that a caller may leave out, such as `groups_obj`. */
  readonly related: boolean
  readonly actor: Actor
}

/**
 * A resource as its readers see it: a Prisma `select` reads the rows by key, and a pure function makes the answer of each. The
 * number of statements is the same for any page size; only values that are too large to hold are read in batches.
 */
export type View<Model extends Prisma.ModelName = Prisma.ModelName> = {
  readonly model: Model
  readonly schema: z.ZodType
  /**
   * @param keys one key or more, in the order in which their rows are answered
   * @returns the results in batches, each of which can be held in memory, or functions that read such a batch when it is due
   */
  read(tx: Tx, keys: readonly Key[], reading: Reading): AsyncIterable<Batch>
  /** Adds values to results that no snapshot has, after the transaction. */
  complete?(db: Db, results: readonly object[], reading: Pick<Reading, 'actor'>): Promise<readonly object[]>
}

/** Items that can be held together: read already, or to be read when it is their turn, maybe after the transaction. */
export type Batch<Item = object> = readonly Item[] | Portion<readonly Item[]>

export const readBatch = <Item>(source: Source, batch: Batch<Item>): Promise<readonly Item[]> =>
  typeof batch === 'function' ? source.read(batch) : Promise.resolve(batch)

/** A list that is too long to hold: it is read in batches while it is sent. */
export class StreamedList {
  readonly batches: Iterable<Batch<unknown>>

  constructor(batches: Iterable<Batch<unknown>>) {
    this.batches = batches
  }
}

/** Whether some list of the result is read while it is sent. */
export const isStreamed = (result: object): boolean =>
  Object.values(result).some((field) => field instanceof StreamedList)

/** The rows in the order of their keys; the database answers them in any order. */
export function inOrder<Row, K extends Key>(keys: readonly K[], rows: readonly Row[], keyOf: (row: Row) => K): Row[] {
  const byKey = new Map(rows.map((row) => [keyOf(row), row]))
  return keys.map((key) => byKey.get(key)).filter((row) => row !== undefined)
}

/** Batches of rows that weigh at most `most` together; a row that weighs more is a batch by itself. */
export function inBatches<Row>(rows: readonly Row[], most: number, weigh: (row: Row) => number): Row[][] {
  const batches: Row[][] = []
  let sum = Number.POSITIVE_INFINITY
  for (const row of rows) {
    sum += weigh(row)
    if (sum <= most) batches.at(-1)?.push(row)
    else {
      batches.push([row])
      sum = weigh(row)
    }
  }
  return batches
}

/** The usual column of a field: `scope_name` of `scopeName`. */
export const columnName = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
