import { type AtWork, blockerSentence } from './at-work.ts'
import { type CauseClass, recordedClass } from './cause.ts'
import type { Waiting } from './queued.ts'

/** Why a run is not applied: one judgement for answers, the record of the run, pages, lists and metrics. */

/** The codes: `reason` of cancelled runs in the metrics. docs/incidents.md says what to do for each. */
export const whyCodes = [
  'paused',
  'queue',
  'workers',
  'database',
  'lock',
  'attempts',
  'turn',
  'busy',
  'late',
  'stale',
  'user',
] as const

/**
 * @property sentence for its submitter: without a capital and a full stop
 * @property cause the same for callers with `view_run`, at most 300 characters; null when it is the sentence
 */
export type Why = { readonly code: (typeof whyCodes)[number]; readonly sentence: string; readonly cause: string | null }

/** Judges runs, of which some have not ended. @returns why they are not applied yet; nothing for a run that is at work unhindered, and for one that has ended */
export type WhyOf = (ids: readonly string[], withinMs?: number) => Promise<ReadonlyMap<string, Why>>

export const notAsked: WhyOf = async () => new Map()

const why = (code: Why['code'], sentence: string, cause: string | null = null): Why => ({ code, sentence, cause })

export const stale = why('stale', 'it was queued for more than an hour')
export const cancelledBy = (user: string): Why => why('user', `cancelled by ${user}`)
export const notItsTurn = why('turn', 'it waits for sets of its submitter, or for one of the slots that sets may have')
export const databaseAway = why('database', 'the database went away')

/** `Not applied: the queue is paused. Nothing was changed; try again shortly.` */
export const notApplied = (why: Pick<Why, 'sentence'>): string =>
  `Not applied: ${ended(why)} Nothing was changed; try again shortly.`

/** With its full stop, unless it has a mark of its own. */
export const ended = ({ sentence }: Pick<Why, 'sentence'>): string =>
  /[.?!]$/.test(sentence) ? sentence : `${sentence}.`

/** The parts, from those that the others need. */
const parts = [
  ['database', 'database'],
  ['migrations', 'database'],
  ['secrets', 'database'],
  ['changes', 'database'],
  ['queue', 'queue'],
  ['pause', 'paused'],
  ['versions', 'workers'],
  ['worker', 'workers'],
] as const

/** The parts of the installation, as probes answer them. */
type Checks = Readonly<Record<(typeof parts)[number][0], { readonly ok: boolean; readonly detail: string }>>

/** Names that keep their capital within a sentence. */
const isName = /^(PostgreSQL|Redis|SECRET_KEY)\b/

/** @returns why nothing is applied; null when all parts are healthy */
export function judgeParts(checks: Checks): Why | null {
  const [found] = parts.filter(([part]) => !checks[part].ok)
  if (found === undefined) return null
  const [part, code] = found
  return ofPart(code, checks[part].detail)
}

/** @param detail a sentence about a part, as probes say it */
export function ofPart(code: Why['code'], detail: string): Why {
  const sentence = detail.replace(/\.$/, '')
  return why(code, isName.test(sentence) ? sentence : sentence.charAt(0).toLowerCase() + sentence.slice(1))
}

const attempted: Readonly<Record<Exclude<CauseClass, 'lock_timeout'>, string>> = {
  no_writes: 'workers tried it, and PostgreSQL could not write',
  connection: 'workers tried it, and lost the connection to PostgreSQL',
  statement_timeout: 'workers tried it, and a statement took too long',
  collision: 'workers tried it, and it collided with other transactions each time',
  lost: 'the worker that had it ended, or the queue lost its job',
  other: 'workers tried it, and failed each time',
}

const locked = 'another session of the database holds a lock that it needs'

/** Why a run that is at work is not applied yet; null while it is not hindered. */
export const judgeWork = ({ blocker }: AtWork): Why | null =>
  blocker && why('lock', locked, `a lock is not given: ${blockerSentence(blocker)}`)

/**
 * @param stopped why nothing is applied
 * @returns why a run that waits is not applied yet; null while it is too young to say
 */
export function judgeWaiting({ cause, isYoung, isBehind, free, heardS }: Waiting, stopped: Why | null): Why | null {
  if (stopped !== null) return stopped
  if (cause !== null) {
    const kind = recordedClass(cause)
    return kind === 'lock_timeout' ? why('lock', locked, cause) : why('attempts', attempted[kind], cause)
  }
  if (isYoung) return null
  if (isBehind) return notItsTurn
  if (free !== null && free <= 0) return why('busy', 'all slots of the workers are busy with other runs')
  return heardS !== null && heardS > missedS
    ? why('workers', `no worker took it in time: the last was heard ${heardS} s ago`)
    : late
}

/** Seconds: two heartbeats. Workers that were killed are not known to be silent until later. */
const missedS = 4

export const late = why('late', 'no worker took it in time')
/** The judgement was not made in time, or found nothing. */
export const unknown = why('late', 'it was not applied in time')
