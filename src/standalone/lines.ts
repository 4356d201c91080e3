import { z } from 'zod'
import { printable } from '../cli/output.ts'

/**
 * The form in which `npm start` prints the log lines of API and worker on a terminal: one line for each submission, and one for
 * each failure. Elsewhere, and with LOG_LEVEL, the lines are printed as they are, in JSON.
 */

const text = z.string().nullish().catch(null)
const number = z.number().nullish().catch(null)

/** The fields that a line may show (log.ts, http/access-log.ts, runs/work.ts). */
const lineSchema = z.object({
  level: z.int(),
  time: z.number(),
  name: z.string(),
  msg: z.string().catch(''),
  run: text,
  title: text,
  user: text,
  real_user: text,
  code: text,
  outcome: text,
  cause: text,
  detail: text,
  part: text,
  method: text,
  route: text,
  status: number,
  ms: number,
  queue_ms: number,
  work_ms: number,
  err: z.object({ message: text, stack: text }).optional().catch(undefined),
})
type Line = z.output<typeof lineSchema>

const levels = { warn: 40, error: 50 } as const
const longest = 400

/** @returns null for a line that is not printed here; a text that is no log line stays as it is */
export function readable(line: string): string | null {
  const logged = read(line)
  if (logged === undefined) return line
  const shown = submissionOf(logged) ?? recoveryOf(logged) ?? (logged.level >= levels.warn ? failureOf(logged) : null)
  if (shown === null || shown === '') return null
  const oneLine = printable(shown.replaceAll(/[\r\n\t]\s*/g, ' '))
  return `  ${clock(logged.time)}  ${oneLine.length > longest ? `${oneLine.slice(0, longest)} ...` : oneLine}`
}

function read(line: string): Line | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    return lineSchema.safeParse(JSON.parse(line)).data
  } catch {
    return undefined
  }
}

/** The time of this machine: it is its terminal. */
const clock = (time: number): string => new Date(time).toTimeString().slice(0, 8)

/**
 * One line for each submission: that of the worker when it has ended the run, else that of the API.
 *
 * @returns null for a line that is about no submission; '' for one of which the worker has a line
 */
function submissionOf(line: Line): string | null {
  const { name, msg, outcome, run, title, code, status, method, route } = line
  if (name === 'worker' && msg.startsWith('run ended') && outcome) return ended(line, outcome)
  if (msg !== 'answered') return null
  const isSubmission = method !== 'GET' && isApply(route)
  if (!isSubmission) return null
  if (!status || status < 400) return ''
  // The API cancels a run that no worker took. Every other end of a recorded run has the worker's line.
  if (run && code !== 'cancelled' && code !== 'unavailable') return ''
  const what = title ? subject(title) : `${method} ${route}`
  return facts(line, code === 'cancelled' ? 'cancelled' : status < 500 ? 'refused' : 'failed', what)
}

const isApply = (route: string | null | undefined): boolean =>
  /^\/api\/v3\/(core\/transactional\/applications|blueprints(\/runs\/:id\/apply)?)\/?$/.test(route ?? '')

const subject = (title: string): string => title.replace(/^(apply|plan) /, '')

const ended = (line: Line, outcome: string): string => facts(line, outcome, subject(line.title ?? 'a run'))

function facts(line: Line, outcome: string, what: string): string {
  const { user, real_user, code, run, queue_ms, work_ms, ms } = line
  const isDone = ['applied', 'unchanged', 'planned'].includes(outcome)
  const by = user ? [`by ${user}${real_user ? ` (${real_user})` : ''}`] : []
  const took = work_ms != null ? [`${work_ms + (queue_ms ?? 0)} ms`] : ms != null ? [`${ms} ms`] : []
  const why = isDone ? '' : [code === outcome ? null : code, reasonOf(line)].filter(Boolean).join(': ')
  const where = !isDone && run ? [`run ${run}`] : []
  const first = [what, ...by, ...took, ...where].join(', ')
  return `${outcome.padEnd(9)}  ${first}${why === '' ? '' : `: ${why}`}`
}

/** The innermost reason, and for a bug its place in the code. */
function reasonOf({ cause, detail, err }: Line): string | null {
  if (err?.message) {
    const [, place] = /\n\s+at (.+)/.exec(err.stack ?? '') ?? []
    return place === undefined ? err.message : `${err.message} (at ${place})`
  }
  return cause ?? detail ?? null
}

/** The line of a part that failed before, and is healthy again. */
const recoveryOf = ({ level, name, msg, part }: Line): string | null =>
  part && level < levels.warn ? `${'recovered'.padEnd(9)}  ${name}: ${msg}` : null

function failureOf(line: Line): string {
  const { level, name, msg, title, method, route, status } = line
  const what = msg === 'answered' ? `${method} ${route} was answered with ${status}` : msg
  const why = reasonOf(line)
  const of = title && msg !== 'answered' ? ` (${title})` : ''
  return `${(level >= levels.error ? 'error' : 'warning').padEnd(9)}  ${name}: ${what}${of}${why === null ? '' : `: ${why}`}`
}
