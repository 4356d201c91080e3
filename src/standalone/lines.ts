import { prettyFactory } from 'pino-pretty'
import { attempt } from '../attempt.ts'
import { shown } from '../cli/output.ts'
import type { SubmissionFields } from '../log.ts'

/**
 * The form in which `npm start` prints the log lines of API and worker on a terminal: one line for each submission, and one for
 * each failure. Elsewhere, and with LOG_LEVEL, the lines are printed as they are, in JSON.
 */

/** The fields that a line may show (log.ts, http/access-log.ts, runs/work.ts). */
type Line = { level: number; msg: string; err?: { message: string; stack: string } } & Partial<SubmissionFields> &
  Partial<Record<'outcome' | 'cause' | 'detail' | 'part' | 'method' | 'route', string>> &
  Partial<Record<'status' | 'ms' | 'queue_ms' | 'work_ms', number>>

const pretty = prettyFactory({
  colorize: false,
  translateTime: 'SYS:HH:MM:ss',
  include: 'time,level,name',
  messageFormat: (line) => shown(sentence(line as Line).replaceAll(/[\r\n\t]\s*/g, ' ')),
})

/** @returns null for a line that is not printed here; a text that is no log line stays as it is */
export function readable(line: string): string | null {
  const logged: Line | undefined = line.startsWith('{"level":') ? attempt(() => JSON.parse(line)) : undefined
  if (logged === undefined) return line
  return isShown(logged) ? pretty(logged).trimEnd() : null
}

/**
 * Whether the line is printed. A submission has one: that of the worker when it has ended the run, else that of the API.
 * Failures have one, and parts that are healthy again.
 */
function isShown({ level, msg, outcome, part, method, route, status = 0, run, code }: Line): boolean {
  const isSubmission = msg === 'answered' && method !== 'GET' && isApply(route)
  if (!isSubmission) return level >= 40 || (outcome ?? part) !== undefined
  // The API cancels a run that no worker took. Every other end of a recorded run has the worker's line.
  return status >= 400 && (!run || code === 'cancelled' || code === 'unavailable')
}

const isApply = (route: string | undefined): boolean =>
  /^\/api\/v3\/(core\/transactional\/applications|blueprints(\/runs\/:id\/apply)?)\/?$/.test(route ?? '')

function sentence({ msg, outcome, method, route, status, title, user, real_user, run, ...line }: Line): string {
  const ms = line.work_ms === undefined ? line.ms : line.work_ms + (line.queue_ms ?? 0)
  const what = outcome ?? (msg === 'answered' ? `${method} ${route} ${status}` : msg)
  const by = user && `by ${user}${real_user ? ` (${real_user})` : ''}`
  const facts = [what, title, by, ms !== undefined && `${ms} ms`, run && `run ${run}`].filter(Boolean).join(', ')
  return [facts, line.code, reasonOf(line)].filter(Boolean).join(': ')
}

/** The innermost reason, and for a bug its place in the code. */
function reasonOf({ cause, detail, err }: Pick<Line, 'cause' | 'detail' | 'err'>): string | undefined {
  const [, place] = /\n\s+(at .+)/.exec(err?.stack ?? '') ?? []
  return err === undefined ? (cause ?? detail) : `${err.message}${place === undefined ? '' : ` (${place})`}`
}
