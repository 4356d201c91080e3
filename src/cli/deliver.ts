import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { ErrorDetail } from '../errors.ts'
import { type Answer, asLost, backOff, type Client, codeOf, isLater, Lost, refusalOf } from './client.ts'
import { Unreachable, UsageError } from './exit.ts'
import type { Document, FormerRun } from './inputs.ts'
import { detailsOf } from './places.ts'
import { type Change, followRun, isFine, type Run, readRun } from './runs.ts'

/** Sends a document once, under one Idempotency-Key, and finds its outcome, through restarts of the service. */

/**
 * `applied`, `unchanged`: the objects are as in the file. `changes`: a plan that would change something. `accepted`: recorded,
 * and not waited for. `unknown`: it may have been applied. `unreachable`: it certainly was not sent, or not applied.
 */
export type Outcome = 'applied' | 'unchanged' | 'changes' | 'refused' | 'accepted' | 'unknown' | 'unreachable'

export type Delivered = {
  readonly outcome: Outcome
  readonly logs: readonly string[]
  /** The reasons of a refusal, or of an unknown outcome. */
  readonly errors: readonly string[]
  /** The errors of a 400, one by one. */
  readonly details: readonly ErrorDetail[]
  /** The HTTP status that refused it. */
  readonly status?: number
  /** The change of each entry; null when they are not known. */
  readonly changes: readonly Change[] | null
  /** The objects that the owner manages and the document does not name; null when they were not requested. */
  readonly unnamed?: Run['unnamed']
  /** Fields that the document before named, and that keep their values. */
  readonly unmanaged?: Run['unmanaged']
  /** The path of the run. */
  readonly run: string | null
  /** The tag of a plan, for `--if-match` of the apply. */
  readonly etag: string | null
}

export type Delivery = {
  readonly mode: 'plan' | 'apply'
  /** Whether fields that the document does not name go back to their defaults. */
  readonly isReset?: boolean
  /** Whether objects that the owner manages and the document does not name are a difference. */
  readonly isAll?: boolean
  readonly headers: Readonly<Record<string, string>>
  /** Whether the answer waits for the run; false: `Prefer: respond-async`. */
  readonly waits: boolean
  readonly timeoutMs: number
  readonly onWait: (why: string, progress?: Run['progress']) => void
}

const asNone = (error: unknown): null => {
  if (error instanceof UsageError || error instanceof Unreachable) return null
  throw error
}

const answered = z.object({ applied: z.boolean(), logs: z.array(z.string()) })

const paths = { submission: '/core/transactional/applications/', blueprint: '/blueprints/' } as const

/** Statuses that are about one request alone, when an earlier one may have been applied. */
const aboutTheRequest = [401, 403, 404, 408, 405]

type Deliverable = Pick<Document, 'form' | 'body'> | FormerRun

const targetOf = (document: Deliverable) =>
  document.form === 'run'
    ? ({ method: 'POST', path: `/blueprints/runs/${document.id}/apply/` } as const)
    : ({ method: 'PUT', path: paths[document.form] } as const)

export async function deliver(client: Client, document: Deliverable, delivery: Delivery): Promise<Delivered> {
  const { mode, isReset = false, headers, waits, timeoutMs, onWait } = delivery
  const endsAt = performance.now() + timeoutMs
  const leftMs = () => endsAt - performance.now()
  const request = {
    headers: {
      ...headers,
      'idempotency-key': randomUUID(),
      ...(!waits && { prefer: 'respond-async' }),
    },
    ...(document.form !== 'run' && { body: document.body }),
    isYaml: document.form === 'blueprint',
  }
  const target = targetOf(document)
  const query = [...(mode === 'plan' ? ['dry_run=true'] : []), ...(isReset ? ['reset=true'] : [])].join('&')
  const path = query === '' ? target.path : `${target.path}?${query}`
  let mayBeApplied = false
  let run: string | null = null
  let why = ''
  for (let tries = 0; tries === 0 || leftMs() > 0; tries += 1) {
    const answer = await client.send(target.method, path, { ...request, withinMs: leftMs() }).catch(asLost)
    if (answer instanceof Lost) {
      why = `${answer.message}.`
      mayBeApplied ||= answer.isSent
      if (answer.isFinal) break
      onWait(answer.message)
      await backOff(tries, leftMs())
      continue
    }
    const { status } = answer
    if (status === 200) {
      const result = await finished(client, answer, delivery, leftMs)
      if (result !== null) return result
      return undecided('unknown', { errors: [`${client.url} does not answer as Gatewright does.`], run })
    }
    if (status === 202) {
      run = runOf(answer) ?? run
      if (!waits && codeOf(answer) === 'accepted') return undecided('accepted', { errors: [], run })
      mayBeApplied = true
      why = refusalOf(answer).join(' ')
      // Without such a run, the PUT is sent again, under its key.
      const ended = run === null ? null : await followRun(client, run, { leftMs, onWait }).catch(asNone)
      if (ended !== null && run !== null && isOutcome(ended)) return outcomeOf(ended, run, delivery)
      await backOff(tries, leftMs(), answer)
      continue
    }
    if (isLater(status)) {
      why = refusalOf(answer).join(' ')
      // A proxy gives no reason, and may have passed the request on.
      if (codeOf(answer) === null) mayBeApplied = true
      onWait(why)
      await backOff(tries, leftMs(), answer)
      continue
    }
    run = answer.headers.get('content-location') ?? run
    const isUnclear = status >= 500 && !answer.headers.has('content-location')
    if (isUnclear || (mayBeApplied && aboutTheRequest.includes(status))) {
      mayBeApplied = true
      why = `${refusalOf(answer).join(' ')} (${status})`
      break
    }
    return { ...undecided('refused', { errors: refusalOf(answer), run }), details: detailsOf(answer), status }
  }
  return undecided(mayBeApplied && mode === 'apply' ? 'unknown' : 'unreachable', { errors: [why], run })
}

const undecided = (
  outcome: Outcome,
  { errors, run }: { readonly errors: readonly string[]; readonly run: string | null },
): Delivered => ({ outcome, logs: [], errors, details: [], changes: null, run, etag: null })

const runOf = (answer: Answer): string | null =>
  z.object({ run: z.string() }).safeParse(answer.body).data?.run ?? answer.headers.get('location')

/** @returns null for an answer of another program */
async function finished(
  client: Client,
  answer: Answer,
  delivery: Delivery,
  leftMs: () => number,
): Promise<Delivered | null> {
  const { mode, onWait } = delivery
  const { data } = answered.safeParse(answer.body)
  if (data === undefined) return null
  const path = answer.headers.get('content-location')
  const etag = answer.headers.get('etag')
  const { applied, logs } = data
  const isRefused = mode === 'apply' ? !applied : etag === null
  if (isRefused) return undecided('refused', { errors: logs, run: path })
  // The outcome does not depend on the changes: an apply stays done when they cannot be read.
  const withinMs = mode === 'apply' ? Math.min(5_000, leftMs()) : leftMs()
  const run = path === null ? null : await readRun(client, path, { withinMs, onWait }).catch(() => null)
  if (run === null && mode === 'plan')
    return undecided('unreachable', { errors: ['The run of the plan cannot be read.'], run: path })
  const { changes = null, unnamed, unmanaged } = run ?? {}
  return done(delivery, { logs, changes, unnamed, unmanaged, run: path, etag })
}

type Done = Pick<Delivered, 'logs' | 'changes' | 'unnamed' | 'unmanaged' | 'run' | 'etag'>

function done({ mode, isAll = false }: Delivery, facts: Done): Delivered {
  const isWhole = !isAll || (facts.unnamed ?? []).length === 0
  const isUnchanged = isWhole && facts.changes?.every(({ action }) => action === 'unchanged') === true
  const outcome = isUnchanged ? 'unchanged' : mode === 'apply' ? 'applied' : 'changes'
  return { ...facts, outcome, errors: [], details: [] }
}

/** Whether a run is the outcome. The same PUT may start one again that ended without an effect, unless a user cancelled it. */
const isOutcome = ({ state, reason, cancelled_by }: Run): boolean =>
  state === 'done' ||
  (state === 'failed' && reason !== 'unavailable') ||
  (state === 'cancelled' && cancelled_by != null)

function outcomeOf(run: Run, path: string, delivery: Delivery): Delivered {
  const { logs, changes, unnamed, unmanaged, etag } = run
  return isFine(run)
    ? done(delivery, { logs, changes, unnamed, unmanaged, run: path, etag })
    : undecided('refused', { errors: logs, run: path })
}
