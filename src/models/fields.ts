import { z } from 'zod'
import type { ErrorCode } from '../error-codes.ts'
import { isObject } from '../json-object.ts'
import '../messages.ts'
import { comparedName } from '../names.ts'
import { parseJson } from '../numbers.ts'
import { type FieldMeta, fieldMeta, type Reference } from './define.ts'
import { redirectPattern } from './patterns.ts'
import {
  duration,
  fieldName,
  type Syntax,
  storable,
  storableJson,
  storedLength,
  username as usernameSyntax,
  visibleLabel,
} from './syntax.ts'
import { strictRedirectUri } from './urls.ts'

/** Building blocks of model schemas. Messages are sentences for the author of the value. */

/** Characters. An indexed text stays below PostgreSQL's limit of 2 704 bytes for an index row, at four bytes each. */
export const textLimits = { name: 255, line: 2_000, text: 100_000, attributes: 16_384 } as const

/** Entries of a list. */
export const listLimits = { keys: 500, members: 10_000 } as const

/** A line of text, possibly empty. */
export const line = (max: number = textLimits.line) =>
  follow(storable, z.string().max(max, { error: `Must be at most ${max} characters.`, abort: true }), 'invalid_text')

/** A line of text that is not blank. */
export const filledLine = (max: number = textLimits.line) =>
  follow(
    (text) => (text.trim() === '' ? 'May not be empty.' : undefined),
    line(max).min(1, { abort: true }),
    'too_short',
  )

/** A text of a given form. */
export const text = (syntax: Syntax, max: number = textLimits.line) => follow(syntax, line(max))

/** How long something is valid: `hours=1;minutes=30`. */
export const validity = (initial: string) => text(duration, 255).default(initial)

/** @param code the code of the error of a text that does not follow the syntax */
export function follow(syntax: Syntax, schema: z.ZodString, code: ErrorCode = 'wrong_format'): z.ZodString {
  return schema.superRefine((value, context) => {
    const error = syntax(value)
    if (error !== undefined) context.addIssue({ code: 'custom', message: error, params: { code } })
  })
}

/** The label under which objects are managed: `team-a`. It is stored as names compare, so that `Team-A` is the same owner. */
export const ownerLabel = () =>
  follow(visibleLabel, text(visibleLabel, 100).min(1, { error: mostOfLabel, abort: true }).overwrite(comparedName)).max(
    100,
    mostOfLabel,
  )

const mostOfLabel = 'Must have 1 to 100 characters.'

/** A line that is displayed on pages and in logs. */
export const shownLine = (max: number = textLimits.line) => free(follow(shown, line(max)))

/** A displayed line that is not blank. */
export const filledShownLine = (max: number = textLimits.line) => free(follow(shown, filledLine(max)))

/** Displayed lines. Letters may be joined by characters that are not shown themselves, in some languages and in emoji. */
export const shownText = (max: number) => free(follow(withoutBidi, line(max)))

const withoutBidi: Syntax = (text) =>
  storable(text) === undefined && /[\p{Cc}\p{Bidi_Control}]/u.test(text.replaceAll(/\r?\n|\t/g, ''))
    ? 'May not hold control characters, or those that change the direction of a text.'
    : undefined

/** A text that is not storable has an error of its own. */
const shown: Syntax = (text) => (storable(text) === undefined ? shownOnly(text) : undefined)

/** A human-readable name, without white space around it: composed letters (NFC), and no characters that are not shown. */
export const name = (max: number = textLimits.name) => asName(follow(shownOnly, shortened(max)).min(1, { abort: true }))

/** A name that may be empty. */
export const optionalName = (max: number = textLimits.name) => free(follow(shownOnly, shortened(max)))

const shortened = (max: number) =>
  follow(
    storable,
    z
      .string()
      .overwrite((text) => text.normalize('NFC').trim())
      .max(max, { error: `Must be at most ${max} characters.`, abort: true }),
  )

export const shownOnly: Syntax = (text) =>
  /[\p{Cc}\p{Cf}]/u.test(text) ? 'May not hold control or format characters.' : undefined

export const identifier = () =>
  filledLine(textLimits.name).regex(/^[-a-zA-Z0-9_]+$/, 'May hold only letters, digits, hyphens and underscores.')

export const slug = () => asName(identifier())

/** A user name: composed letters, as `name` has them. */
export const username = (max: number) => asName(follow(usernameSyntax, shortened(max)))

function marked<Schema extends z.ZodType>(schema: Schema, meta: FieldMeta): Schema {
  fieldMeta.add(schema, { ...fieldMeta.get(schema), ...meta })
  return schema
}

const asName = <Schema extends z.ZodType>(schema: Schema): Schema => marked(schema, { name: true, free: true })

/** Marks a text that may hold something that looks like a placeholder: for readers, or in another language. */
export const free = <Schema extends z.ZodType>(schema: Schema): Schema => marked(schema, { free: true })

/** Marks a list, or a text with commas, whose order has no meaning. */
export const unordered = <Schema extends z.ZodType>(schema: Schema): Schema => marked(schema, { set: true })

/** The column's range: PostgreSQL's `integer`. */
export const int32 = (min = -2_147_483_648) =>
  z
    .int('Must be a whole number.')
    .min(min, `Must be at least ${min}.`)
    .max(2_147_483_647, 'Must be at most 2147483647.')

export const uuid = () => z.guid('Must be a UUID.').toLowerCase()

/** UUIDs of rows that have no model yet. */
export const uuids = () => withoutTwice(z.array(uuid()).max(listLimits.keys))

type Which = Pick<Reference, 'only' | 'needs' | 'holds'>

/** The UUID key of an existing row. @param target the reference target, checked at start; @param which the rows that fit */
export const reference = (target: string, which: Which = {}) => marked(uuid(), { reference: { target, ...which } })

/** The integer key of an existing row. */
export const integerReference = (target: string, which: Which = {}) =>
  marked(int32(1), { reference: { target, ...which } })

/** Keys of existing rows, each at most once. */
export const references = (target: string, max: number = listLimits.keys) =>
  withoutTwice(z.array(reference(target)).max(max))

export const integerReferences = (target: string, max: number = listLimits.keys) =>
  withoutTwice(z.array(integerReference(target)).max(max))

/** @param item what an item is, in the message: `a key` */
export function withoutTwice<Item extends z.ZodType>(list: z.ZodArray<Item>, item = 'a key'): z.ZodArray<Item> {
  const isValid = (each: unknown) => list.element.safeParse(each).success
  const isDistinct = (items: readonly unknown[]) => {
    if (new Set(items).size === items.length) return true
    const valid = items.filter(isValid)
    return new Set(valid).size === valid.length
  }
  // Doubled keys are reported together with the errors of single keys.
  return list.refine(isDistinct, {
    error: `Must not hold ${item} twice.`,
    params: { code: 'duplicate' },
    when: ({ value }) => Array.isArray(value),
  })
}

/** Marks a field as a secret: sealed at rest, masked everywhere else. */
export const secret = <Schema extends z.ZodType>(schema: Schema): Schema => marked(schema, { secret: true })

/** Marks a field that the service generates for a new row when none is sent. */
export const generated = <Schema extends z.ZodType>(schema: Schema, generate: () => string): Schema =>
  marked(schema, { generate })

/** Marks a secret whose value before may stay valid for a time: `{"generate": true, "overlap": "hours=24"}`. */
export const overlapping = <Schema extends z.ZodType>(schema: Schema): Schema => marked(schema, { overlap: true })

/** A free-form JSON object. */
export const jsonObject = (max: number = textLimits.text) =>
  z.record(z.string(), z.unknown()).superRefine((value, context) => {
    const isLong = () => storedLength(value) > max
    const error =
      storableJson(value) ??
      (isLong() ? `Must be at most ${max} characters as JSON, with numbers written out.` : undefined)
    if (error !== undefined) context.addIssue({ code: 'custom', message: error })
  })

/** Longer texts are not read as JSON: white space does not count for the limit of an object. */
const maxJsonText = 4 * textLimits.text

function fromJson(sent: unknown, context: z.core.$RefinementCtx): unknown {
  if (typeof sent !== 'string' || sent.length > maxJsonText) return sent
  try {
    const value = parseJson(sent)
    // A record ignores a field of this name. Other errors are those of the object.
    const error = isObject(value) && Object.hasOwn(value, '__proto__') ? fieldName('__proto__') : undefined
    if (error !== undefined) context.addIssue({ code: 'custom', message: error })
    return value
  } catch {
    return sent
  }
}

/** A secret free-form JSON object. It may be sent as JSON text too: the values of variables and files are texts. */
export const secretObject = () => secret(z.preprocess(fromJson, jsonObject()))

/** A date and time, as ISO 8601 with an offset, stored to the millisecond. */
export const dateTime = () =>
  marked(
    z.iso
      .datetime({ offset: true, error: 'Must be a date and time such as 2027-01-31T12:00:00Z.', abort: true })
      .refine((sent) => isInRange(new Date(sent)), 'Must be between the years 1900 and 9999.')
      .overwrite((sent) => (isInRange(new Date(sent)) ? new Date(sent).toISOString() : sent)),
    { time: true },
  )

/** UTC counts, because an offset can move the last hours of 9999 to a year of five digits. */
const isInRange = (at: Date) => at.getUTCFullYear() >= 1900 && at.getUTCFullYear() <= 9999

/** One of the choices; the message names them. @param title its name in the description of the API */
export const oneOf = <const Choices extends readonly [string, ...string[]]>(choices: Choices, title?: string) =>
  z.enum(choices, `Must be one of: ${choices.join(', ')}.`).meta({ title })

/** What a service that users are synced to does when one of them is deleted. */
export const deleteAction = () => oneOf(['do_nothing', 'delete', 'suspend'], 'DeleteAction').default('delete')

const redirectUriEntry = z
  .strictObject({ matching_mode: z.enum(['strict', 'regex']).meta({ title: 'MatchingMode' }), url: filledLine() })
  .superRefine(({ matching_mode, url }, context) => {
    const error = matching_mode === 'regex' ? redirectPattern(url) : strictRedirectUri(url)
    if (error !== undefined) context.addIssue({ code: 'custom', path: ['url'], message: error })
  })

/** Older clients send one text with one URI per line; each is strict. */
export const fromLines = (sent: unknown): unknown =>
  typeof sent !== 'string'
    ? sent
    : sent
        .split(/\r?\n/)
        .map((url) => url.trim())
        .filter((url) => url !== '')
        .map((url) => ({ matching_mode: 'strict', url }))

export const redirectUris = () => z.preprocess(fromLines, z.array(redirectUriEntry).max(100))
