import { z } from 'zod'
import { cutTo, type Html, html } from '../../http/html.ts'
import { type AuditSpan, auditSpans } from '../../lists/audit.ts'
import type { Actor } from '../../permissions.ts'
import type { AuditEntry } from '../../views/audit.ts'
import { auditPath, runPagePath, withQuery } from '../addresses.ts'
import { choiceField, sentKey, sentText, textField } from '../filter-fields.ts'
import { page } from '../frame.ts'
import { moves, type Row, table } from '../table.ts'
import { nameText, notKnown, sentenceText, shortId, shortTime } from '../words.ts'

/** /admin/audit/: actions with their users. */

export const auditQuery = z.strictObject({
  period: z.enum(Object.keys(auditSpans) as [AuditSpan]).default('day'),
  action: sentText,
  /** A kind and a name, as in the search of runs. */
  object: sentText,
  /** A part of the name of the user, or of the user who impersonated it. */
  who: sentText,
  /** The id of a run or of a request. */
  id: sentText,
  /** Applies that changed nothing. */
  unchanged: z.enum(['', 'shown']).default(''),
  before: sentKey,
})
export type AuditQuestion = z.output<typeof auditQuery>

/** The newest first. @property next the key of the last row if there are more */
export type FoundAudit = { readonly rows: readonly AuditEntry[]; readonly next: string | null }

type Shown = {
  readonly question: AuditQuestion
  /** Null: it could not be read in time. */
  readonly found: FoundAudit | null
  /** What is wrong with the object: then nothing is searched. */
  readonly wrong: string | null
  readonly nameOf: (model: string) => string
}

export const auditPage = ({ question, found, wrong, nameOf }: Shown, actor: Actor): string =>
  page({
    title: 'Audit',
    asOf: new Date(),
    actor,
    within: auditPath,
    isLive: question.before === null,
    content: html`<p>Who did what: applies, writes of single objects, acts on the queue, and reads while impersonating. Names of objects and fields, and no values.</p>
${form(question, wrong)}
${
  wrong !== null
    ? html`<p class="alert" role="alert">Nothing is shown: Object: ${wrong}</p>`
    : html`<section><h2>${spanWords[question.period]}</h2>
${found === null ? html`${notKnown('This takes too long: choose a shorter period, or say more.')}${linksOf(question, null)}` : results(question, found, nameOf)}</section>`
}`,
  })

function results(question: AuditQuestion, { rows: all, next }: FoundAudit, nameOf: Shown['nameOf']): Html {
  const now = new Date()
  return html`${
    all.length > 0
      ? table(
          'The audit, the newest first',
          columns,
          all.map((each) => rowOf(each, question, nameOf, now)),
        )
      : html`<p>There is nothing of this kind.</p>`
  }
${linksOf(question, next)}`
}

const linksOf = (question: AuditQuestion, next: string | null): Html =>
  moves({
    'The newest': question.before !== null && withQuery(auditPath, { ...question, before: null }),
    Older: next !== null && withQuery(auditPath, { ...question, before: next }),
  })

const spanWords: Readonly<Record<AuditSpan, string>> = {
  day: 'The last day',
  week: 'The last 7 days',
  month: 'The last 30 days',
  all: 'All time',
}

/** The actions that this version records. A search may name another action, of an earlier version. */
const actions = [
  ...['apply', 'create', 'update', 'delete', 'view_key', 'read'],
  ...['cancel_run', 'pause_queue', 'resume_queue', 'forget_secrets', 'bootstrap'],
] as const

const form = (
  { period, action, object, who, id, unchanged }: AuditQuestion,
  wrong: string | null,
): Html => html`<form class="filters" method="get" action="${auditPath}">
${choiceField('period', 'Period', period, Object.entries(spanWords))}
${choiceField('action', 'Action', action ?? '', [['', 'any'], ...actions.map((each) => [each, wordsOf(each)] as const)])}
${textField('object', 'Object', { value: object, hint: 'group:platform', isWrong: wrong !== null })}
${textField('who', 'Who', { value: who })}
${textField('id', 'Run or request', { value: id })}
${choiceField('unchanged', 'Unchanged', unchanged, Object.entries({ '': 'left out', shown: 'shown' }))}
<div class="choice"><button type="submit">Show</button><a class="button" href="${auditPath}">Clear</a></div>
</form>`

/** The words of an action: `pause_queue` -> `pause queue`. */
const wordsOf = (action: string): string => action.replaceAll('_', ' ')

const columns = { When: 'plain', Who: 'plain', Action: 'plain', What: 'text', Run: 'plain', Request: 'text' } as const

const rowOf = (each: AuditEntry, question: AuditQuestion, nameOf: Shown['nameOf'], now: Date): Row => ({
  id: `audit-${each.id}`,
  cells: [
    shortTime(new Date(each.at), now),
    each.real_user === null
      ? nameText(each.user.username)
      : html`${nameText(each.real_user.username)} <span class="quiet">as</span> ${nameText(each.user.username)}`,
    nameText(wordsOf(each.action)),
    whatOf(each, question, nameOf),
    each.run !== null && html`<a href="${runPagePath(each.run)}">${shortId(each.run)}</a>`,
    each.request_id !== null && html`<code>${nameText(each.request_id)}</code>`,
  ],
})

const mostObjects = 3

/** The objects, each with its change: `group platform changed: name, roles`. Those that were searched for are the first. */
function whatOf({ changes, change_count: all }: AuditEntry, question: AuditQuestion, nameOf: Shown['nameOf']): Html {
  if (all === 0) return html`nothing was to be changed`
  const left = all - Math.min(mostObjects, changes.length)
  const name = question.object?.replace(/^[^:]*:/, '').normalize('NFC')
  const rank = (each: Change) => 2 * Number(each.name === name) + Number(each.action === question.action)
  const first = changes.toSorted((one, other) => rank(other) - rank(one)).slice(0, mostObjects)
  return html`${first.map((change, index) => html`${index > 0 && html`<br>`}${objectOf(change, nameOf)}`)}${left > 0 && html`<br>and ${String(left)} more`}`
}

const mostFields = 8

const doneWords: Readonly<Record<string, string>> = { create: 'created', update: 'changed', delete: 'deleted' }

type Change = AuditEntry['changes'][number]

function objectOf({ model, key, name, action, fields, value, reason }: Change, nameOf: Shown['nameOf']): Html {
  if (model === 'queue')
    return html`${value !== undefined && `${fields.join(', ')}: ${value}`}${reason !== undefined && html` - ${cutTo(1_200, reason)}`}`
  const object =
    name === undefined
      ? html`<code>${nameText(String(key))}</code>`
      : html`<span title="${nameText(String(key))}">${nameText(name)}</span>`
  const left = fields.length - mostFields
  // All fields of a new object are new.
  const listed =
    action === 'create' || fields.length === 0
      ? ''
      : `: ${fields.slice(0, mostFields).join(', ')}${left > 0 ? ` and ${left} more` : ''}`
  return html`${nameText(nameOf(model))} ${object} ${doneWords[action] ?? wordsOf(action)}${sentenceText(listed)}`
}
