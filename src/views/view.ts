import type { z } from 'zod'
import type { Queryable } from '../db/client.ts'

/** A row as the database gives it, by column. */
export type Row = Readonly<Record<string, unknown>>

/**
 * What a resource looks like to whoever reads it. A view reads its rows by one statement and completes all of them by
 * a fixed number more, so that a page costs the same number of statements whatever its size; only what would be too
 * much to hold is read a part at a time.
 */
export type View = {
  readonly table: string
  /** How `columns`, filters and orders call the table. */
  readonly alias: string
  /** What is selected, in SQL. */
  readonly columns: string
  /** Tables that `columns` needs beside its own, in SQL: at most one row of each for each row. */
  readonly joins: string
  /** One result, as it is answered. */
  readonly schema: z.ZodObject
  /** The rows in order, cut into parts of which each can be held when it is completed. Without it they all can. */
  cut?(rows: readonly Row[], related: boolean): readonly (readonly Row[])[]
  /**
   * @param rows of `columns`, in the order in which they are answered
   * @param related whether to read the objects that the caller may leave out, such as `groups_obj`
   */
  complete(q: Queryable, rows: readonly Row[], related: boolean): Promise<readonly Row[]>
}
