import type { ErrorSink, FieldError } from '../errors.ts'
import { hidden } from '../hidden.ts'
import type { Field, Values } from '../models/define.ts'
import type { Row } from './statements.ts'
import type { Step } from './step.ts'
import { toMaskedValues } from './storage.ts'

/** The checked forms of a secret (`document/generate.ts`), and secrets that a row lacks. */

/** The request for a new value. `diff` generates it: a document is compiled more than once. */
export const generateNew = Symbol('generate')

/** A value for a new row only. */
export class ForNew {
  /** The value; undefined when there is none, and when it has errors. */
  readonly value: unknown
  /** The error of a row without the secret, where there is no value. */
  readonly missing: Pick<FieldError, 'code' | 'message'> | undefined
  /** The form that asks to keep the secret; `mask`: that of older clients. */
  readonly keeps: 'set' | 'mask' | undefined
  constructor(value: unknown, missing?: ForNew['missing'], keeps?: ForNew['keeps']) {
    this.value = value
    this.missing = missing
    this.keeps = keeps
  }
}

/** The variable of the caller that should have the value is not set. */
export const unsetSecret = (env: string): ForNew =>
  new ForNew(undefined, { code: 'required', message: `${env} is not set, and there is no value that could stay.` })

/** The secret stays as it is (`isKept`). */
export function keptSecret({ required }: Field, sent: unknown): ForNew {
  const message = `There is no secret to keep: send one${required ? '' : ', or leave this field out'}.`
  return new ForNew(undefined, { code: 'masked_secret', message }, sent === hidden ? 'mask' : 'set')
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
  const takes = (name: string, { keeps }: ForNew) => {
    const [field, stored] = [model.fields.get(name), row && toMaskedValues(model, row)]
    if (stored === undefined || field === undefined) return true
    return keeps === undefined ? isMissing(field, stored) : stored[name] === null
  }
  return new Map(
    [...values].flatMap(([name, value]): [string, unknown][] => {
      if (!(value instanceof ForNew)) return [[name, value]]
      if (!takes(name, value)) return []
      if (value.missing !== undefined && state !== 'absent')
        errors.add([...path, name], value.missing.code, value.missing.message)
      return [[name, value.value]]
    }),
  )
}
