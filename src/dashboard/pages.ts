import { policy, self } from '../http/headers.ts'
import { escaped, htmlPage, styleSource } from '../http/page.ts'
import { runPath } from '../paths.ts'
import { describePause, type Pause } from '../queue/pause.ts'
import { isSilent, type KnownWorker, silentWorkers } from '../queue/workers.ts'
import type { RunSummary } from '../views/run.ts'

/** The dashboard's own pages. They work without JavaScript and load nothing but the icon. */

export const basePath = '/admin/queues'
export const loginPath = `${basePath}/login/`
export const logoutPath = `${basePath}/logout/`
export const managePath = `${basePath}/manage/`
export const runPagePath = (id: string): string => `${basePath}/runs/${id}/`
export const iconPath = `${basePath}/icon.svg`

/**
 * What a page of the dashboard may load: files of this host, no inline scripts.
 *
 * @param styles sources of styles: `'self'`, or the hash of an inline style
 */
export const pagePolicy = (...styles: string[]) =>
  policy({
    'script-src': self,
    'style-src': styles,
    'img-src': self,
    'font-src': self,
    'connect-src': self,
    'worker-src': self,
    'base-uri': self,
    'form-action': self,
  })

/** For the pages below, which have one inline style. */
export const ownPagePolicy = pagePolicy(styleSource)

const page = (title: string, subtitle: string, content: string, width: 'narrow' | 'wide' = 'narrow'): string =>
  htmlPage({
    title: `${title} - Gatewright queues`,
    heading: 'Gatewright queues',
    subtitle,
    content,
    width,
    icon: iconPath,
  })

/** @param alert why the last login was refused, one sentence */
export const loginPage = (alert: string | null): string =>
  page(
    'Log in',
    'Log in with an access token',
    `${alert === null ? '' : `<p class="alert" role="alert" id="alert">${escaped(alert)}</p>`}
<form method="post" action="${loginPath}">
<label for="access_token">Access token</label>
<input id="access_token" name="access_token" type="password" required maxlength="512" autofocus autocomplete="current-password" autocapitalize="none" spellcheck="false"${alert === null ? ' aria-describedby="hint"' : ' aria-invalid="true" aria-describedby="alert hint"'}>
<p class="hint" id="hint">The token of a superuser, or of a user who may view the queue. It is not stored. The session ends after 8 hours, or when the token is no longer valid.</p>
<button type="submit">Log in</button>
</form>`,
  )

export const logoutPage = (username: string, mayManage: boolean): string =>
  page(
    'Log out',
    `Logged in as ${username}`,
    `<p class="hint">${mayManage ? 'You may view the queue, pause and resume it, and clear its failed jobs.' : 'You may view the queue, but not act on it.'}</p>
<form method="post" action="${logoutPath}"><button type="submit">Log out</button></form>
${back}`,
  )

const back = `<a class="button" href="${basePath}/">Back to the queue</a>`

export const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

const act = (name: string, label: string): string =>
  `<form method="post" action="${managePath}${name}/"><button type="submit">${label}</button></form>`

type QueueState = {
  readonly pause: Pause | null
  readonly failed: number
  readonly mayManage: boolean
  readonly workers: readonly KnownWorker[]
}

/** Whether the queue is paused, which workers there are, and what an operator may do about it. */
export function managePage({ pause, failed, mayManage, workers }: QueueState): string {
  const heard = workers.filter((each) => !isSilent(each)).length
  const paused =
    'Submissions that wait for their end are answered with 503, and not applied. Those with Prefer: respond-async are recorded, and applied when it is resumed.'
  const state =
    pause !== null
      ? alertOf(`${sentence(describePause(pause))} ${paused}`)
      : heard === 0
        ? alertOf('The queue is not paused, but no worker is heard: start one.')
        : `<p>The queue is not paused: ${heard === 1 ? 'a worker takes' : `${heard} workers take`} its jobs.</p>`
  const silent = silentWorkers(workers)
  const jobs = `<p>${failed} failed jobs. Clearing the list removes the jobs, not their runs.</p>`
  const buttons = [
    pause === null ? act('pause', 'Pause the queue') : act('resume', 'Resume the queue'),
    ...(failed > 0 ? [act('clear', 'Clear the failed jobs')] : []),
  ]
  const hint = '<p class="hint">Acting on the queue needs the permission manage_queue.</p>'
  const content = [
    state,
    ...(silent === '' ? [] : [alertOf(silent)]),
    ...(workers.length === 0 ? [] : [workersTable(workers)]),
    jobs,
    ...(mayManage ? buttons : [hint]),
    back,
  ]
  return page('Pause or clear', 'State of the queue', content.join('\n'), 'wide')
}

const alertOf = (text: string): string => `<p class="alert" role="alert">${escaped(text)}</p>`

function workersTable(workers: readonly KnownWorker[]): string {
  const rows = workers.map((each) => {
    const { host, processId, version, format, slots, busy, startedAt, takenAt, seenS } = each
    const cells = [
      `${host}, process ${processId}`,
      `${version}, format ${format}`,
      isSilent(each) ? 'not known' : `${busy} of ${slots}`,
      takenAt === null ? 'none yet' : timeText(takenAt),
      timeText(startedAt),
      isSilent(each) ? `silent for ${Math.round(seenS)} s` : 'now',
    ]
    const [first = '', ...others] = cells.map(escaped)
    return `<tr${isSilent(each) ? ' class="silent"' : ''}><th scope="row">${first}</th>${others.map((cell) => `<td>${cell}</td>`).join('')}</tr>`
  })
  const heads = ['Worker', 'Version', 'Jobs', 'Last job', 'Started', 'Heard']
  const head = heads.map((each) => `<th scope="col">${each}</th>`).join('')
  return `<div class="scroll" role="region" aria-label="Workers" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${rows.join('\n')}</tbody></table></div>`
}

/** In UTC: `2026-11-23 09:15:04 UTC`. */
const timeText = (at: Date): string => `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`

/** What became of a submission. */
export function runPage(run: RunSummary): string {
  const rows = Object.entries({
    State: run.state,
    Applied: run.applied === true ? 'yes' : run.finished_at === null ? 'not known yet' : 'no',
    Reason: run.reason ?? '',
    Cause: run.cause ?? '',
    'Repaired by': run.repaired_by ?? '',
    Log: run.logs.join('\n'),
    Submitter: run.submitter_name ?? '',
    Request: run.request_id,
    Attempts: String(run.attempts),
    Recorded: run.created_at,
    Finished: run.finished_at ?? '',
    Address: runPath(run.id),
  }).filter(([, value]) => value !== '')
  const list = rows.map(([name, value]) => `<dt>${name}</dt><dd>${escaped(value).replaceAll('\n', '<br>')}</dd>`)
  return page('Run', run.title, `<dl>${list.join('\n')}</dl>${back}`, 'wide')
}

export const messagePage = (title: string, text: string): string =>
  page(title, title, `<p class="alert" role="alert">${escaped(text)}</p>${back}`)
