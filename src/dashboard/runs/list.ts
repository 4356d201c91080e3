import { z } from 'zod'
import { ifInTime } from '../../db/in-time.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { pageParameters } from '../../lists/page.ts'
import { type RunRow, readRunRows } from '../../lists/run-rows.ts'
import type { RunList } from '../../lists/runs.ts'
import { findRuns, mostCounted, outcomesAsked, type Span, spans } from '../../lists/runs-of-operators.ts'
import { storable } from '../../models/syntax.ts'
import { type Actor, allows } from '../../permissions.ts'
import { runsPath, withQuery } from '../addresses.ts'
import { type FilterField, filters, turns, wordsBy } from '../filter-fields.ts'
import { pageRoute, sendPage } from '../frame.ts'
import type { Sources } from '../sources.ts'
import { count, notKnown, number } from '../words.ts'
import { groupByCause, groupTable, runTable } from './tables.ts'

/** /admin/runs/: the runs of a period, one by one or by cause. */

const rowsOfPage = 50
/** The most runs that are grouped by cause: a failed one of them is compared with later ones. */
const mostGrouped = 500
const mostOfGroups = 100
const mostLetters = 400

/** A value of the address. Forms send all their fields: an empty one counts as absent. */
const fieldText = z
  .string('Send it once.')
  .max(mostLetters, `Must be at most ${mostLetters} characters.`)
  .refine((text) => storable(text) === undefined, 'Has a character that cannot be stored.')
  .trim()

const oneOf = <Value extends string>(known: readonly Value[]) =>
  fieldText.pipe(z.enum(known as [Value], `Must be one of: ${known.join(', ')}.`))

/** The place of a run in the order, the newest first: `1732371304123.01a1fd66-...` */
const place = fieldText
  .regex(/^\d{1,15}\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/, 'Is not the place of a page.')
  .transform((text) => {
    const [at, id = ''] = text.split('.')
    return [new Date(Number(at)), id] as const
  })

/** The search. The declaration of the list knows what its filters take. */
function searchOf(spec: RunList) {
  const filter = (name: string) => fieldText.pipe(spec.filters[name]?.schema as z.ZodType<unknown, string>).optional()
  return z.object({
    period: oneOf(Object.keys(spans) as Span[]).default('hour'),
    outcome: oneOf(['any', ...outcomesAsked]).default('any'),
    object: filter('object'),
    who: filter('who'),
    owner: filter('owner'),
    stack: filter('stack'),
    kind: filter('kind'),
    repository: filter('repository'),
    commit: filter('commit'),
    request: filter('request_id'),
    text: fieldText.pipe(pageParameters(spec).search as z.ZodType<string[], string>).optional(),
    group: oneOf(['none', 'cause']).default('none'),
    before: place.optional(),
  })
}
type Search = z.output<ReturnType<typeof searchOf>>
type Field = keyof Search
/** The values as they were sent, which the form shows again. */
type Sent = Readonly<Partial<Record<Field, string>>>

export function runsPage(app: Api, { db, runs }: Sources): void {
  const search = searchOf(runs)
  const querystring = z.strictObject(
    Object.fromEntries(Object.keys(search.shape).map((name) => [name, z.unknown().optional()])),
  )

  app.get(runsPath, pageRoute({ querystring }), async ({ actor, query }, reply) => {
    const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '')
    const sent: Sent = Object.fromEntries(given.map(([name, value]) => [name, fieldText.safeParse(value).data]))
    const { data: asked, error } = search.safeParse(Object.fromEntries(given))
    const wrong = error && z.flattenError(error).fieldErrors
    const content = html`${!allows(actor, 'view_run') && html`<p class="quiet">You see your own runs only: you lack the permission view_run.</p>`}
${filters(runsPath, fields, { period: 'hour', ...sent }, { wrong, mostLetters, hidden: sent.group === 'cause' && byCause })}
${asked === undefined ? html`<p class="alert" role="alert">Nothing is shown: ${Object.entries(wrong ?? {}).map(([name, [why]]) => `${fields[name as Field]?.label ?? name}: ${why} `)}</p>` : await results(sent, asked, actor)}`
    const isLive = asked !== undefined && asked.before === undefined
    reply.code(asked === undefined ? 400 : 200)
    return sendPage(reply, { title: 'Runs', asOf: new Date(), within: runsPath, isLive, content })
  })

  async function results(sent: Sent, asked: Search, actor: Actor): Promise<Html> {
    const isGrouped = asked.group === 'cause'
    const found = await ifInTime(find(asked, actor, isGrouped ? mostGrouped : rowsOfPage))
    const show = isGrouped ? groupsOf : rowsOf
    const tab = (group: string | undefined, words: string) =>
      html`<li><a href="${withQuery(runsPath, { ...sent, group, before: undefined })}"${isGrouped === (group === 'cause') && html` aria-current="true"`}>${words}</a></li>`
    return html`<nav class="tabs" aria-label="Show"><ul>
${tab(undefined, 'One by one')}
${tab('cause', 'By cause')}
</ul></nav>
<section>${found === null ? notKnown('This takes too long: choose a shorter period, or say more.') : show(found, asked, sent)}</section>`
  }

  /** @returns `isAll` false: there are more, of which these are the newest */
  async function find(search: Search, actor: Actor, most: number) {
    const { group, before, text: terms = [], outcome, request, ...others } = search
    const sent = { ...others, request_id: request, outcome: outcome === 'any' ? undefined : outcome }
    const behind = group === 'cause' ? undefined : before
    const asked = { sent, terms, size: most + 1, ...(behind !== undefined && { behind }) }
    const { ids, count } = await findRuns(db, runs, actor, asked)
    return { rows: await readRunRows(db, runs, actor, ids.slice(0, most)), matching: count, isAll: ids.length <= most }
  }
}

type FoundRuns = { readonly rows: readonly RunRow[]; readonly matching: number; readonly isAll: boolean }

const periodWords: Readonly<Record<Span, string>> = {
  hour: 'the last hour',
  day: 'the last day',
  week: 'the last 7 days',
  month: 'the last 30 days',
  all: 'all time',
}

function groupsOf({ rows, isAll }: FoundRuns, { period }: Search): Html {
  const groups = groupByCause(rows)
  return html`<h2>${count(groups.length, 'group')} of ${periodWords[period]}</h2>
${groups.length > 0 && groupTable('Runs by cause', groups, mostOfGroups)}
${!isAll && html`<p class="quiet">Of the newest ${number(mostGrouped)} runs: there are more.</p>`}`
}

function rowsOf({ rows, matching, isAll }: FoundRuns, { period }: Search, sent: Sent): Html {
  const last = isAll ? undefined : rows.at(-1)
  return html`<h2>${matching > mostCounted ? `${number(mostCounted)}+ runs` : count(matching, 'run')} of ${periodWords[period]}</h2>
${rows.length > 0 && runTable('Runs', rows)}
${turns(runsPath, sent, last && `${Date.parse(last.created_at)}.${last.id}`)}`
}

/** The form asks again for what is shown. */
const byCause = html`<input type="hidden" name="group" value="cause">`

const fields: Readonly<Partial<Record<Field, FilterField>>> = {
  period: { label: 'Period', words: periodWords },
  outcome: {
    label: 'Outcome',
    words: { '': 'any', ...wordsBy(outcomesAsked), unknown: 'unknown yet', attention: 'failed or not taken' },
  },
  object: { label: 'Object', hint: 'application:shop' },
  who: { label: 'Who' },
  owner: { label: 'Owner' },
  stack: { label: 'Stack', hint: 'corp/identity' },
  kind: { label: 'Kind' },
  repository: { label: 'Repository', hint: 'acme/shop' },
  commit: { label: 'Commit' },
  request: { label: 'Request' },
  text: { label: 'Words of the title' },
}
