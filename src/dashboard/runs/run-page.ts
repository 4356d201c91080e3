import { cutTo, type Html, type HtmlValue, html } from '../../http/html.ts'
import type { RunRow } from '../../lists/run-rows.ts'
import { runPath } from '../../paths.ts'
import { type Actor, allowsSome } from '../../permissions.ts'
import { outcomeOf } from '../../runs/outcome.ts'
import { mayRollBack } from '../../submissions/access.ts'
import type { Run } from '../../views/run.ts'
import { applicationPath, documentPath, jobPath, rollBackPath, runPagePath, runsPath, withQuery } from '../addresses.ts'
import { page } from '../frame.ts'
import { factList, table } from '../table.ts'
import { duration, nameText, number, outcomeMark, sentenceText, time } from '../words.ts'
import { areUnchanged, changeCounts, changesPart, lineList } from './changes.ts'
import { mostObjects } from './same-objects.ts'
import { runTable } from './tables.ts'

/** /admin/runs/{id}/: the outcome of a submission. */

type Shown = {
  /** Runs of the same objects that came later, the next one first; null: they could not be read. */
  readonly later: readonly RunRow[] | null
  /** The index of the first change that is shown. */
  readonly start: number
  /** The display name of a model. */
  readonly nameOf: (model: string) => string
}

export function runPage(run: Run, { later, start, nameOf }: Shown, actor: Actor): string {
  const isOver = run.finished_at !== null
  return page({
    title: run.title,
    actor,
    within: runsPath,
    // It may be repaired later.
    isLive: !isOver || ((run.state === 'failed' || run.state === 'cancelled') && run.repaired !== true),
    content: html`${summary(run)}
${unreadable(run)}
${isOver && mayRollBack(actor, run.submitter) && html`<p><a class="button" href="${rollBackPath(run.id)}">${run.applied === true ? 'Plan again or roll back to this' : 'Plan it again'}</a></p>`}
${
  start === 0 &&
  html`<div class="columns"><section><h2>Facts</h2>${facts(run, allowsSome(actor, 'view_application'))}</section>
<div>${said(run)}${attempts(run)}${laterRuns(run, later)}</div></div>`
}
${changed(run, start, nameOf)}`,
  })
}

function summary(run: Run): Html {
  const { cause, repaired, repaired_by, changes } = run
  const outcome = outcomeOf(run, changes.length > 0 && areUnchanged(changes))
  const look = outcome === 'failed' || outcome === 'refused' || outcome === 'cancelled' ? 'bad' : 'good'
  return html`<div class="summary ${look}"><p>${outcomeMark({ outcome, state: run.state })} <span class="says">${says(run, outcome)}</span></p>
${cause !== null && html`<p>${run.finished_at === null ? 'Not applied yet' : 'Cause'}: ${sentenceText(cause)}</p>`}
${repaired === true && html`<p>Repaired by ${repaired_by === null ? 'a later run' : html`<a href="${runPagePath(repaired_by)}">a later run</a>`}.</p>`}</div>`
}

function says({ progress, changes }: Run, outcome: RunRow['outcome']): string {
  const counted = changeCounts(changes)
  switch (outcome) {
    case 'unknown':
      return progress === null
        ? 'It has not ended.'
        : `${number(progress.done)} of ${number(progress.total)} entries are done.`
    case 'planned':
      return counted === '' ? 'Nothing was changed.' : `It would do this: ${counted}.`
    case 'applied':
    case 'unchanged':
      return counted === '' ? '' : `${counted}.`
    case 'refused':
    case 'failed':
    case 'cancelled':
      return 'Nothing was changed.'
    default:
      return outcome satisfies never
  }
}

function facts(run: Run, seesApplications: boolean): Html {
  const rows: readonly (readonly [string, HtmlValue])[] = [
    ['Who', run.submitter_name && nameText(run.submitter_name)],
    [run.owners.length > 1 ? 'Owners' : 'Owner', run.owners.map(nameText).join(', ') || null],
    ['Kind', run.kind],
    [
      'Application',
      run.slug !== null && seesApplications ? html`<a href="${applicationPath(run.slug)}">${run.slug}</a>` : run.slug,
    ],
    ['Mode', run.mode === 'plan' ? 'a plan: nothing was kept' : null],
    ['Reason', run.reason],
    ['Cancelled by', run.cancelled_by],
    ['Message', run.message && cutTo(1_000, run.message)],
    ['Allowed', cutTo(1_000, run.allowed.join(', ')) || null],
    ['Request', job(run)],
    ['Recorded', time(new Date(run.created_at))],
    ['Began', run.started_at !== null && time(new Date(run.started_at))],
    ['Ended', run.finished_at !== null && time(new Date(run.finished_at))],
    ['In the queue', run.queue_ms !== null && duration(run.queue_ms)],
    ['At work', run.work_ms !== null && duration(run.work_ms)],
    ['Enqueued', run.attempts === 1 ? null : `${number(run.attempts)} times`],
    ['Document', html`<a href="${documentPath(run.id)}">as it was sent, secrets masked</a>`],
    ['In the API', html`<code>${runPath(run.id)}</code>`],
    ['Job', html`<a href="${jobPath(run)}">on the queue board</a>, while the queue keeps it`],
  ]
  return factList(rows)
}

/** The log of a run. An applied run has the same in its changes. */
function said({ logs, applied, changes }: Run): Html | false {
  if (logs.length === 0 || (applied === true && changes.length > 0)) return false
  return html`<section><h2>What it says</h2>${lineList(logs)}</section>`
}

const mostAttempts = 20

function attempts({ failed_attempts }: Run): Html | false {
  if (failed_attempts.length === 0) return false
  const rows = failed_attempts.slice(-mostAttempts)
  return html`<section><h2>Failed attempts</h2>${table(
    'Failed attempts',
    { Attempt: 'number', At: 'plain', Cause: 'text' },
    rows.map(({ attempt, at, cause }) => ({ cells: [attempt, time(new Date(at)), sentenceText(cause)] })),
  )}</section>`
}

function laterRuns(run: Run, later: readonly RunRow[] | null): Html | false {
  const isMore = run.changes.filter(({ action }) => action !== 'unchanged').length > mostObjects
  const title = `Later runs of ${isMore ? `its first ${mostObjects}` : 'the same'} objects`
  if (later === null)
    return html`<section><h2>${title}</h2><p class="quiet">They could not be read in time.</p></section>`
  return later.length > 0 && html`<section><h2>${title}</h2>${runTable(title, later, new Date())}</section>`
}

const parts: Readonly<Record<Run['unreadable'][number], string>> = {
  changes: 'some of its changes',
  options: 'its owner, and what its submitter allowed',
}

/** Changes that cannot be read: SQL, or another version, may have written them. */
const unreadable = ({ unreadable: found }: Run): Html | false =>
  found.length > 0 &&
  html`<p class="alert" role="alert">The database holds a part of this run that could not be read: ${found.map((each) => parts[each]).join('; ')}. All else is shown.</p>`

function changed({ id, mode, changes }: Run, start: number, nameOf: Shown['nameOf']): Html | false {
  if (changes.length === 0) return false
  return html`<section><h2>${mode === 'plan' ? 'Changes that it would make' : 'Changes'}: ${changeCounts(changes)}</h2>
${changesPart(changes, runPagePath(id), { start, nameOf })}</section>`
}

/**
 * The job of a run, by its submitter and its request ID together: any caller may send any ID. A user who was deleted has no runs
 * to find.
 */
function job({ request_id: request, submitter_name: who }: Run): Html | string {
  if (who === null) return nameText(request)
  return html`<a href="${withQuery(runsPath, { period: 'all', request, who })}">${nameText(request)}</a>`
}
