import { ownerLabel } from '../models/fields.ts'
import { messageOf, whyNoMessage } from '../runs/message.ts'
import {
  type readArguments,
  readCount,
  readGiven,
  readTimeoutMs,
  type resetOption,
  type runOption,
  type sendOptions,
} from './arguments.ts'
import { type Client, openClient } from './client.ts'
import { type Delivered, type Delivery, deliver } from './deliver.ts'
import { UsageError } from './exit.ts'
import { type Document, type FormerRun, formerRun, isUnreadable, readInputs, type Unreadable } from './inputs.ts'
import { type Joined, joinFiles, locateJoined, type OwnerGiven, ownerOf, ownOwner, prunedBy } from './joined.ts'
import { inOptions } from './options-for-headers.ts'
import { type Output, openOutput } from './output.ts'
import { locate } from './places.ts'
import { codeOfResults, emptyResult, outcomesOf, printResult, printTotals, type Result, toJson } from './report.ts'
import { writeSummary } from './summary.ts'

/** The parts that `plan`, `apply` and `diff` share: the files are sent as one document, or each on its own. */

type SendValues = Partial<
  ReturnType<typeof readArguments<typeof sendOptions & typeof runOption & typeof resetOption>>['values']
>

export type Sending = {
  readonly title: string
  readonly mode: Delivery['mode']
  readonly waits?: boolean
  /** Whether each field that changes is shown. */
  readonly isDiff?: boolean
  /** Whether the files shall name all objects. */
  readonly isAll?: boolean
  /** The tag of the plan that was reviewed. @throws {UsageError} when there is none for the file */
  readonly tagFor?: (file: string, count: number) => string | null
  /** Called with the results of all files. */
  readonly done?: (results: readonly Result[], client: Client) => void
}

/** @returns the exit code */
export async function sendFiles(paths: readonly string[], values: SendValues, sending: Sending): Promise<number> {
  const { title, mode, waits = true, isDiff = false, isAll = false, tagFor = () => null, done } = sending
  const timeoutMs = readTimeoutMs(values.timeout)
  const isReset = values.reset === true
  const option = checkedOwner('--owner', values.owner)
  const { run } = values
  if (paths.length > 0 && run !== undefined) throw new UsageError('Use either files or --run.')
  const inputs =
    run === undefined ? await readInputs(paths, readGiven(values)) : { documents: [], secrets: new Set<string>() }
  const output = openOutput(inputs.secrets)
  const client = await openClient()
  const given = { option, setting: checkedOwner('GATEWRIGHT_OWNER', client.owner ?? undefined) }
  const documents = run === undefined ? await toSend(inputs.documents, values, given, isAll) : [formerRun(run)]
  const tags = documents.map(({ file }) => tagFor(file, documents.length))
  const results: Result[] = []
  // The totals come before the results. The results of several documents that are applied are printed at once.
  const isListed = mode === 'apply' && documents.length > 1
  const print = (result: Result) => {
    if (values.json !== true) printResult(output, result, { isDiff, isAll })
  }
  const add = (result: Result) => {
    results.push(result)
    if (isListed) print(result)
  }
  // Nothing is sent until every file can be sent. An apply stops at the first file that is not applied.
  const isBroken = (mode === 'apply' || values.each !== true) && documents.some((each) => isUnreadable(each))
  let isStopped = isBroken
  for (const [index, document] of documents.entries()) {
    output.progress(index, documents.length, document.file)
    const { file } = document
    if (isUnreadable(document)) {
      const { errors, details = [] } = document
      add({ file, ...redacted({ ...emptyResult, errors, details }, output), outcome: 'refused' })
    } else if (isStopped) add({ file, ...emptyResult, outcome: 'not tried' })
    else {
      const headers = headersOf(values, ownerSent(document, given), tags[index] ?? null)
      const delivered = await deliver(client, document, {
        mode,
        isReset,
        isAll,
        headers,
        waits,
        timeoutMs,
        onWait: output.waiting,
      })
      const located = await placesOf(document, delivered)
      add({ ...redacted({ ...delivered, ...located }, output), file, ...partsOf(document) })
      isStopped =
        ['unknown', 'unreachable'].includes(delivered.outcome) ||
        (mode === 'apply' && delivered.outcome === 'refused' && values['keep-going'] !== true)
    }
  }
  output.progress(documents.length, documents.length, '')
  done?.(results, client)
  if (!isListed && values.json !== true) printTotals(output, results, mode === 'apply')
  if (!isListed) for (const result of results) print(result)
  if (isListed && values.json !== true) printTotals(output, results, true)
  finish(results, values, { output, title })
  return codeOfResults(results)
}

/** The owner in the request: a run, and a file that names one, have their own. */
function ownerSent(document: Document | Joined | FormerRun, { option, setting }: OwnerGiven): string | undefined {
  if (document.form === 'run') return option
  if ('parts' in document) return document.owner
  return option ?? (ownOwner(document) === undefined ? setting : undefined)
}

/** @throws {UsageError} when `--each` would delete objects that other files of an owner name */
async function toSend(
  inputs: readonly (Document | Unreadable)[],
  values: SendValues,
  given: OwnerGiven,
  isAll: boolean,
): Promise<readonly (Document | Joined | Unreadable)[]> {
  const isEach = values.each === true
  if (values['keep-going'] === true && !isEach) throw new UsageError('--keep-going is for --each.')
  const readable = inputs.filter((each): each is Document => !isUnreadable(each))
  if (isEach) refuseEach(readable, given, isAll)
  if (readable.length < 2) return inputs
  const { contradictions } = await import('./declared.ts')
  const refused = new Map(
    [...inputs.filter((each) => isUnreadable(each)), ...(await contradictions(readable))].map(
      (each) => [each.file, each] as const,
    ),
  )
  if (refused.size > 0) return inputs.map((each) => refused.get(each.file) ?? each)
  return isEach ? inputs : joinFiles(readable, given)
}

/** Refuses options with `--each` that concern all files of an owner together. */
function refuseEach(documents: readonly Document[], given: OwnerGiven, isAll: boolean): void {
  const whole = documents.flatMap((each) => (isAll ? [ownerOf(each, given)] : prunedBy(each, given)))
  for (const owner of new Set(whole)) {
    const about = documents.filter(
      (each) => ownerOf(each, given) === owner || (owner !== undefined && prunedBy(each, given).includes(owner)),
    )
    if (about.length < 2) continue
    throw new UsageError(
      isAll
        ? '--each would list what other files of the owner name: --all is about all of them.'
        : '--each would delete what other files of the owner name: prune is about all of them.',
    )
  }
}

const placesOf = async (document: Document | Joined | FormerRun, { details, errors }: Delivered) => {
  if (document.form === 'run') return {}
  return 'parts' in document ? locateJoined(document, { details, errors }) : locate(document, details, errors)
}

const partsOf = (document: Document | Joined | FormerRun): Pick<Result, 'parts'> =>
  'parts' in document
    ? { parts: document.parts.map(({ document: { file }, entries, from }) => ({ file, from, count: entries.length })) }
    : {}

/** Prints the last lines, in the form that the caller wants. */
export function finish(
  results: readonly Result[],
  { json, summary }: Pick<SendValues, 'json' | 'summary'>,
  { output, title }: { readonly output: Output; readonly title: string },
): void {
  if (summary !== undefined) writeSummary(summary, title, results, output)
  if (json === true) output.json(toJson(results))
  else if (results.length > 1) output.line(output.paint('bold', outcomesOf(results)))
}

/** Hides secrets in each text by itself: a value such as `null` may stand in the JSON around them. */
export function redacted<Found extends Pick<Delivered, 'logs' | 'errors' | 'details' | 'changes'>>(
  delivered: Found,
  { redact }: Output,
): Found {
  const { logs, errors, details, changes } = delivered
  const inside = (_: string, value: unknown) => (typeof value === 'string' ? redact(value) : value)
  const worded = details.map((detail) => ({ ...detail, message: inOptions(detail.message) }))
  return {
    ...delivered,
    logs: logs.map((text) => redact(inOptions(text))),
    errors: errors.map((text) => redact(inOptions(text))),
    details: JSON.parse(JSON.stringify(worded, inside)),
    changes: changes === null ? null : JSON.parse(JSON.stringify(changes, inside)),
  }
}

/** @throws {UsageError} */
function checkedOwner(name: string, owner: string | undefined): string | undefined {
  if (owner === undefined) return undefined
  const { error } = ownerLabel().safeParse(owner)
  if (error !== undefined) throw new UsageError(`${name}: ${error.issues.map(({ message }) => message).join(' ')}`)
  return owner
}

/** @returns the header of the message @throws {UsageError} */
function checkedMessage(sent = ''): Record<string, string> {
  const message = messageOf(sent)
  const wrong = message === null ? null : whyNoMessage(message)
  if (wrong !== null) throw new UsageError(`--message: ${wrong}`)
  return message === null ? {} : { 'gatewright-message': Buffer.from(message).toString('latin1') }
}

/** Conditions of an apply, as headers. */
export function headersOf(values: SendValues, owner: string | undefined, tag: string | null): Record<string, string> {
  const deletes = values['allow-deletes']
  const words = [
    ...(values['allow-grants'] ? ['grants'] : []),
    ...(values['allow-takeover'] ? ['takeover'] : []),
    ...(deletes === undefined
      ? []
      : [`deletes=${readCount('--allow-deletes', deletes, { initial: 0, max: 999_999 })}`]),
  ]
  return {
    // `fetch` sends headers as Latin-1, and the server reads them as UTF-8.
    ...(owner !== undefined && { 'gatewright-owner': Buffer.from(owner).toString('latin1') }),
    ...checkedMessage(values.message),
    ...(words.length > 0 && { 'gatewright-allow': words.join(', ') }),
    ...(values['create-only'] && { 'if-none-match': '*' }),
    ...(tag !== null && { 'if-match': `"${tag.replaceAll('"', '')}"` }),
  }
}
