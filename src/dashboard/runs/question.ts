import type { ListSpec } from '../../lists/list.ts'
import { pageParameters } from '../../lists/page.ts'
import { type Place, placeOf, type RunQuestion, type Span, spans } from '../../lists/run-search.ts'
import { storable } from '../../models/syntax.ts'
import { comparedName } from '../../names.ts'
import { type Outcome, outcomes } from '../../runs/outcome.ts'
import { runsPath } from '../addresses.ts'

/** The search in the address of /admin/runs/. An empty value counts as absent: forms send all their fields. */

export const fields = ['period', 'outcome', 'object', 'who', 'owner', 'kind', 'request', 'text', 'group'] as const
export type Field = (typeof fields)[number]

/** The values as they were sent. */
export type Sent = Readonly<Partial<Record<Field | 'before', string>>>

/** @property wrong errors by field: then nothing is searched */
export type Asked = {
  readonly sent: Sent
  readonly question: RunQuestion
  readonly before: Place | null
  readonly isGrouped: boolean
  readonly wrong: Readonly<Partial<Record<Field | 'before', string>>>
}

const longest = 400

/** The fields that are filters of the API's list, by the name there. */
const filterOf = { object: 'object', kind: 'kind', request: 'request_id' } as const

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
  const filters = Object.entries(filterOf).flatMap(([field, name]) => {
    const filter = spec.filters[name]
    const value = sent[field as Field]
    if (filter === undefined || value === undefined) return []
    const parsed = filter.schema.safeParse(value)
    if (parsed.success) return [{ name, filter, value: parsed.data }]
    wrong[field as Field] = parsed.error.issues[0]?.message ?? 'Is not right.'
    return []
  })
  const terms = pageParameters(spec).search.safeParse(sent.text)
  if (!terms.success) wrong.text = terms.error.issues[0]?.message ?? 'Is not right.'
  const before = sent.before === undefined ? null : placeOf(sent.before)
  if (before === undefined) wrong.before = 'Is not the place of a page.'
  const outcome = of('outcome', ['any', ...outcomes, 'planned'], 'any')
  return {
    sent,
    question: {
      span: of('period', Object.keys(spans) as Span[], 'hour'),
      outcome: outcome === 'any' ? null : (outcome as Outcome | 'planned'),
      who: sent.who ?? null,
      owner: sent.owner === undefined ? null : comparedName(sent.owner),
      filters,
      terms: terms.success ? terms.data : [],
    },
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
