import type { z } from 'zod'
import type { Queryable } from '../db/client.ts'

/** A row as the database gives it, by column. */
export type Row = Readonly<Record<string, unknown>>

/**
 * What a resource looks like to whoever reads it. A view reads its rows by one statement and completes all of them by
 * a fixed number more, so that a page costs the same number of statements whatever its size.
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
  /**
   * @param rows of `columns`, in the order in which they are answered
   * @param related whether to read the objects that the caller may leave out, such as `groups_obj`
   */
  complete(q: Queryable, rows: readonly Row[], related: boolean): Promise<readonly Row[]>
}
