import { z } from 'zod'
import type { ListSpec } from '../../lists/listed.ts'
import { pageParameters } from '../../lists/page.ts'
import { outcomesAsked, type Span, spans } from '../../lists/runs-of-operators.ts'
import { storable } from '../../models/syntax.ts'

/** The search in the address of /admin/runs/. An empty value counts as absent: forms send all their fields. */

export const fields = ['period', 'outcome', 'object', 'who', 'owner', 'kind', 'request', 'text', 'group'] as const
export type Field = (typeof fields)[number]

/** The values as they were sent, or what is wrong with them. */
type Texts = Partial<Record<Field | 'before', string>>

/** The place of a run in the order: the newest first. */
export type Place = { readonly at: number; readonly id: string }

/** @returns `1732371304123.01a1fd66-...`, for an address */
export const placeText = ({ at, id }: Place): string => `${at}.${id}`

const place = z
  .string()
  .regex(/^\d{1,15}\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/, 'Is not the place of a page.')
  .transform((text): Place => {
    const [at, id = ''] = text.split('.')
    return { at: Number(at), id }
  })

/** @property filters those of the list, with their values @property wrong errors by field: then nothing is searched */
export type Asked = {
  readonly sent: Readonly<Texts>
  readonly span: Span
  readonly outcome: string
  readonly filters: Readonly<Record<string, unknown>>
  readonly terms: readonly string[]
  readonly before: Place | null
  readonly isGrouped: boolean
  readonly wrong: Readonly<Texts>
}

const longest = 400

const fieldText = z
  .string('Send it once.')
  .max(longest, `Must be at most ${longest} characters.`)
  .refine((text) => storable(text) === undefined, 'Has a character that cannot be stored.')
  .trim()

/** The fields that are filters of the list, by the name there. */
const filterOf = { object: 'object', who: 'who', owner: 'owner', kind: 'kind', request: 'request_id' } as const

const oneOf = <Value extends string>(known: readonly Value[]) =>
  z.enum(known as [Value], `Must be one of: ${known.join(', ')}.`)

export function readQuestion(spec: ListSpec<'Run'>, query: Readonly<Record<string, unknown>>): Asked {
  const sent: Texts = {}
  const wrong: Texts = {}
  const read = <Value>(name: Field | 'before', schema: z.ZodType<Value, string> | undefined): Value | undefined => {
    const value = query[name]
    if (value === undefined || value === '' || schema === undefined) return undefined
    const text = fieldText.safeParse(value)
    if (text.success) sent[name] = text.data
    const { data, error } = fieldText.pipe(schema).safeParse(value)
    if (error !== undefined) wrong[name] = error.issues[0]?.message ?? 'Is not right.'
    return data
  }
  const filters = Object.entries(filterOf).map(([field, name]) => [
    name,
    read(field as Field, spec.filters[name]?.schema as z.ZodType<unknown, string> | undefined),
  ])
  const span = read('period', oneOf(Object.keys(spans) as Span[])) ?? 'hour'
  const outcome = read('outcome', oneOf(['any', ...outcomesAsked])) ?? 'any'
  return {
    sent,
    span,
    outcome,
    filters: {
      ...Object.fromEntries(filters),
      period: span,
      outcome: outcome === 'any' ? undefined : outcome,
    },
    terms: read('text', pageParameters(spec).search as z.ZodType<string[], string>) ?? [],
    before: read('before', place) ?? null,
    isGrouped: read('group', oneOf(['none', 'cause'])) === 'cause',
    wrong,
  }
}
