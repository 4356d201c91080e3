import { z } from 'zod'
import { inTime } from '../../db/in-time.ts'
import { denied } from '../../http/access.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { type AuditSpan, auditList, auditOfOperators, auditSpans } from '../../lists/audit.ts'
import { findPage } from '../../lists/list.ts'
import { type Actor, allows } from '../../permissions.ts'
import { cutTo } from '../../sides.ts'
import { type AuditEntry, readAuditEntries } from '../../views/audit.ts'
import { auditPath, runPagePath } from '../addresses.ts'
import { filters, sentKey, sentText, turns, wordsBy } from '../filter-fields.ts'
import { pageRoute, sendPage } from '../frame.ts'
import type { Sources } from '../sources.ts'
import { table } from '../table.ts'
import { named, namesOf, nameText, notKnown, sentenceText, shortId, shortTime, wordsOf } from '../words.ts'

/** /admin/audit/: actions with their users. */

const auditQuery = z.strictObject({
  period: z.enum(Object.keys(auditSpans) as [AuditSpan]).default('day'),
  action: sentText,
  object: sentText,
  /** A part of the name of the user, or of the user who impersonated it. */
  who: sentText,
  id: sentText,
  /** Applies that changed nothing. */
  unchanged: z.enum(['', 'shown']).default(''),
  before: sentKey(),
})
type Question = z.output<typeof auditQuery>
type NameOf = ReturnType<typeof namesOf>

const rowsOfPage = 50
/** The most rows that are counted, which nothing shows: more are found along the order. */
const mostCounted = 1_000

const changeActions = ['create', 'update', 'delete']

export function auditPage(app: Api, { db, registry }: Sources): void {
  const audit = auditOfOperators(auditList(registry))
  const nameOf = namesOf(registry)

  app.get(auditPath, pageRoute({ querystring: auditQuery }), async ({ actor, query: question }, reply) => {
    if (!allows(actor, 'view_audit')) throw denied(['view_audit'])
    const { before } = question
    const object = question.object === null ? undefined : audit.filters.object?.schema.safeParse(question.object)
    const wrong = object?.error?.issues[0]?.message ?? null
    const found = wrong === null ? await inTime(search(actor, question, object?.data)).catch(() => null) : null
    const next = found !== null && found.length > rowsOfPage ? found[rowsOfPage - 1]?.id : undefined
    const content = html`<p>Who did what: applies, writes of single objects, acts on the queue, and reads while impersonating. Names of objects and fields, and no values.</p>
${filters(auditPath, fields, question, { wrong: { object: wrong ?? undefined } })}
${
  wrong !== null
    ? html`<p class="alert" role="alert">Nothing is shown: Object: ${wrong}</p>`
    : html`<section><h2>${spanWords[question.period]}</h2>
${found === null ? notKnown('This takes too long: choose a shorter period, or say more.') : list(found.slice(0, rowsOfPage), question, nameOf)}
${turns(auditPath, question, next)}</section>`
}`
    return sendPage(reply, { title: 'Audit', asOf: new Date(), within: auditPath, isLive: before === null, content })
  })

  /** One row more than a page shows says that there are more. */
  async function search(actor: Actor, question: Question, object: unknown): Promise<readonly AuditEntry[]> {
    const { period, action, who, id, unchanged, before } = question
    // An apply makes, changes and deletes, too.
    const acted = action !== null && { [changeActions.includes(action) ? 'change' : 'action']: action }
    const { keys } = await findPage(db, audit, actor, {
      sent: { period, ...acted, object, id: id ?? undefined, changed: (unchanged === '' && id === null) || undefined },
      terms: who === null ? [] : [who],
      size: rowsOfPage + 1,
      mostCounted,
      ...(before !== null && { behind: [before] }),
    })
    return readAuditEntries(db, keys)
  }
}

function list(rows: readonly AuditEntry[], question: Question, nameOf: NameOf): Html {
  if (rows.length === 0) return html`<p>There is nothing of this kind.</p>`
  return table(
    'The audit, the newest first',
    rows,
    {
      When: ['plain', ({ at }) => shortTime(new Date(at))],
      Who: ['name', whoOf],
      Action: ['plain', ({ action }) => nameText(wordsOf(action))],
      What: ['text', (each) => whatOf(each, question, nameOf)],
      Run: ['plain', ({ run }) => run !== null && html`<a href="${runPagePath(run)}">${shortId(run)}</a>`],
      Request: ['name', ({ request_id: id }) => id !== null && nameText(id)],
    },
    { idOf: ({ id }) => `audit-${id}` },
  )
}

const spanWords: Readonly<Record<AuditSpan, string>> = {
  day: 'The last day',
  week: 'The last 7 days',
  month: 'The last 30 days',
  all: 'All time',
}

/** The actions that this version records. A search may name another action, of an earlier version. */
const actions = [
  ...['apply', 'create', 'update', 'delete', 'view_key', 'read', 'exchange', 'exchange_again', 'refuse_exchange'],
  ...['cancel_run', 'pause_queue', 'resume_queue', 'forget_secrets', 'forget_member', 'read_configurations'],
  ...['record_consents', 'set_issuer', 'bootstrap'],
]

const fields = {
  period: { label: 'Period', words: spanWords },
  action: { label: 'Action', words: { '': 'any', ...wordsBy(actions) } },
  object: { label: 'Object', hint: 'group:platform' },
  who: { label: 'Who' },
  id: { label: 'Run or request' },
  unchanged: { label: 'Unchanged', words: { '': 'left out', shown: 'shown' } },
}

const whoOf = ({ real_user: real, user }: AuditEntry): Html | string =>
  real === null
    ? nameText(user.username)
    : html`${nameText(real.username)} <span class="quiet">as</span> ${nameText(user.username)}`

const mostObjects = 3

/** The objects, each with its change: `group platform changed: name, roles`. Those that were searched for are the first. */
function whatOf({ changes, change_count: all }: AuditEntry, question: Question, nameOf: NameOf): Html {
  if (all === 0) return html`nothing was to be changed`
  const left = all - Math.min(mostObjects, changes.length)
  const name = question.object?.replace(/^[^:]*:/, '').normalize('NFC')
  const rank = (each: Edit) =>
    2 * Number(each.name === name || String(each.key) === name) + Number(each.action === question.action)
  const first = changes.toSorted((one, other) => rank(other) - rank(one)).slice(0, mostObjects)
  return html`${first.map((change, index) => html`${index > 0 && html`<br>`}${objectOf(change, nameOf)}`)}${left > 0 && html`<br>and ${String(left)} more`}`
}

const mostFields = 8

const doneWords: Readonly<Record<string, string>> = { create: 'created', update: 'changed', delete: 'deleted' }

type Edit = AuditEntry['changes'][number]

function objectOf({ model, key, name, action, fields, value, reason }: Edit, nameOf: NameOf): Html {
  if (model === 'queue')
    return html`${value !== undefined && `${fields.join(', ')}: ${value}`}${reason !== undefined && html` - ${cutTo(1_200, reason)}`}`
  const object =
    name === undefined
      ? named(nameText(String(key)))
      : html`<span class="name" title="${nameText(`${name} (${String(key)})`)}">${nameText(name)}</span>`
  const left = fields.length - mostFields
  // All fields of a new object are new.
  const listed =
    action === 'create' || fields.length === 0
      ? ''
      : `: ${fields.slice(0, mostFields).join(', ')}${left > 0 ? ` and ${left} more` : ''}`
  return html`${nameText(nameOf(model))} ${object} ${doneWords[action] ?? wordsOf(action)}${sentenceText(listed)}`
}
