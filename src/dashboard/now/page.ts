import { type Html, type HtmlValue, html } from '../../http/html.ts'
import { type Actor, allows, mayManageQueue } from '../../permissions.ts'
import { type Blocker, notGiven, workerText } from '../../runs/at-work.ts'
import { type Expiring, expiresWithinDays } from '../../views/expiries.ts'
import { isCounted } from '../../views/refusal.ts'
import { actPath, applicationsPath, nowPath, refusalsPath, runPagePath, runsPath } from '../addresses.ts'
import { teamTable } from '../applications/states.ts'
import type { Shell } from '../frame.ts'
import { byFrequency, groupTable, names, person, runLink, runTable } from '../runs/tables.ts'
import { table } from '../table.ts'
import { count, duration, mark, nameText, notKnown, number, sentenceText, shortId, shortTime, time } from '../words.ts'
import { plot } from './plot.ts'
import type { Now } from './read.ts'
import { inStateOf, parts, summary } from './summary.ts'

/** /admin/: the current state, the most urgent first. */
export const nowPage = (now: Now, actor: Actor): Shell => ({
  title: 'Now',
  asOf: now.at,
  within: nowPath,
  isLive: true,
  content: html`${summary(now, actor)}
${!allows(actor, 'view_run') && html`<p class="quiet">You see your own runs only: you lack the permission view_run.</p>`}
${parts(now)}
<div class="columns">
<div>
<section><h2>Waiting and running</h2>${queue(now)}</section>
${now.teams !== undefined && html`<section><h2>Teams</h2>${listed(now.teams, 'There is no application yet.', (all) => teamTable(all, mostRows))}</section>`}
</div>
<section><h2>Needs attention</h2>${attention(now)}</section>
</div>
<section><h2>Outcomes of the last hour</h2>${now.figures === null ? notKnown('The runs of the last hour could not be counted in time.') : plot(now.figures)}</section>
<section><h2>The last ten runs</h2>${listed(now.newest, 'There is no run yet.', (all) => html`${runTable('The last ten runs', all)}<p><a href="${runsPath}">All runs</a></p>`)}</section>
${mayManageQueue(actor) && (now.pause === null || now.pause === 'none') && html`<p class="choice"><a class="button" href="${actPath('pause')}">Pause the queue</a></p>`}`,
})

/** A part of the page, unless it could not be read. @param none what there is to say of an empty one */
function listed<Each>(found: readonly Each[] | null, none: HtmlValue, show: (found: readonly Each[]) => Html): Html {
  if (found === null) return notKnown()
  return found.length > 0 ? show(found) : html`<p>${none}</p>`
}

const mostRows = 20

function queue({ backlog, atWork }: Now): Html {
  const oldest = backlog?.oldestS ?? null
  return html`<dl class="tiles">
<div><dt>Waiting or running</dt><dd>${backlog === null ? 'not known' : number(backlog.waiting)}</dd></div>
<div><dt>The oldest waits for</dt><dd>${backlog === null ? 'not known' : oldest === null ? 'none waits' : duration(oldest * 1_000)}</dd></div>
<div><dt>At work for 1 s or longer</dt><dd>${atWork === null ? 'not known' : number(atWork.length)}</dd></div>
</dl>
${atWork === null ? notKnown() : atWork.length > 0 && running(atWork)}`
}

const running = (atWork: NonNullable<Now['atWork']>): Html =>
  table(
    'Running',
    atWork,
    {
      Run: ['name', ({ run }) => runLink(run)],
      'At work for': ['number', ({ ageMs }) => duration(ageMs)],
      Who: ['name', ({ run }) => person(run)],
      Worker: ['plain', workerCell],
      'Waits for a lock of': ['text', lockCell],
    },
    { idOf: ({ run }) => `work-${run.id}`, most: mostRows },
  )

type AtWork = NonNullable<Now['atWork']>[number]

const workerCell = ({ worker }: AtWork): Html =>
  worker === null
    ? html`<span title="It is tried again soon.">none</span>`
    : html`<span title="${workerText(worker)}">process ${String(worker.pid)}</span>`

function lockCell({ run, worker, blocker }: AtWork): Html | string {
  if (blocker !== null) return blockerText(blocker)
  return worker === null ? html`${mark('warn', 'blocked')}: ${sentenceText(run.cause ?? notGiven)}` : 'no lock'
}

function blockerText({ pid, run, program, state, openS, statement }: Blocker): Html {
  const who = html`process ${String(pid)}${program !== '' && ` (${nameText(program)})`}`
  if (run !== null)
    return html`${mark('warn', 'blocked')} by another run: <a href="${runPagePath(run)}">${shortId(run)}</a>, ${who}`
  if (state === null) return html`${mark('warn', 'blocked')} by another session, of another login: ${who}`
  return html`${mark('warn', 'blocked')} by ${who}, ${state}${openS !== null && `, its transaction is open for ${duration(openS * 1_000)}`}${statement !== null && html`; last statement: <code>${sentenceText(statement)}</code>`}`
}

function attention({ teams, failures, tokens, certificates, refused }: Now): Html {
  const failing = inStateOf(teams, 'failing')
  return html`${failing > 0 && html`<p><a href="${applicationsPath}?state=failing">${mark('bad', `${count(failing, 'application')} failing`)}</a></p>`}
<h3>Failed or not taken in the last 7 days, by cause</h3>
${listed(
  failures?.groups ?? null,
  mark('good', 'None.'),
  (groups) => html`${groupTable('Failures by cause', groups, mostRows)}
<p><a href="${runsPath}?period=week&outcome=attention">All of them</a></p>`,
)}
${failures !== null && !failures.isAll && html`<p class="quiet">There are more: these are the newest.</p>`}
<h3>Refused access and submissions, in the last hour</h3>
${refusals(refused)}
<h3 id="expiries">Expires within ${String(expiresWithinDays)} days, or has expired</h3>
${expiring('Access tokens', tokens)}
${certificates !== undefined && expiring('Certificates', certificates)}`
}

const mostCodes = 10

function refusals(found: Now['refused']): Html {
  if (found === null) return notKnown()
  const { rows, keptFrom } = found
  if (rows.length === 0 && isCounted(found)) return html`<p>${mark('good', 'None.')}</p>`
  const whoOf = (all: typeof rows) =>
    byFrequency(all, ({ username }) => username ?? 'not authenticated').map(([name]) => name)
  const lines = byFrequency(rows, ({ code }) => code).map(
    ([code, all]) =>
      html`<li>${!isCounted(found) && 'at least '}${number(all.length)} ${code}: ${names(whoOf(all))}</li>`,
  )
  return html`<ul>${lines.slice(0, mostCodes)}</ul>
${keptFrom !== null && html`<p class="quiet">Those before ${shortTime(keptFrom)} are no longer kept.</p>`}
<p><a href="${refusalsPath}">All refusals</a></p>`
}

/** @param isWhole with all rows, and their descriptions */
export function expiring(what: string, found: readonly Expiring[] | null, isWhole = false): Html {
  if (found === null) return html`<p>${what}: not known just now.</p>`
  if (found.length === 0) return html`<p>${what}: ${mark('good', 'none')}</p>`
  const now = Date.now()
  return table(
    what,
    found,
    {
      [what]: ['name', ({ name }) => nameText(name)],
      Of: ['name', ({ user }) => nameText(user ?? '')],
      Expires: ['plain', ({ expires }) => time(expires)],
      In: [
        'number',
        ({ expires }) => (Number(expires) <= now ? mark('warn', 'expired') : duration(Number(expires) - now)),
      ],
      ...(isWhole && { Description: ['text', ({ description }: Expiring) => nameText(description ?? '')] }),
    },
    isWhole ? {} : { most: mostRows },
  )
}
