/** The checked forms of a secret (`document/generate.ts`). */

/** The request for a new value. `diff` generates it: a document is compiled more than once. */
export const generateNew = Symbol('generate')

/** A value for a new row only. */
export class ForNew {
  /** The value; undefined when it has errors. */
  readonly value: unknown
  constructor(value: unknown) {
    this.value = value
  }
}

/** The fields that are sent for this row: a value for a new row counts as not sent for an existing one. */
export const sentFor = (row: object | undefined, values: ReadonlyMap<string, unknown>): ReadonlyMap<string, unknown> =>
  new Map(
    [...values].flatMap(([name, value]): [string, unknown][] => {
      if (!(value instanceof ForNew)) return [[name, value]]
      return row === undefined ? [[name, value.value]] : []
    }),
  )
