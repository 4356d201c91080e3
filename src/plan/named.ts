import type { z } from 'zod'
import { Find, KeyOf } from '../document/document.ts'
import type { ErrorCode } from '../error-codes.ts'
import { codeOfIssue } from '../messages.ts'
import type { Field, ReferenceTarget } from '../models/define.ts'
import { filledLine, int32, uuid } from '../models/fields.ts'

/** A reference by the name of a row, such as the slug of a flow. `resolve.ts` replaces it by the key. */
export class Named {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }

  toJSON(): string {
    return this.name
  }
}

/** Whether it is a value in place of a key. */
export const isTag = (value: unknown): value is KeyOf | Find | Named =>
  value instanceof KeyOf || value instanceof Find || value instanceof Named

/** The sent value in place of a key, in messages. */
export const sentAs = (tag: unknown, key: unknown): string =>
  tag instanceof KeyOf ? `!KeyOf ${tag.id}` : tag instanceof Named ? JSON.stringify(tag.name) : String(key)

export const keySchemas = { uuid: uuid(), integer: int32(1) } as const
/** The limit is the longest name of any model. */
const nameSchema = filledLine(255)

/**
 * Takes texts that are no keys for names, where rows have names. A text in the form of a key is a key.
 *
 * @param value the sent value: one reference, or a list
 */
export function withNames(value: unknown, target: ReferenceTarget | undefined): unknown {
  if (target === undefined || target.models.every(({ names }) => names.length === 0)) return value
  const isName = (each: unknown): each is string =>
    typeof each === 'string' && !keySchemas[target.key].safeParse(each).success
  // Names are stored with composed letters, and without white space around them.
  const read = (each: unknown) => (isName(each) ? new Named(each.normalize('NFC').trim()) : each)
  return Array.isArray(value) ? value.map(read) : read(value)
}

/** @returns the error of the text, before any row is searched */
export const nameError = ({ name }: Named): Complaint | undefined =>
  complaint(nameSchema.safeParse(name).error?.issues[0], name)

/** @returns the error of a list as a whole, such as its length: its items are looked up afterwards */
export function listError({ schema }: Field, { key }: ReferenceTarget, length: number): Complaint | undefined {
  const keys = Array.from({ length }, (_, index) =>
    key === 'integer' ? index + 1 : `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`,
  )
  const issue = schema.safeParse(keys).error?.issues.find(({ path }) => path.length === 0)
  return complaint(issue, keys)
}

type Complaint = { readonly code: ErrorCode; readonly message: string }

const complaint = (issue: z.core.$ZodIssue | undefined, input: unknown): Complaint | undefined =>
  issue && { code: codeOfIssue(issue, input), message: issue.message }
