import { z } from 'zod'
import { type ErrorCode, errorCodes } from './error-codes.ts'
import type { ErrorSink, FieldPath } from './errors.ts'

/** Sentences for the author of the value. They replace zod's default messages. A message of a schema takes precedence. */

const typeMessages: Readonly<Record<string, string>> = {
  string: 'Must be text.',
  number: 'Must be a number.',
  int: 'Must be a whole number.',
  boolean: 'Must be true or false.',
  array: 'Must be a list.',
  tuple: 'Must be a list.',
  object: 'Must be an object.',
  record: 'Must be an object.',
  null: 'Must be null.',
}

function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'This field is required.'
  switch (issue.code) {
    case 'invalid_type':
      return typeMessages[issue.expected] ?? `Must be ${issue.expected}.`
    case 'too_small':
      return issue.origin === 'string' && issue.minimum === 1
        ? 'May not be empty.'
        : `Must be at least ${issue.minimum}${unit(issue.origin)}.`
    case 'too_big':
      return `Must be at most ${issue.maximum}${unit(issue.origin)}.`
    case 'invalid_value':
      return `Must be one of: ${issue.values.map(String).join(', ')}.`
    case 'unrecognized_keys':
      return `Unknown field: ${issue.keys.join(', ')}.`
    default:
      return undefined
  }
}

const unit = (origin: string) => (origin === 'string' ? ' characters' : origin === 'array' ? ' entries' : '')

z.config({ customError: messageOf })

/**
 * The code of an issue: the one place that maps zod's codes. A schema's own check gives its code in `params`.
 *
 * @param input the value in which the path of the issue starts
 */
export function codeOfIssue(issue: z.core.$ZodIssue, input: unknown): ErrorCode {
  if (valueAt(input, issue.path) === undefined) return 'required'
  switch (issue.code) {
    case 'invalid_type':
    case 'invalid_union':
      return 'wrong_type'
    case 'too_small':
      return isLong(issue.origin) ? 'too_short' : 'too_small'
    case 'too_big':
      return isLong(issue.origin) ? 'too_long' : 'too_large'
    case 'invalid_format':
      return 'wrong_format'
    case 'invalid_value':
      return 'invalid_choice'
    case 'unrecognized_keys':
      return 'unknown_field'
    case 'invalid_key':
    case 'invalid_element':
    case 'not_multiple_of':
      return 'invalid_value'
    case 'custom': {
      const own: unknown = issue.params?.code
      return isErrorCode(own) ? own : 'invalid_value'
    }
    default:
      return issue satisfies never
  }
}

const isErrorCode = (code: unknown): code is ErrorCode => typeof code === 'string' && Object.hasOwn(errorCodes, code)

/** Whether a value has a length; numbers and times have a size. */
const isLong = (origin: string) => ['string', 'array', 'set', 'map', 'file'].includes(origin)

/**
 * The value at a path. Some schemas wrap one value in a list or an object before they check it, and the path goes on into that:
 * the result is the value itself.
 */
function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return value
    if (!Object.hasOwn(value, part)) return undefined
    value = Reflect.get(value, part)
  }
  return value
}

/**
 * Adds the issues of a zod schema, each unknown field on its own.
 *
 * @param known the fields of the object at a path, one of which was probably meant
 */
export function addIssues(
  errors: ErrorSink,
  issues: readonly z.core.$ZodIssue[],
  {
    input,
    known = () => [],
    what = 'field',
  }: {
    input: unknown
    known?: (path: FieldPath) => readonly string[]
    what?: 'field' | 'header' | 'parameter'
  },
): void {
  for (const issue of issues) {
    const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))
    if (issue.code !== 'unrecognized_keys') errors.add(path, codeOfIssue(issue, input), issue.message)
    else
      for (const key of issue.keys)
        errors.add([...path, key], `unknown_${what}`, () => unknownName(what, key, known(path)))
  }
}

/** Ends a sentence, if it has no end yet. */
export const sentence = (text: string): string => (/[.?!]$/.test(text) ? text : `${text}.`)

/** @returns the known name nearest to a mistyped one, if they differ in at most a third of its letters */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let bestDistance = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue
    const distance = editDistance(name, candidate)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** The message for an unknown name, with the name that was probably meant. */
export function unknownName(what: string, name: string, known: Iterable<string>): string {
  const near = name.length > 100 ? undefined : nearest(name, known)
  return near === undefined ? `Unknown ${what}.` : `Unknown ${what}. Did you mean ${near}?`
}

/** The Levenshtein distance, in which two letters in the wrong order are one mistake. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  let before: readonly number[] = []
  for (let i = 0; i < a.length; i += 1) {
    const row = [i + 1]
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (previous[j] ?? 0) + (a[i] === b[j] ? 0 : 1)
      const isSwapped = i > 0 && j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j]
      const swapped = isSwapped ? (before[j - 1] ?? 0) + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(replaced, swapped, (previous[j + 1] ?? 0) + 1, (row[j] ?? 0) + 1))
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? 0
}
