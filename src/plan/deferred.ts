import { Find, KeyOf } from '../document/document.ts'
import { KeyValue } from '../document/scope.ts'
import { holdsTag, TagError } from '../document/tags.ts'
import type { ErrorList, FieldPath } from '../errors.ts'
import { isObject } from '../json-object.ts'
import type { Field } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'

/** Checks the value of a field, like `compile` does for a known one. */
export type Check = (value: unknown, path: FieldPath, errors: ErrorList) => unknown

/** The value of a field with tags that need the database. `resolve.ts` evaluates it, and then checks it. */
export class Deferred {
  readonly value: unknown
  readonly check: Check
  constructor(value: unknown, check: Check) {
    this.value = value
    this.check = check
  }

  toJSON(): unknown {
    return this.value
  }
}

/** Whether `resolve.ts` has to evaluate a value: it is more than `!KeyOf`, `!Find` with plain values, or a list of these. */
export const isDeferred = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.some((item) => !isPlainTag(item) && holdsTag(item))
    : !isPlainTag(value) && holdsTag(value)

const isPlainTag = (value: unknown): boolean =>
  value instanceof KeyOf || (value instanceof Find && !holdsTag(value.identifiers))

/**
 * Replaces tags by the keys of the rows that were found.
 *
 * @param targetOf the reference target of the row that a tag finds
 * @throws {TagError} for the key of a row that the field does not refer to
 */
export function withKeys(
  value: unknown,
  { reference }: Field,
  { targets }: Registry,
  targetOf: (tag: KeyValue['tag']) => string | undefined,
): unknown {
  const table = targets.get(reference?.target ?? '')?.table
  const fitting = ({ key, tag }: KeyValue) => {
    const found = targetOf(tag)
    if (table === undefined || targets.get(found ?? '')?.table === table) return key
    throw new TagError(undefined, `The key is of a ${found}: a ${reference?.target} is needed.`)
  }
  const replace = (each: unknown): unknown => {
    if (each instanceof KeyValue) return fitting(each)
    if (Array.isArray(each)) return each.map(replace)
    return isObject(each)
      ? Object.fromEntries(Object.entries(each).map(([name, inner]) => [name, replace(inner)]))
      : each
  }
  return replace(value)
}
