import type { ErrorSink } from '../errors.ts'
import type { Field, Values } from '../models/define.ts'
import type { Row } from './statements.ts'
import type { Step } from './step.ts'
import { toMaskedValues } from './storage.ts'

/** The checked forms of a secret (`document/generate.ts`), and secrets that a row lacks. */

/** The request for a new value. `diff` generates it: a document is compiled more than once. */
export const generateNew = Symbol('generate')

/** A value for a new row only. */
export class ForNew {
  /** The value; undefined when it has errors. */
  readonly value: unknown
  /** The variable of the caller that should have the value, and is not set. */
  readonly unset: string | undefined
  constructor(value: unknown, unset?: string) {
    this.value = value
    this.unset = unset
  }
}

/** Whether a new row has this secret, and this one lost it with its SECRET_KEY (`runs/forget.ts`). */
export const isMissing = ({ name, secret, required, generate }: Field, stored: Values): boolean =>
  secret === true && (required || generate !== undefined) && stored[name] === null

/** The fields that are sent for this row: a value for a new row counts as not sent for one that has the secret. */
export function sentFor(
  { model, path, state }: Step,
  row: Row | undefined,
  values: ReadonlyMap<string, unknown>,
  errors: ErrorSink,
): Map<string, unknown> {
  const takes = (name: string) => {
    const field = model.fields.get(name)
    return row === undefined || (field !== undefined && isMissing(field, toMaskedValues(model, row)))
  }
  return new Map(
    [...values].flatMap(([name, value]): [string, unknown][] => {
      if (!(value instanceof ForNew)) return [[name, value]]
      if (!takes(name)) return []
      if (value.unset !== undefined && state !== 'absent')
        errors.add([...path, name], 'required', `${value.unset} is not set, and there is no value that could stay.`)
      return [[name, value.value]]
    }),
  )
}
