import { isSilent, type KnownProcess } from '../../db/presence.ts'
import { type Html, type HtmlValue, html } from '../../http/html.ts'
import type { Check, Checks } from '../../http/readiness.ts'
import { type Actor, allows, mayManageQueue } from '../../permissions.ts'
import { blockerSentence, isBlocked, notGiven } from '../../runs/at-work.ts'
import { ended, judgeParts } from '../../runs/why.ts'
import type { Expiring } from '../../views/expiries.ts'
import { actPath, applicationsPath, runPagePath, runsPath, withQuery, workersPath } from '../addresses.ts'
import { count, duration, mark, nameText, number, pauseSentence, type Tone } from '../words.ts'
import type { Now } from './read.ts'

/** What needs attention, in lines above the whole first page. */

/** Milliseconds; a later expiry is in the lists alone. */
const urgentMs = 24 * 3_600_000

export function summary(now: Now, actor: Actor): Html {
  const found = evaluate(now, seesAll(actor))
  const items = found.map(
    ([look, text, href]) => html`<li>${mark(look, href === null ? text : html`<a href="${href}">${text}</a>`)}</li>`,
  )
  const isPaused = now.pause !== null && now.pause !== 'none'
  const worst = found.some(([look]) => look === 'bad') ? 'bad' : found[0]?.[0]
  return html`<div class="summary ${worst}"><ul class="lines">${items}</ul>${isPaused && mayManageQueue(actor) && html`<p><a class="button" href="${actPath('resume')}">Resume the queue</a></p>`}</div>`
}

const seesAll = (actor: Actor): boolean =>
  (['view_run', 'view_token', 'view_certificatekeypair'] as const).every((permission) => allows(actor, permission))

/** What is said, and the page that has more of it; null: this one has. */
type Item = readonly [look: Tone, text: HtmlValue, href: string | null]

/** The items that need attention, what stops all first; when there is none, the one item that says so. */
export function evaluate(now: Now, isAllSeen: boolean): readonly Item[] {
  const { at, atWork, failures, pause } = now
  const stopped = judgeParts(now.checks)
  const isPause = stopped?.code === 'paused' && pause !== null && pause !== 'none'
  const stopLook = isPause ? 'warn' : 'bad'
  const inState = (state: 'failing' | 'changed_outside', is: string, look: Tone) =>
    some(inStateOf(now.teams, state), 'application', is, withQuery(applicationsPath, { state }), look)
  const found: readonly Item[] = [
    ...(stopped === null
      ? []
      : [[stopLook, isPause ? pauseSentence(pause) : `Nothing is applied: ${ended(stopped)}`, null] as const]),
    ...some(missing(now.workers ?? []).length, 'worker', 'silent', workersPath),
    ...some(missing(now.servers ?? []).length, 'server', 'silent', workersPath),
    ...blocked((atWork ?? []).filter(isBlocked)),
    ...inState('failing', 'failing', 'bad'),
    ...inState('changed_outside', 'changed outside', 'warn'),
    ...failedRuns(failures),
    ...expiries(now.tokens, 'token', at),
    ...expiries(now.certificates ?? null, 'certificate', at),
    ...some(Object.values(now).filter((part) => part === null).length, 'part', 'could not be read', null),
  ]
  if (found.length > 0) return found
  return [['good', isAllSeen && failures?.isAll === true ? 'Nothing is wrong.' : 'Nothing is known to be wrong.', null]]
}

export const inStateOf = (teams: Now['teams'], state: 'failing' | 'changed_outside'): number =>
  (teams ?? []).reduce((sum, each) => sum + each[state], 0)

const some = (of: number, what: string, is: string, href: string | null, look: Tone = 'warn'): readonly Item[] =>
  of === 0 ? [] : [[look, `${count(of, what)} ${is}`, href]]

const mostBlocked = 5

const blocked = (all: NonNullable<Now['atWork']>): readonly Item[] => [
  ...all.slice(0, mostBlocked).map(({ run, blocker }): Item => {
    const by = blocker === null ? (run.cause ?? notGiven) : blockerSentence(blocker)
    return ['warn', `${nameText(run.title)} is blocked: ${by}`, runPagePath(run.id)]
  }),
  ...some(Math.max(0, all.length - mostBlocked), 'more run', 'blocked', withQuery(runsPath, { outcome: 'unknown' })),
]

/** The failed runs. A caller without view_run does not know which of its own were repaired. */
function failedRuns(failures: Now['failures']): readonly Item[] {
  const groups = failures?.groups ?? []
  const open = groups.reduce((sum, group) => sum + (group.open ?? 0), 0)
  const unknown = groups.reduce((sum, group) => sum + (group.open === null ? group.runs : 0), 0)
  const href = withQuery(runsPath, { period: 'week', outcome: 'attention' })
  return [
    ...some(open, 'run', 'not applied and not repaired', href, 'bad'),
    ...some(unknown, 'run', 'failed within 7 days', href, 'bad'),
  ]
}

function expiries(all: readonly Expiring[] | null, what: string, at: Date): readonly Item[] {
  const left = (all ?? []).map(({ expires }) => expires.getTime() - at.getTime())
  return [
    ...some(left.filter((ms) => ms <= 0).length, what, 'expired', '#expiries'),
    ...some(left.filter((ms) => ms > 0 && ms <= urgentMs).length, what, 'about to expire', '#expiries'),
  ]
}

/** The parts of the installation in one strip, as the probes judge them, and its processes. An unhealthy part says why. */
export const parts = (now: Now): Html => html`<ul class="strip" aria-label="Parts">
${Object.entries(names).map(([part, name]) => partItem(name, now, part as keyof Checks))}
${processes('worker', now.workers, now.checks.pause.ok ? now.checks.worker : undefined)}
${processes('server', now.servers)}
</ul>`

const names: Readonly<Record<Exclude<keyof Checks, 'worker'>, string>> = {
  database: 'Database',
  changes: 'Changes',
  migrations: 'Migrations',
  versions: 'Versions',
  queue: 'Queue',
  pause: 'Pause',
  secrets: 'Secret key',
}

function partItem(name: string, { checks, pause }: Now, part: keyof Checks): Html {
  const { ok, detail } = checks[part]
  if (ok) return html`<li id="part-${part}">${mark('good', name)}</li>`
  const isPause = part === 'pause' && pause !== null && pause !== 'none'
  return html`<li id="part-${part}" class="wide">${mark(isPause ? 'warn' : 'bad', name)} ${isPause ? pauseSentence(pause) : detail}</li>`
}

/** Whether a process that is silent was killed, and another one has begun on its host since then. */
const isReplaced = (silent: KnownProcess, all: readonly KnownProcess[]): boolean =>
  all.some((each) => !isSilent(each) && each.host === silent.host && each.startedAt > lastSeen(silent))

const lastSeen = ({ seenS }: KnownProcess): Date => new Date(Date.now() - seenS * 1_000)

export const missing = (all: readonly KnownProcess[]): readonly KnownProcess[] =>
  all.filter((each) => isSilent(each) && !isReplaced(each, all))

/** @param check the judgement of the probes, where it says something else than the other parts do */
function processes(what: 'worker' | 'server', all: readonly KnownProcess[] | null, check?: Check): Html {
  if (all === null) return html`<li id="part-${what}">${mark('open', `${what}s not known`)}</li>`
  const heard = all.filter((each) => !isSilent(each))
  const silent = all.filter(isSilent)
  const sum = (of: (each: KnownProcess) => number) => number(heard.reduce((total, each) => total + of(each), 0))
  const load = what === 'worker' && html`, ${sum(({ busy }) => busy)} of ${sum(({ slots }) => slots)} jobs`
  const look = heard.length === 0 || check?.ok === false ? 'bad' : missing(all).length > 0 ? 'warn' : 'good'
  return html`<li id="part-${what}"${(silent.length > 0 || check?.ok === false) && html` class="wide"`}>${mark(look, count(heard.length, what))} <a href="${workersPath}">heard</a>${load}${silent.slice(0, mostSilent).map((each) => lostText(each, all))}${silent.length > mostSilent && html`; ${count(silent.length - mostSilent, 'other')} not heard`}${check?.ok === false && `. ${check.detail}`}</li>`
}

const mostSilent = 5

const lostText = (each: KnownProcess, all: readonly KnownProcess[]): Html =>
  html`; ${nameText(each.host)}, ${String(each.processId)}: not heard for ${duration(each.seenS * 1_000)}${isReplaced(each, all) ? ', replaced' : ''}`
