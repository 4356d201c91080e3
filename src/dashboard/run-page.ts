import { type HtmlValue, html } from '../http/html.ts'
import { runPath } from '../paths.ts'
import type { Actor } from '../permissions.ts'
import type { RunSummary } from '../views/run.ts'
import { nowPath, runPagePath } from './addresses.ts'
import { page } from './frame.ts'
import { time } from './words.ts'

/** What became of a submission. */
export function runPage(run: RunSummary, actor: Actor): string {
  const rows: readonly (readonly [string, HtmlValue])[] = [
    ['State', run.state],
    ['Applied', run.applied === true ? 'yes' : run.finished_at === null ? 'not known yet' : 'no'],
    ['Reason', run.reason],
    ['Cause', run.cause],
    ['Repaired by', run.repaired_by !== null && html`<a href="${runPagePath(run.repaired_by)}">${run.repaired_by}</a>`],
    ['Log', run.logs.length > 0 && run.logs.map((line) => html`${line}<br>`)],
    ['Submitter', run.submitter_name],
    ['Request', run.request_id],
    ['Attempts', run.attempts],
    ['Recorded', time(new Date(run.created_at))],
    ['Finished', run.finished_at !== null && time(new Date(run.finished_at))],
    ['Address', html`<code>${runPath(run.id)}</code>`],
  ]
  return page({
    title: run.title,
    actor,
    within: nowPath,
    isLive: run.finished_at === null,
    content: html`<h1>${run.title}</h1>
<dl class="facts card">${rows.map(
      ([name, value]) =>
        value !== null &&
        value !== false &&
        html`<dt>${name}</dt><dd>${value}</dd>
`,
    )}</dl>`,
  })
}
