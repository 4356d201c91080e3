import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import type { ErrorDetail } from '../errors.ts'
import { type Answer, codeOf, isLater, isLost, refusalOf } from './ask.ts'
import { backOff, type Client } from './client.ts'
import { Unreachable, UsageError } from './exit.ts'
import { detailsOf, locate, type Part, sentOf } from './places.ts'
import { type Change, followRun, idOf, isFine, isOver, type Run, readMe, readRun, readRuns } from './runs.ts'

/** Sends a document once, under one Idempotency-Key, and finds its outcome, through restarts of the service. */

/**
 * `applied`, `unchanged`: the objects are as in the file. `changes`: a plan that would change something. `accepted`: recorded,
 * and not waited for. `unknown`: it may have been applied. `unreachable`: it certainly was not sent, or not applied.
 */
type Outcome = 'applied' | 'unchanged' | 'changes' | 'refused' | 'accepted' | 'unknown' | 'unreachable'

/** The result of a command for one document. */
export type Result = {
  readonly file: string
  /** The files of the document; none where there is one at most. */
  readonly parts: readonly Part[]
  readonly outcome: Outcome | 'valid' | 'not tried'
  readonly logs: readonly string[]
  /** The reasons of a refusal, or of an unknown outcome. */
  readonly errors: readonly string[]
  /** The errors of a refusal, one by one. */
  readonly details: readonly ErrorDetail[]
  /** The HTTP status that refused it. */
  readonly status?: number
  /** The change of each entry; null when they are not known. */
  readonly changes: readonly Change[] | null
  /** Fields that a roll back leaves as they are, though they were changed since the former run. */
  readonly not_put_back?: Run['not_put_back']
  /** The values that an apply generated, while they may be read. `--json` alone has them. */
  readonly outputs?: ReturnType<typeof generatedIn>
  /** The path of the run. */
  readonly run: string | null
  /** The tag of a plan: `--out` writes it. */
  readonly etag: string | null
}

/** What is known before anything is sent. */
export const emptyResult = {
  parts: [],
  logs: [],
  errors: [],
  details: [],
  changes: null,
  run: null,
  etag: null,
} as const

/** A document on its way to the service. */
export type Sendable = {
  /** Its name in output and in plan files. */
  readonly file: string
  readonly method: 'PUT' | 'POST'
  readonly path: string
  /** Absent for a former run: the service has its document. */
  readonly body?: string
  readonly isYaml: boolean
  /** The owner in the request. */
  readonly owner: string | undefined
  /** Its files; none for a former run. */
  readonly parts: readonly Part[]
}

export type Delivery = {
  readonly mode: 'plan' | 'apply'
  /** Whether fields that the document does not name go back to their defaults. */
  readonly isReset: boolean
  readonly headers: Readonly<Record<string, string>>
  /** Whether the answer waits for the run; false: `Prefer: respond-async`. */
  readonly waits: boolean
}

/** The document that was sent last to be applied and whose outcome no answer has reported yet. `run`: its path, where it is known. */
let last: { readonly client: Client; readonly requestId: string; readonly run: string | null } | null = null

const longestMs = 2_000

/** @returns the last lines of a program that a signal ends while the service may have a submission of it */
export async function whatIsLeft(): Promise<string[]> {
  if (last === null) return []
  const { requestId, run } = last
  const client = { ...last.client, timeoutMs: longestMs, waiting: () => {} }
  const ofJob = async () => {
    const { pk } = await readMe(client)
    const query = { request_id: requestId, submitter: String(pk), page_size: '1' }
    return (await readRuns(client, query))[0]
  }
  const found = await Promise.race([
    (run === null ? ofJob() : readRun(client, run)).catch(() => undefined),
    delay(longestMs, undefined, { ref: false }),
  ])
  const id = found?.id ?? (run === null ? undefined : idOf(run))
  if (id === undefined)
    return [
      'What was sent may be applied all the same.',
      `gatewright runs --request-id ${requestId}   lists its run, once it is recorded`,
    ]
  if (found !== undefined && isOver(found))
    return [`Run ${id} has ended: ${found.state}.`, `gatewright logs ${id}   prints what became of it`]
  return [
    `Run ${id} is ${found?.state ?? 'recorded'}: it will be applied all the same.`,
    `gatewright logs -f ${id}   follows it`,
    ...(found?.state === 'running' ? [] : [`gatewright runs cancel ${id}   cancels it, as long as it is queued`]),
  ]
}

const asNone = (error: unknown): null => {
  if (error instanceof UsageError || error instanceof Unreachable) return null
  throw error
}

const answered = z.object({ applied: z.boolean(), logs: z.array(z.string()) })

/** Statuses that are about one request alone, when an earlier one may have been applied. */
const aboutTheRequest = [401, 403, 404, 408, 405]

export async function deliver(client: Client, document: Sendable, delivery: Delivery): Promise<Result> {
  const { mode, isReset, headers, waits } = delivery
  const endsAt = performance.now() + client.timeoutMs
  const leftMs = () => endsAt - performance.now()
  const { file, parts, method, body, isYaml } = document
  // The run is found by this ID too when no answer comes.
  const requestId = client.requestId ?? randomUUID()
  const request = {
    headers: {
      ...headers,
      'idempotency-key': randomUUID(),
      'x-request-id': requestId,
      ...(!waits && { prefer: 'respond-async' }),
    },
    ...(body !== undefined && { body }),
    isYaml,
  }
  const query = [...(mode === 'plan' ? ['dry_run=true'] : []), ...(isReset ? ['reset=true'] : [])].join('&')
  const path = query === '' ? document.path : `${document.path}?${query}`
  let mayBeApplied = false
  let run: string | null = null
  let why = ''
  const result = (found: PartOfResult): Result => ({ ...emptyResult, file, parts, run, ...found })
  for (let tries = 0; tries === 0 || leftMs() > 0; tries += 1) {
    if (mode === 'apply') last = { client, requestId, run: null }
    const answer = await client.send(method, path, { ...request, withinMs: leftMs() })
    if (last !== null && !isLost(answer)) {
      const isOpen = answer.status === 202 || answer.status >= 500
      last = isOpen ? { ...last, run: answer.headers.get('location') } : null
    }
    if (isLost(answer)) {
      why = `${answer.message}.`
      mayBeApplied ||= answer.isSent
      if (answer.isFinal) break
      client.waiting(answer.message)
    } else if (answer.status === 200) {
      const { data } = answered.safeParse(answer.body)
      if (data === undefined)
        return result({ outcome: 'unknown', errors: [`${client.url} does not answer as Gatewright does.`] })
      const { applied, logs } = data
      const etag = answer.headers.get('etag')
      run = answer.headers.get('content-location')
      if (mode === 'apply' ? !applied : etag === null) return result({ outcome: 'refused', errors: logs })
      // The outcome does not depend on the changes: an apply stays done when they cannot be read.
      const timeoutMs = mode === 'apply' ? Math.min(5_000, leftMs()) : leftMs()
      const found = run === null ? null : await readRun({ ...client, timeoutMs }, run).catch(() => null)
      if (found === null && mode === 'plan')
        return result({ outcome: 'unreachable', errors: ['The run of the plan cannot be read.'] })
      return result(done(mode, found, { logs, etag, parts }))
    } else if (answer.status === 202) {
      run = runOf(answer) ?? run
      if (!waits && codeOf(answer) === 'accepted') return result({ outcome: 'accepted' })
      mayBeApplied = true
      why = refusalOf(answer).join(' ')
      // If there is no such run, the PUT is sent again, under its key.
      const ended = run === null ? null : await followRun(client, run, leftMs).catch(asNone)
      const isEnd = ended !== null && isOutcome(ended)
      if (isEnd && isFine(ended)) return result(done(mode, ended, { ...ended, parts }))
      if (isEnd) return result({ outcome: 'refused', ...(await reasonsOf(ended, parts)) })
    } else if (isLater(answer.status)) {
      why = refusalOf(answer).join(' ')
      // A proxy gives no reason, and may have passed the request on.
      mayBeApplied ||= codeOf(answer) === null
      client.waiting(why)
    } else {
      const { status, headers } = answer
      const errors = refusalOf(answer)
      run = headers.get('content-location') ?? run
      const isUnclear = status >= 500 && !headers.has('content-location')
      if (!isUnclear && !(mayBeApplied && aboutTheRequest.includes(status)))
        return result({ outcome: 'refused', status, ...(await locate(parts, { errors, details: detailsOf(answer) })) })
      mayBeApplied = true
      why = `${errors.join(' ')} (${status})`
      break
    }
    await backOff(tries, leftMs(), isLost(answer) ? undefined : answer)
  }
  const outcome = mayBeApplied && mode === 'apply' ? 'unknown' : 'unreachable'
  return result({ outcome, errors: [why] })
}

type PartOfResult = Partial<Result> & Pick<Result, 'outcome'>

const runOf = (answer: Answer): string | null =>
  z.object({ run: z.string() }).safeParse(answer.body).data?.run ?? answer.headers.get('location')

/** Whether a run is the outcome. The same PUT may start one again that ended without an effect, unless a user cancelled it. */
const isOutcome = ({ state, reason, cancelled_by }: Run): boolean =>
  state === 'done' ||
  (state === 'failed' && reason !== 'unavailable') ||
  (state === 'cancelled' && cancelled_by != null)

/** The lines of a refused run. Its heading is left out where each error has its place. */
function reasonsOf(run: Run, parts: readonly Part[]) {
  const details = detailsOf({ body: run })
  return locate(parts, { errors: run.logs.filter((line) => details.length === 0 || !line.endsWith(':')), details })
}

/** @param run null when its changes cannot be read */
function done(mode: Delivery['mode'], run: Run | null, { logs, etag, parts }: Pick<Result, 'logs' | 'etag' | 'parts'>) {
  const { changes = null, not_put_back } = run ?? {}
  const isUnchanged = changes?.every(({ action }) => action === 'unchanged') === true
  const outcome: Outcome = isUnchanged ? 'unchanged' : mode === 'apply' ? 'applied' : 'changes'
  const outputs = run === null ? [] : generatedIn(parts, run)
  return { outcome, logs, changes, not_put_back, outputs, etag }
}

/** The values that an apply generated, each with the object of its entry. */
function generatedIn(parts: readonly Part[], { generated, generated_until: until }: Run) {
  const entries = parts.flatMap((part) => sentOf(part).map(({ entry }) => Object(entry)))
  return Object.entries(generated).map(([id, values]) => {
    const { model = null, identifiers = null } = entries.find((each) => each.id === id) ?? {}
    return { entry: id, model, identifiers, values, readable_until: until ?? null }
  })
}
