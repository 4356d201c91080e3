import type { FastifyReply, FastifyRequest } from 'fastify'
import { applicationModel } from '../apply/history.ts'
import { ownersIn } from '../document/document.ts'
import { print } from '../document/yaml.ts'
import type { Headers } from '../http/headers.ts'
import { uuid7 } from '../ids.ts'
import type { Actor } from '../permissions.ts'
import type { Plan } from '../plan/compile.ts'
import type { NewRun } from '../runs/ledger.ts'
import { currentHeaders } from '../tracing.ts'
import { alone } from '../turns.ts'
import { checkInTime, isLarge } from './check.ts'
import { readDelivery } from './delivery.ts'
import { joinRun, retryKeyOf } from './join.ts'
import { fewEntries, refuseMore } from './limits.ts'
import { record } from './record.ts'
import type { Delivery, LeftMs, Submission, Submitted, Submitter } from './submission.ts'
import { enqueueAndWait } from './wait.ts'

export type ApplyRequest = Pick<FastifyRequest, 'actor' | 'headers' | 'id' | 'submission' | 'keepShare'>

/**
 * The use case of an apply: admits a submission, reads and checks it, records its run, enqueues the run, and waits for its end.
 *
 * @param read reads the document; it throws a {@link Problem} for one that is refused
 * @param headers those of the request, unless others replace them
 * @throws {Problem} when it is refused, and `cancelled` when it certainly was not applied
 */
export async function submit(
  submitter: Submitter,
  request: ApplyRequest,
  reply: FastifyReply,
  read: () => Submission | Promise<Submission>,
  headers: Headers = request.headers,
): Promise<Submitted> {
  request.submission = { run: null, title: null }
  const endsAt = performance.now() - reply.elapsedTime + submitter.applyWaitMs
  const leftMs: LeftMs = () => Math.max(0, endsAt - performance.now())
  const sent = readDelivery(headers)
  // The run of a key may exist already. That comes before all refusals: a refusal means that nothing was changed.
  const keyed = sent.key === null ? undefined : await read()
  if (keyed !== undefined) {
    const delivery = deliveryOf(sent, keyed)
    const retryKey = retryKeyOf(submitter.engine, keyed.conditions, print(keyed.blueprint), delivery, request.actor)
    const joined = await joinRun(submitter, request.actor.pk, retryKey, delivery, leftMs)
    if (joined !== undefined) return joined
  }
  const admission = await submitter.backlog.enter({ waits: !sent.isAsync })
  let isKnown = false
  try {
    const submission = keyed ?? (await read())
    const { actor = request.actor } = submission
    const delivery = deliveryOf(sent, submission)
    const title = titleOf(submission, delivery)
    request.submission = { run: null, title }
    if (sent.isAsync) reply.header('Preference-Applied', 'respond-async')
    await checkInTime(submitter, request, reply, { ...submission, actor, leftMs: leftMs() })
    const id = uuid7()
    request.submission = { run: id, title }
    await refuseMore(submitter, submission, actor, delivery)
    const run = await newRun(submitter, request, { ...submission, title, id, actor }, delivery)
    const recorded = await record(submitter, run, { admission, isAsync: delivery.isAsync, leftMs })
    const submitted =
      typeof recorded === 'number' ? await enqueueAndWait(submitter, run, recorded, delivery, leftMs) : recorded
    isKnown = true
    return submitted
  } finally {
    admission.leave(isKnown)
  }
}

/** The title of a run of a stack has the stack and the message. */
const titleOf = ({ title, conditions: { mode, stack } }: Submission, { message }: Delivery): string =>
  stack === null ? title : [`${mode} ${stack}`, ...(message === null ? [] : [message])].join(': ').slice(0, mostOfTitle)

const mostOfTitle = 200

/** A large document is answered as soon as it is recorded. */
const deliveryOf = (sent: Delivery, { plan }: Submission): Delivery => ({
  ...sent,
  isAsync: sent.isAsync || isLarge(plan),
})

async function newRun(
  { engine }: Submitter,
  { id: requestId }: ApplyRequest,
  { id, title, kind, slug, former, plan, blueprint, conditions, actor }: Submission & { id: string; actor: Actor },
  delivery: Delivery,
): Promise<NewRun> {
  const count = blueprint.entries.length
  const text = count > fewEntries ? await alone(actor.pk, () => print(blueprint)) : print(blueprint)
  return {
    id,
    title,
    kind,
    slug,
    former,
    submitter: actor,
    requestId,
    blueprint: text,
    owners: ownersIn(blueprint),
    // A large document is not checked yet: its submitter might not be allowed to change what it names.
    applications: conditions.mode === 'apply' && !isLarge(plan) ? applicationsIn(plan, slug) : [],
    conditions,
    message: delivery.message,
    trace: currentHeaders(),
    entries: count > fewEntries ? count : undefined,
    retryKey: actor.pk === null ? undefined : retryKeyOf(engine, conditions, text, delivery, actor),
  }
}

/** The slugs of applications that entries name, those before a rename too. @param known one that the run has */
function applicationsIn({ steps }: Plan, known: string | null): string[] {
  const slugs = steps
    .filter(({ model }) => model.name === applicationModel)
    .flatMap(({ identifiers, attrs, was }) => [identifiers.get('slug'), attrs.get('slug'), was])
  return [...new Set(slugs.filter((slug) => typeof slug === 'string'))].filter((slug) => slug !== known)
}
