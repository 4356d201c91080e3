import { z } from 'zod'
import { inTime } from '../../db/in-time.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { allows, seesAllRuns } from '../../permissions.ts'
import {
  isCounted,
  type Refusals,
  readRefusals,
  refusalKinds,
  refusalsKept,
  refusalsOfSecond,
} from '../../views/refusal.ts'
import { refusalsPath } from '../addresses.ts'
import { filters, sentKey, sentText, turns, wordsBy } from '../filter-fields.ts'
import { pageRoute, sendPage } from '../frame.ts'
import { byFrequency } from '../runs/tables.ts'
import type { Sources } from '../sources.ts'
import { table } from '../table.ts'
import { count, mark, nameText, notKnown, number, sentenceText, shortTime, time, titleText } from '../words.ts'

/** /admin/refusals/: refused access, refused submissions, and failed logins. */

const refusalsQuery = z.strictObject({
  kind: sentText.pipe(z.enum(refusalKinds).nullable()),
  who: sentText,
  id: sentText,
  before: sentKey(),
})
type Question = z.output<typeof refusalsQuery>
type Refused = Refusals['rows'][number]

const mostRows = 100

export const refusalsPage = (app: Api, { db }: Sources): void => {
  app.get(refusalsPath, pageRoute({ querystring: refusalsQuery }), async ({ actor, query }, reply) => {
    const before = query.before === null ? null : BigInt(query.before)
    const found = await inTime(readRefusals(db, actor, { ...query, before })).catch(() => null)
    const content = html`<p>Writes that were refused, and reads of the audit, of others' runs and of token keys; failed logins; identity tokens of jobs that got no access token; and submissions that did not become runs. The last ${number(refusalsKept)} of users are kept, and as many without a valid token, without what was sent.</p>
${!seesAllRuns(actor) && html`<p class="quiet">You see your own only: ${allows(actor, 'view_run') ? 'your rights are bound to owners' : 'you lack the permission view_run'}.</p>`}
${filters(refusalsPath, fields, query)}
${found === null ? notKnown() : contentOf(query, found)}`
    const title = 'Refused access and submissions'
    return sendPage(reply, { title, asOf: new Date(), within: refusalsPath, isLive: before === null, content })
  })
}

const fields = {
  kind: { label: 'Kind', words: { '': 'any', ...wordsBy(refusalKinds) } },
  who: { label: 'Who' },
  id: { label: 'Request' },
}

function contentOf(question: Question, found: Refusals): Html {
  const { before } = question
  const { rows, keptFrom, isFlood } = found
  const shown = rows.slice(0, mostRows)
  const next = shown.length < rows.length ? rows[shown.length - 1]?.pk : undefined
  if (rows.length === 0 && before === null && isCounted(found)) return html`<p>${mark('good', 'None.')}</p>`
  return html`${before === null && rows.length > 0 && byReason(found)}
<section><h2>${before !== null ? 'Older refusals' : isCounted(found) ? count(rows.length, 'refusal') : `${number(rows.length)}+ refusals`}</h2>
${keptFrom !== null && html`<p class="quiet">Those before ${time(keptFrom)} are no longer kept.</p>`}
${isFlood && html`<p class="quiet">More came than are kept: at most ${number(refusalsOfSecond)} a second of each server. The metric gatewright_http_requests_total counts all answers.</p>`}
${
  shown.length === 0
    ? html`<p>There is none.</p>`
    : table(
        'Refusals, the newest first',
        shown,
        {
          Answered: ['plain', ({ at }) => shortTime(at)],
          Status: ['number', ({ status }) => String(status)],
          Reason: ['plain', ({ code }) => code],
          Who: ['name', nameOf],
          What: ['text', ({ title, route }) => titleText(title ?? route)],
          Why: ['text', ({ sentence }) => sentenceText(sentence)],
          Request: ['name', ({ requestId }) => nameText(requestId)],
        },
        { idOf: ({ pk }) => `refusal-${pk}` },
      )
}
${turns(refusalsPath, question, next === undefined ? undefined : String(next))}</section>`
}

const mostGroups = 20

function byReason(found: Refusals): Html {
  const keyOf = (each: Refused) => `${each.status} ${each.code} ${nameOf(each)}`
  const groups = byFrequency(found.rows, keyOf).flatMap(([, [last, ...others]]) =>
    last === undefined ? [] : [{ number: others.length + 1, last }],
  )
  const left = groups.length - mostGroups
  return html`<section><h2>By reason and who</h2>${table('Refusals by reason and who', groups.slice(0, mostGroups), {
    Reason: ['plain', ({ last }) => last.code],
    Status: ['number', ({ last }) => String(last.status)],
    Who: ['name', ({ last }) => nameOf(last)],
    [isCounted(found) ? 'Refusals' : 'At least']: ['number', ({ number: times }) => number(times)],
    Last: ['plain', ({ last }) => shortTime(last.at)],
  })}${left > 0 && html`<p class="quiet">And ${count(left, 'other')}.</p>`}</section>`
}

const nameOf = ({ username }: Refused): string => nameText(username ?? 'not authenticated')
