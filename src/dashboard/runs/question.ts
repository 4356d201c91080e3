import { z } from 'zod'
import type { ListSpec } from '../../lists/list.ts'
import { pageParameters } from '../../lists/page.ts'
import { outcomesAsked, type Span, spans } from '../../lists/runs-of-operators.ts'
import { storable } from '../../models/syntax.ts'
import { runsPath } from '../addresses.ts'

/** The search in the address of /admin/runs/. An empty value counts as absent: forms send all their fields. */

export const fields = ['period', 'outcome', 'object', 'who', 'owner', 'kind', 'request', 'text', 'group'] as const
export type Field = (typeof fields)[number]

/** The values as they were sent. */
export type Sent = Readonly<Partial<Record<Field | 'before', string>>>

/** The place of a run in the order: the newest first. */
export type Place = { readonly at: number; readonly id: string }

/** @returns `1732371304123.01a1fd66-...`, for an address */
export const placeText = ({ at, id }: Place): string => `${at}.${id}`

/** @returns undefined for a text that is no place */
function placeOf(text: string): Place | undefined {
  const [, at, id] = /^(\d{1,15})\.([\da-f-]{36})$/.exec(text) ?? []
  return z.object({ at: z.number().max(8.64e15), id: z.guid() }).safeParse({ at: Number(at), id }).data
}

/** @property filters those of the list, with their values @property wrong errors by field: then nothing is searched */
export type Asked = {
  readonly sent: Sent
  readonly span: Span
  readonly outcome: string
  readonly filters: Readonly<Record<string, unknown>>
  readonly terms: readonly string[]
  readonly before: Place | null
  readonly isGrouped: boolean
  readonly wrong: Readonly<Partial<Record<Field | 'before', string>>>
}

const longest = 400

/** The fields that are filters of the list, by the name there. */
const filterOf = { object: 'object', who: 'who', owner: 'owner', kind: 'kind', request: 'request_id' } as const

export function readQuestion(spec: ListSpec<'Run'>, query: Readonly<Record<string, unknown>>): Asked {
  const sent: Partial<Record<Field | 'before', string>> = {}
  const wrong: Partial<Record<Field | 'before', string>> = {}
  for (const name of [...fields, 'before'] as const) {
    const value = query[name]
    if (value === undefined || value === '') continue
    if (typeof value !== 'string') wrong[name] = 'Send it once.'
    else if (value.length > longest) wrong[name] = `Must be at most ${longest} characters.`
    else if (storable(value) !== undefined) wrong[name] = 'Has a character that cannot be stored.'
    else sent[name] = value.trim()
  }
  const of = <Value extends string>(name: Field, known: readonly Value[], usual: Value): Value => {
    const value = sent[name] ?? usual
    const found = known.find((each) => each === value)
    if (found === undefined) wrong[name] = `Must be one of: ${known.join(', ')}.`
    return found ?? usual
  }
  const filters: Record<string, unknown> = {}
  for (const [field, name] of Object.entries(filterOf)) {
    const value = sent[field as Field]
    const parsed = value === undefined ? undefined : spec.filters[name]?.schema.safeParse(value)
    if (parsed?.success) filters[name] = parsed.data
    else if (parsed !== undefined) wrong[field as Field] = parsed.error.issues[0]?.message ?? 'Is not right.'
  }
  const terms = pageParameters(spec).search.safeParse(sent.text)
  if (!terms.success) wrong.text = terms.error.issues[0]?.message ?? 'Is not right.'
  const before = sent.before === undefined ? null : placeOf(sent.before)
  if (before === undefined) wrong.before = 'Is not the place of a page.'
  const outcome = of('outcome', ['any', ...outcomesAsked], 'any')
  const span = of('period', Object.keys(spans) as Span[], 'hour')
  return {
    sent,
    span,
    outcome,
    filters: { ...filters, period: span, ...(outcome !== 'any' && { outcome }) },
    terms: terms.success ? terms.data : [],
    before: before ?? null,
    isGrouped: of('group', ['none', 'cause'], 'none') === 'cause',
    wrong,
  }
}

/** The address of the same search, with other values for some fields. */
export function addressOf(
  sent: Sent,
  other: Readonly<Partial<Record<Field | 'before', string | undefined>>> = {},
): string {
  const all = Object.entries({ ...sent, ...other }).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  )
  const query = new URLSearchParams(all as [string, string][]).toString()
  return query === '' ? runsPath : `${runsPath}?${query}`
}
