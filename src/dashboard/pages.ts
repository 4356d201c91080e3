import { icon } from '../http/icon.ts'
import { runPath } from '../paths.ts'
import { describePause, type Pause } from '../queue/pause.ts'
import type { RunSummary } from '../views/run.ts'
import { hashSource, pagePolicy } from './policy.ts'

/** The dashboard's own pages. They work without JavaScript and load nothing but the icon. */

export const basePath = '/admin/queues'
export const loginPath = `${basePath}/login/`
export const logoutPath = `${basePath}/logout/`
export const managePath = `${basePath}/manage/`
export const runPagePath = (id: string): string => `${basePath}/runs/${id}/`
export const iconPath = `${basePath}/icon.svg`

const style = `
:root { color-scheme: light dark; --page: #f1f5f9; --card: #fff; --text: #0f172a; --soft: #475569; --line: #cbd5e1; --field: #fff;
  --brand: #1d4ed8; --brand-over: #1e40af; --on-brand: #fff; --bad: #b91c1c; --bad-soft: #fef2f2; --bad-line: #fecaca }
@media (prefers-color-scheme: dark) { :root { --page: #0b1120; --card: #131c2e; --text: #e2e8f0; --soft: #94a3b8; --line: #334155; --field: #0b1120;
  --brand: #60a5fa; --brand-over: #93c5fd; --on-brand: #0b1120; --bad: #fca5a5; --bad-soft: #2a1215; --bad-line: #7f1d1d } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif }
main { width: 100%; max-width: 25rem; padding: 2rem; background: var(--card); border: 1px solid var(--line); border-radius: .875rem;
  box-shadow: 0 1px 2px rgb(15 23 42 / .06), 0 12px 32px rgb(15 23 42 / .08) }
header { display: flex; align-items: center; gap: .75rem; margin-bottom: 1.5rem }
header svg { flex: none; width: 2.5rem; height: 2.5rem }
header p { margin: 0; color: var(--soft); font-size: .875rem }
h1 { margin: 0; font-size: 1.25rem; line-height: 1.3 }
label { display: block; margin-bottom: .375rem; font-weight: 600 }
input { width: 100%; padding: .625rem .75rem; font: inherit; color: inherit; background: var(--field); border: 1px solid var(--line); border-radius: .5rem }
input[aria-invalid] { border-color: var(--bad) }
.hint { margin: .5rem 0 1.5rem; color: var(--soft); font-size: .875rem }
button, .button { display: block; width: 100%; padding: .625rem 1rem; font: inherit; font-weight: 600; text-align: center; text-decoration: none; cursor: pointer;
  color: var(--on-brand); background: var(--brand); border: 1px solid var(--brand); border-radius: .5rem }
button:hover { background: var(--brand-over); border-color: var(--brand-over) }
.button { margin-top: .75rem; color: var(--text); background: none; border-color: var(--line) }
:focus-visible { outline: 3px solid var(--brand); outline-offset: 2px }
form + form { margin-top: .75rem }
main.wide { max-width: 44rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .375rem 1rem; margin: 0 0 1.5rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
.alert { margin: 0 0 1.25rem; padding: .625rem .75rem; color: var(--bad); background: var(--bad-soft); border: 1px solid var(--bad-line); border-radius: .5rem; font-size: .9375rem }
`

/** For the pages below, which have one inline style. */
export const ownPagePolicy = pagePolicy(hashSource(style))

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

type QueueState = { readonly pause: Pause | null; readonly failed: number; readonly mayManage: boolean }

/** Whether the queue is paused, and what an operator may do about it. */
export function managePage({ pause, failed, mayManage }: QueueState): string {
  const state =
    pause === null
      ? '<p>The queue is not paused: workers take its jobs.</p>'
      : `<p class="alert" role="alert">${escaped(sentence(describePause(pause)))} Submissions are answered with 503.</p>`
  const jobs = `<p>${failed} failed jobs. Clearing the list removes the jobs, not their runs.</p>`
  const buttons = [
    pause === null ? act('pause', 'Pause the queue') : act('resume', 'Resume the queue'),
    ...(failed > 0 ? [act('clear', 'Clear the failed jobs')] : []),
  ]
  const hint = '<p class="hint">Acting on the queue needs the permission manage_queue.</p>'
  return page('Pause or clear', 'State of the queue', `${state}${jobs}${mayManage ? buttons.join('\n') : hint}${back}`)
}

/** What became of a submission. */
export function runPage(run: RunSummary): string {
  const rows = Object.entries({
    State: run.state,
    Applied: run.applied === true ? 'yes' : run.finished_at === null ? 'not known yet' : 'no',
    Reason: run.reason ?? '',
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

const page = (title: string, subtitle: string, content: string, width = ''): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} - Gatewright queues</title>
<link rel="icon" type="image/svg+xml" href="${iconPath}">
<style>${style}</style>
</head>
<body>
<main class="${width}">
<header>${icon.replace('<svg', '<svg aria-hidden="true"')}<div><h1>Gatewright queues</h1><p>${escaped(subtitle)}</p></div></header>
${content}
</main>
</body>
</html>
`

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character] ?? character)
