import { readVariable } from '../config.ts'
import { longestMessage, messageOf, whyNoMessage } from '../runs/message.ts'
import { type allOptions, type readArguments, readCount, readTimeoutMs } from './arguments.ts'
import { openClient } from './client.ts'
import { deliver, emptyResult, type Result, type Sendable } from './deliver.ts'
import { UsageError } from './exit.ts'
import { type Document, type Inputs, isUnreadable, readInputs, type Unreadable } from './inputs.ts'
import { inOptions } from './options-for-headers.ts'
import { checkOut, type Output, openOutput } from './output.ts'
import { type OwnerGiven, ownerOf, ownOwner, prunedBy, readOwner } from './owners.ts'
import { readPlans, writePlans } from './plan-file.ts'
import { codeOfResults, outcomesOf, printPlans, printResult, printTotals, toJson } from './report.ts'
import { writeSummary } from './summary.ts'

/** The parts that `plan` and `apply` share: the files are sent as one document, or each on its own. */

/** The values of the options that one of the commands has. */
type SendValues = Partial<ReturnType<typeof readArguments<typeof allOptions>>['values']>

export async function sendFiles(mode: 'plan' | 'apply', paths: readonly string[], values: SendValues): Promise<number> {
  const { out, owner } = values
  const timeoutMs = readTimeoutMs(values.timeout)
  const tagFor = values['plan-file'] === undefined ? () => null : await readPlans(values['plan-file'])
  readOwner('--owner', owner)
  for (const file of [out, values.summary]) if (file !== undefined) checkOut(file)
  const inputs = await readInputs(paths, { ...values, isPlan: mode === 'plan' })
  const output = openOutput(values, inputs.secrets)
  const stack = stackOf(values, inputs)
  if (stack === undefined && inputs.project?.stack !== undefined)
    output.note(`A part of stack ${inputs.project.stack}: the stack stays as it is, and nothing is left over.`)
  const client = await openClient(output, values, timeoutMs, inputs.project)
  readOwner('GATEWRIGHT_OWNER', client.owner)
  // As it was written: the owner in a file is compared with it.
  const given = { label: owner ?? client.owner ?? undefined, isOption: owner !== undefined }
  const documents = await toSend(inputs.documents, values, given)
  const tags = documents.map(({ file }) => tagFor(file))
  const results: Result[] = []
  // The totals come before the results. The results of several documents that are applied are printed at once.
  const isListed = mode === 'apply' && documents.length > 1
  const add = (found: Result) => {
    const result = redacted(found, output)
    results.push(result)
    if (isListed) printResult(output, result)
  }
  // Nothing is sent until every file can be sent. An apply stops at the first file that is not applied.
  let isStopped = (mode === 'apply' || values.each !== true) && documents.some((each) => isUnreadable(each))
  for (const [index, document] of documents.entries()) {
    output.progress(index, documents.length, document.file)
    if (isUnreadable(document)) add({ ...emptyResult, ...document, outcome: 'refused' })
    else if (isStopped) add({ ...emptyResult, file: document.file, outcome: 'not tried' })
    else {
      const delivered = await deliver(client, document, {
        mode,
        isReset: values.reset === true,
        headers: headersOf(values, { owner: document.owner, stack, tag: tags[index] ?? null }),
        waits: values['no-wait'] !== true,
      })
      add(delivered)
      isStopped =
        ['unknown', 'unreachable'].includes(delivered.outcome) ||
        (mode === 'apply' && delivered.outcome === 'refused' && values['keep-going'] !== true)
    }
  }
  output.progress(documents.length, documents.length, '')
  if (out !== undefined) writePlans(out, client.url, results)
  if (mode === 'plan') printPlans(output, results, values.full === true)
  else {
    printTotals(output, results, true)
    if (!isListed) for (const result of results) printResult(output, result)
  }
  return finish(results, output, mode, values.summary)
}

/** @throws {UsageError} for two stacks, and with `--each` */
function stackOf({ stack: sent, each }: SendValues, { project, isPart }: Inputs): string | undefined {
  const given = readOwner('--stack', sent)
  // What a part does not name is in other files.
  const own = isPart ? undefined : project?.stack
  if (given !== undefined && own !== undefined && given !== own)
    throw new UsageError(
      `--stack is ${JSON.stringify(given)}, and ${project?.file} names the stack ${JSON.stringify(own)}: leave one out.`,
    )
  const stack = given ?? own
  if (stack === undefined || each !== true) return stack
  throw new UsageError('--each is not for a stack: each file would leave over what the others name.')
}

const paths = { submission: '/core/transactional/applications/', blueprint: '/blueprints/' } as const

const toPut = ({ file, form, body }: Pick<Document, 'file' | 'form' | 'body'>) =>
  ({ file, method: 'PUT', path: paths[form], body, isYaml: form === 'blueprint' }) as const

/** @throws {UsageError} when `--each` would delete objects that other files of an owner name */
async function toSend(
  inputs: readonly (Document | Unreadable)[],
  values: SendValues,
  given: OwnerGiven,
): Promise<readonly (Sendable | Unreadable)[]> {
  const isEach = values.each === true
  if (values['keep-going'] === true && !isEach) throw new UsageError('--keep-going is for --each.')
  const readable = inputs.filter((each): each is Document => !isUnreadable(each))
  if (isEach) refuseEach(readable, given)
  const refused = inputs.filter((each) => isUnreadable(each))
  for (const each of readable) {
    if (!given.isOption || [undefined, given.label].includes(ownOwner(each))) continue
    const { wrongIn } = await import('./joined.ts')
    refused.push({ file: each.file, ...(await wrongIn(each, given)) })
  }
  if (readable.length > 1) {
    const { compareFiles, joinFiles } = await import('./joined.ts')
    const compared = await compareFiles(readable, given)
    refused.push(...compared.refused)
    if (refused.length === 0 && !isEach) {
      const joined = await joinFiles(compared.parts, given)
      for (const each of joined) {
        if (!isUnreadable(each)) return [{ ...toPut(each), parts: each.parts, owner: each.owner }]
        refused.push(each)
      }
    }
  }
  const byFile = new Map(refused.map((each) => [each.file, each]))
  return inputs.map((each) => {
    if (isUnreadable(each)) return each
    const wrong = byFile.get(each.file)
    if (wrong !== undefined) return wrong
    const owner = ownOwner(each) === undefined ? ownerOf(each, given) : undefined
    return { ...toPut(each), owner, parts: [{ document: each, from: 0 }] }
  })
}

/** Refuses `--each` for files that concern all files of an owner together. */
function refuseEach(documents: readonly Document[], given: OwnerGiven): void {
  const isAbout = (owner: string | undefined) => (each: Document) =>
    [ownerOf(each, given), ...prunedBy(each, given)].includes(owner)
  const pruned = documents.flatMap((each) => prunedBy(each, given))
  if (pruned.some((owner) => documents.filter(isAbout(owner)).length > 1))
    throw new UsageError('--each would delete what other files of the owner name: prune is about all of them.')
}

/** Prints the last lines. @returns the exit code */
export function finish(results: readonly Result[], output: Output, title: string, summary?: string): number {
  const { length: notTried } = results.filter(({ outcome }) => outcome === 'not tried')
  if (notTried > 0) output.line(`not tried: ${notTried} ${notTried === 1 ? 'file' : 'files'}`)
  output.json(toJson(results))
  if (summary !== undefined) writeSummary(summary, title, results, output)
  if (results.length > 1) output.line(output.paint('bold', outcomesOf(results)))
  return codeOfResults(results)
}

/** Hides secrets in each text by itself: a value such as `null` may stand in the JSON around them. */
export function redacted(result: Result, { redact }: Output): Result {
  const hide = <Value>(value: Value): Value =>
    JSON.parse(JSON.stringify(value, (_, each) => (typeof each === 'string' ? redact(each) : each)))
  const { logs, errors, details, changes } = result
  return {
    ...result,
    logs: hide(logs.map(inOptions)),
    errors: hide(errors.map(inOptions)),
    details: hide(details.map((detail) => ({ ...detail, message: inOptions(detail.message) }))),
    changes: hide(changes),
  }
}

/** The variables in which CI systems have the commit of a job. */
const commitVariables = ['GITHUB_SHA', 'CI_COMMIT_SHA', 'BUILDKITE_COMMIT', 'CIRCLE_SHA1', 'GIT_COMMIT']

/** The commit of the job, shortened; undefined outside of a job. */
function readCommit(): string | undefined {
  const found = commitVariables.map((name) => readVariable(name)).find((each) => /^[\da-f]{40,64}$/.test(each ?? ''))
  return found?.slice(0, 10)
}

/** @param commit is added, where the message has room @returns the header of the message @throws {UsageError} */
export function checkedMessage(sent = '', commit?: string): Record<string, string> {
  const said = messageOf(sent)
  const both = [said, commit === undefined ? null : `commit ${commit}`].filter((each) => each !== null).join(', ')
  const message = messageOf(both.length > longestMessage ? sent : both)
  const wrong = message === null ? null : whyNoMessage(message)
  if (wrong !== null) throw new UsageError(`--message: ${wrong}`)
  return message === null ? {} : { 'gatewright-message': Buffer.from(message).toString('latin1') }
}

/** Conditions of an apply, as headers. */
function headersOf(
  values: SendValues,
  { owner, stack, tag }: { readonly owner: string | undefined; stack: string | undefined; tag: string | null },
): Record<string, string> {
  const deletes = values['allow-deletes']
  const words = [
    ...(values['allow-grants'] ? ['grants'] : []),
    ...(values['allow-takeover'] ? ['takeover'] : []),
    ...(deletes === undefined ? [] : [`deletes=${readCount('--allow-deletes', deletes, 999_999)}`]),
  ]
  return {
    // `fetch` sends headers as Latin-1, and the server reads them as UTF-8.
    ...(owner !== undefined && { 'gatewright-owner': Buffer.from(owner).toString('latin1') }),
    ...(stack !== undefined && { 'gatewright-stack': Buffer.from(stack).toString('latin1') }),
    ...checkedMessage(values.message, stack === undefined ? undefined : readCommit()),
    ...(words.length > 0 && { 'gatewright-allow': words.join(', ') }),
    ...(tag !== null && { 'if-match': `"${tag}"` }),
  }
}
