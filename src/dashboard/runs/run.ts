import { z } from 'zod'
import { ifInTime, inTime } from '../../db/in-time.ts'
import { Problem } from '../../errors.ts'
import type { Api } from '../../http/api.ts'
import { type Html, html } from '../../http/html.ts'
import { queryInteger } from '../../lists/filters.ts'
import type { RunRow } from '../../lists/run-rows.ts'
import type { Registry } from '../../models/registry.ts'
import { runPath } from '../../paths.ts'
import { type Actor, allows, allowsSome } from '../../permissions.ts'
import { type AtWork, isBlocked, readAtWork, workerText } from '../../runs/at-work.ts'
import { outcomeOf } from '../../runs/outcome.ts'
import { cutTo } from '../../sides.ts'
import { mayRollBack } from '../../submissions/access.ts'
import { readKeyNames } from '../../views/key-names.ts'
import { readRun } from '../../views/one-run.ts'
import type { Run } from '../../views/run.ts'
import { applicationPath, documentPath, jobPath, rollBackPath, runPagePath, runsPath, withQuery } from '../addresses.ts'
import { pageRoute, sendPage } from '../frame.ts'
import type { Sources } from '../sources.ts'
import { factList, moves } from '../table.ts'
import {
  copyButton,
  count,
  duration,
  jobFacts,
  mark,
  named,
  nameText,
  number,
  sentenceText,
  shortId,
  stateOf,
  time,
} from '../words.ts'
import { areUnchanged, changeCounts, changesPart, lineList, startOfPart } from './changes.ts'

/** /admin/runs/{id}/: when what happened, and what it changed. */

const params = z.object({ id: z.guid() })
/** Milliseconds; a document of many entries is long to open and to print. */
const documentWithinMs = 5_000

/** `mayReadRun` decides which runs a caller sees. */
export function runPages(app: Api, { db, engine, registry, live }: Sources): void {
  /** @throws {Problem} `not_found` also for a run that the caller may not see */
  const readOne = (id: string, actor: Actor, withBlueprint = false): Promise<Run> =>
    inTime(readRun(db, engine, { id, withBlueprint }, actor, live), withBlueprint ? documentWithinMs : undefined)

  app.get(
    runPagePath(':id'),
    pageRoute({ params, querystring: z.strictObject({ start: startOfPart }) }),
    async ({ actor, params: { id }, query: { start } }, reply) => {
      const run = await readOne(id, actor)
      const isOver = run.finished_at !== null
      const [atWork] = isOver ? [] : ((await ifInTime(readAtWork(db, [id]))) ?? [])
      const outcome = outcomeOf(run, run.changes.length > 0 && areUnchanged(run.changes))
      const withNames = (await ifInTime(readKeyNames(db, registry, actor, run.changes))) ?? (({ fields }) => fields)
      const changes = run.changes.map((each) => ({ ...each, fields: withNames(each) }))
      const state = stateOf({ ...run, outcome, isBlocked: atWork !== undefined && isBlocked(atWork) })
      const content = html`${summary(run, state, says(run, outcome))}
${unreadable(run)}
${isOver && mayRollBack(actor, run.submitter) && html`<p><a class="button" href="${rollBackPath(id)}">${run.applied === true ? 'Plan again or roll back to this' : 'Plan it again'}</a></p>`}
${
  start === 0 &&
  html`<div class="columns"><div><section><h2>What happened</h2>${timeline(run, state, allows(actor, 'view_run') ? atWork : undefined)}</section>
${said(run)}</div>
<section><h2>Facts</h2>${facts(run, allowsSome(actor, 'view_application'))}</section></div>`
}
${changed({ ...run, changes }, start, registry)}`
      // It may be repaired later.
      const isLive = !isOver || ((run.state === 'failed' || run.state === 'cancelled') && run.repaired !== true)
      return sendPage(reply, { title: run.title, within: runsPath, isLive, content })
    },
  )

  /** The document that was sent, with its secrets masked. */
  app.get(
    documentPath(':id'),
    pageRoute({ params, querystring: z.strictObject({ page: queryInteger(1, 1_000_000).default(1) }) }),
    async ({ actor, params: { id }, query }, reply) => {
      const { title, blueprint } = await readOne(id, actor, true)
      const pages = pagesOf(blueprint)
      const [at, text] = [query.page, pages[query.page - 1]]
      if (text === undefined) throw new Problem('not_found', 'The document has no such page.')
      const content = html`<p><a href="${runPagePath(id)}">Back to the run</a></p>
${pages.length > 1 && html`<p class="quiet">Page ${number(at)} of ${number(pages.length)}.</p>`}
${text === '' ? html`<p>The document is no longer stored.</p>` : html`<div class="card scroll" role="region" aria-label="Document" tabindex="0"><pre>${text}</pre></div>`}
${moves({
  Before: at > 1 && `${documentPath(id)}?page=${at - 1}`,
  Next: at < pages.length && `${documentPath(id)}?page=${at + 1}`,
})}`
      return sendPage(reply, { title: `Document of ${title}`, within: runsPath, content })
    },
  )
}

type State = ReturnType<typeof stateOf>

function summary(
  { mode, former, cause, repaired, repaired_by, finished_at }: Run,
  [look, word]: State,
  effect: string,
): Html {
  return html`<div class="summary ${look}"><p>${mark(look, word)} <span class="says">${effect}</span></p>
${former !== null && html`<p>${mode === 'plan' ? 'A plan to roll' : 'Rolls'} back to <a href="${runPagePath(former)}">run ${shortId(former)}</a>.</p>`}
${cause !== null && html`<p>${finished_at === null ? 'Not applied yet' : 'Cause'}: ${sentenceText(cause)}</p>`}
${repaired === true && html`<p>Repaired by ${repaired_by === null ? 'a later run' : html`<a href="${runPagePath(repaired_by)}">a later run</a>`}.</p>`}</div>`
}

function says({ progress, changes }: Run, outcome: RunRow['outcome']): string {
  const counted = changeCounts(changes)
  if (outcome === 'unknown')
    return progress === null
      ? 'It has not ended.'
      : `${number(progress.done)} of ${number(progress.total)} entries are done.`
  if (outcome === 'applied' || outcome === 'unchanged') return counted && `${counted}.`
  return outcome === 'planned' && counted !== '' ? `It would do this: ${counted}.` : 'Nothing was changed.'
}

const mostAttempts = 20

/** When what happened: submitted, taken, the attempts that failed, what it does now, ended. */
function timeline(run: Run, [look, word]: State, atWork: AtWork | undefined): Html {
  const { created_at, started_at, finished_at, queue_ms, work_ms, submitter_name: who, attempts } = run
  const at = (iso: string) => time(new Date(iso))
  const failed = run.failed_attempts.slice(-mostAttempts)
  const earlier = run.failed_attempts.length - failed.length
  return factList([
    [
      at(created_at),
      html`Submitted${who !== null && ` by ${nameText(who)}`}${attempts > 1 && `, and enqueued ${number(attempts)} times`}`,
    ],
    [started_at !== null && at(started_at), html`Taken by a worker, after ${duration(queue_ms ?? 0)} in the queue`],
    ['Before', earlier > 0 && `${count(earlier, 'more attempt')} that failed, in the API`],
    ...failed.map(
      ({ attempt, at: iso, cause }) => [at(iso), html`Attempt ${attempt} failed: ${sentenceText(cause)}`] as const,
    ),
    [
      'Now',
      finished_at === null &&
        html`${mark(look, word)} for ${duration(Date.now() - Date.parse(started_at ?? created_at))}${workerSays(atWork)}`,
    ],
    [
      finished_at !== null && at(finished_at),
      html`Ended: ${word}${work_ms !== null && `, after ${duration(work_ms)} of work`}`,
    ],
  ])
}

function workerSays(atWork: AtWork | undefined): string {
  if (atWork === undefined) return ''
  if (atWork.worker === null) return '. No worker has it at the moment: it is tried again soon.'
  return `. Its worker is ${workerText(atWork.worker)}.`
}

function facts(run: Run, seesApplications: boolean): Html {
  const { id, slug, owners } = run
  const curl = `curl -sS -H "Authorization: Bearer $GATEWRIGHT_TOKEN" '{origin}${runPath(id)}'`
  return factList([
    ['Stack', run.stack],
    [owners.length > 1 ? 'Owners' : 'Owner', owners.map(nameText).join(', ') || null],
    ['Kind', run.kind],
    [
      'Application',
      slug !== null && seesApplications ? html`<a href="${applicationPath(slug)}">${named(slug)}</a>` : slug,
    ],
    ['Mode', run.mode === 'plan' ? 'a plan: nothing was kept' : null],
    ['Reason', run.reason],
    ['Cancelled by', run.cancelled_by],
    ['Message', run.message && cutTo(1_000, run.message)],
    ...jobFacts(run.pipeline),
    ['Allowed', cutTo(1_000, run.allowed.join(', ')) || null],
    ['Document', html`<a href="${documentPath(id)}">as it was sent, secrets masked</a>`],
    ['Request', html`${job(run)} ${copyButton('Copy', run.request_id)}`],
    ['Run', html`<code>${named(id)}</code> ${copyButton('Copy id', id)} ${copyButton('Copy as curl', curl)}`],
    ['Job', html`<a href="${jobPath(run)}">on the queue board</a>, while the queue keeps it`],
  ])
}

/** The log of a run. An applied run has the same in its changes. */
function said({ logs, applied, changes }: Run): Html | false {
  if (logs.length === 0 || (applied === true && changes.length > 0)) return false
  return html`<section><h2>What it says</h2>${lineList(logs)}</section>`
}

const parts: Readonly<Record<Run['unreadable'][number], string>> = {
  changes: 'some of its changes',
  options: 'its owner, and what its submitter allowed',
}

/** Changes that cannot be read: SQL, or another version, may have written them. */
const unreadable = ({ unreadable: found }: Run): Html | false =>
  found.length > 0 &&
  html`<p class="alert" role="alert">The database holds a part of this run that could not be read: ${found.map((each) => parts[each]).join('; ')}. All else is shown.</p>`

function changed({ id, mode, changes }: Run, start: number, registry: Pick<Registry, 'byName'>): Html | false {
  if (changes.length === 0) return false
  return html`<section id="changes"><h2>${mode === 'plan' ? 'Changes that it would make' : 'Changes'}: ${changeCounts(changes)}</h2>
${changesPart(changes, runPagePath(id), { start, registry })}</section>`
}

/**
 * The job of a run, by its submitter and its request ID together: any caller may send any ID. A user who was deleted has no runs
 * to find.
 */
function job({ request_id: request, submitter_name: who }: Run): Html | string {
  if (who === null) return nameText(request)
  return html`<a href="${withQuery(runsPath, { period: 'all', request, who })}">${named(nameText(request))}</a>`
}

/** The most characters of a page of a document. */
const mostText = 40_000

/** Splits a text at ends of lines, and a line that is too long for a page within it. */
export function pagesOf(text: string): readonly string[] {
  if (text.length <= mostText) return [text]
  const most = text.slice(0, mostText)
  // A character of two units is kept whole.
  const end = most.lastIndexOf('\n') + 1 || (most.isWellFormed() ? mostText : mostText - 1)
  return [text.slice(0, end), ...pagesOf(text.slice(end))]
}
