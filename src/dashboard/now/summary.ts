import { type Html, html } from '../../http/html.ts'
import { type Actor, allows } from '../../permissions.ts'
import { isBlocked } from '../../runs/at-work.ts'
import { judgeParts } from '../../runs/why.ts'
import type { Expiring } from '../../views/expiries.ts'
import { actPath } from '../addresses.ts'
import { count, type Look, mark } from '../words.ts'
import { missing } from './parts.ts'
import type { Now } from './read.ts'

/** One sentence about the whole first page. */

/** Milliseconds; a later expiry is in the lists alone. */
const urgentMs = 24 * 3_600_000

export function summary(now: Now, actor: Actor): Html {
  const { look, text } = evaluate(now, seesAll(actor))
  const isPaused = now.pause !== null && now.pause !== 'none'
  return html`<div class="summary ${look}"><p>${mark(look, text)}</p>${isPaused && allows(actor, 'manage_queue') && html`<p><a class="button" href="${actPath('resume')}">Resume the queue</a></p>`}</div>`
}

/** Whether the caller sees all problems. */
const seesAll = (actor: Actor): boolean =>
  (['view_run', 'view_token', 'view_certificatekeypair'] as const).every((permission) => allows(actor, permission))

/** @param isAllSeen whether the caller may see all problems */
export function evaluate(now: Now, isAllSeen: boolean): { readonly look: Look; readonly text: string } {
  const { at, atWork, failures } = now
  const stopped = judgeParts(now.checks)
  const found = [
    ...(stopped === null ? [] : [`nothing is applied: ${stopped.sentence}`]),
    ...some(missing(now.workers ?? []).length, 'worker', 'silent'),
    ...some(missing(now.servers ?? []).length, 'server', 'silent'),
    ...some((atWork ?? []).filter(isBlocked).length, 'run', 'blocked'),
    ...some(
      (now.teams ?? []).reduce((sum, { failing }) => sum + failing, 0),
      'application',
      'failing',
    ),
    ...some(
      (now.teams ?? []).reduce((sum, each) => sum + each.changed_outside, 0),
      'application',
      'changed outside',
    ),
    ...failedRuns(failures),
    ...expiries(now.tokens, 'token', at),
    ...expiries(now.certificates ?? null, 'certificate', at),
    ...some(Object.values(now).filter((part) => part === null).length, 'part', 'could not be read'),
  ]
  if (found.length > 0) return { look: stopped === null ? 'warn' : 'bad', text: `Look at this: ${found.join('; ')}.` }
  const isKnown = isAllSeen && failures?.isAll === true
  return { look: 'good', text: isKnown ? 'Nothing is wrong.' : 'Nothing is known to be wrong.' }
}

const some = (of: number, what: string, is: string): readonly string[] => (of === 0 ? [] : [`${count(of, what)} ${is}`])

/** The failed runs. A caller without view_run does not know which of its own were repaired. */
function failedRuns(failures: Now['failures']): readonly string[] {
  const groups = failures?.groups ?? []
  const open = groups.reduce((sum, group) => sum + (group.open ?? 0), 0)
  const unknown = groups.reduce((sum, group) => sum + (group.open === null ? group.runs : 0), 0)
  return [...some(open, 'run', 'not applied and not repaired'), ...some(unknown, 'run', 'failed within 7 days')]
}

function expiries(all: readonly Expiring[] | null, what: string, at: Date): readonly string[] {
  const left = (all ?? []).map(({ expires }) => expires.getTime() - at.getTime())
  return [
    ...some(left.filter((ms) => ms <= 0).length, what, 'expired'),
    ...some(left.filter((ms) => ms > 0 && ms <= urgentMs).length, what, 'about to expire'),
  ]
}
