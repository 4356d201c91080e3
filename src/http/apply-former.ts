import type { FastifyReply } from 'fastify'
import type { z } from 'zod'
import { inTime } from '../db/in-time.ts'
import type { Blueprint } from '../document/document.ts'
import { ErrorList, Problem } from '../errors.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { compile } from '../plan/compile.ts'
import type { Conditions } from '../plan/engine.ts'
import { documentOf, type FormerRun, readFormerRun } from '../runs/documents.ts'
import { mayReadRun } from '../runs/options.ts'
import type { Submitted, Submitter } from '../runs/submit.ts'
import { requireAccess } from './access.ts'
import { applyAccess, requireKind, requireSubmitter } from './apply-access.ts'
import { type applyQuery, conditionsIn, submitSent } from './apply-answer.ts'
import { readConditions } from './apply-conditions.ts'
import type { Headers } from './headers.ts'

/** The stored document of a former run is submitted again, as a new run: by the API, and from the page of the run. */

type Asked = {
  /** The id of the former run. */
  readonly id: string
  readonly query: z.infer<typeof applyQuery>
  readonly headers: Headers
  /** Of the request: it takes none. */
  readonly body?: unknown
}

/**
 * @returns the former run, for a caller who may apply it again
 * @throws {Problem} `not_found` and `permission_denied`
 */
export async function formerRunFor({ db, engine }: Submitter, id: string, actor: Actor): Promise<FormerRun> {
  const former = await inTime(readFormerRun(db, id))
  if (former === null || !mayReadRun(former, actor)) throw new Problem('not_found', 'There is no such run.')
  requireSubmitter(actor, former.submitterPk)
  requireSender(actor, former, engine.registry)
  return former
}

/** Submits the document as the caller, with the rights that the caller has now. @throws {Problem} when it is refused */
export async function submitFormer(
  submitter: Submitter,
  request: Parameters<typeof submitSent>[1],
  reply: FastifyReply,
  { id, query, headers, body }: Asked,
): Promise<Submitted> {
  const { registry, keyring } = submitter.engine
  const former = await formerRunFor(submitter, id, request.actor)
  const stored = await inTime(documentOf(submitter.db, keyring, former))
  const { blueprint } = stored
  const read = () => {
    const errors = new ErrorList()
    if (body !== undefined && body !== null)
      errors.add([], 'unknown_field', 'The document is that of the run: send no body.')
    const asked = { ...blueprint, ...conditionsIn(query), formerOwner: stored.conditions.owner }
    const { expectedKeys } = stored.conditions
    const conditions = { ...readConditions(headers, errors, asked), expectedKeys }
    const { steps, errors: found } = compileAsSent(former, blueprint, registry, conditions)
    const title = former.title.replace(/^\w+/, conditions.mode)
    const submission = { blueprint, conditions, title, kind: former.kind, slug: former.slug, former: former.id }
    return { plan: { steps, errors: errors.include([found]) }, submission }
  }
  return submitSent(submitter, request, reply, read, headers)
}

const isBlueprint = ({ slug }: FormerRun): boolean => slug === null

/** What the route requires by which the document was sent. */
function requireSender(actor: Actor, former: FormerRun, { kinds }: Registry): void {
  requireAccess(actor, isBlueprint(former) ? applyAccess.blueprint : applyAccess.submission)
  const kind = kinds.get(former.kind)
  if (!isBlueprint(former) && kind !== undefined) requireKind(actor, kind)
}

/** Errors have the paths that they have in the answers of that route. */
const compileAsSent = (former: FormerRun, blueprint: Blueprint, registry: Registry, conditions: Conditions) =>
  isBlueprint(former)
    ? compile(blueprint, registry, undefined, conditions)
    : compile(blueprint, registry, (entry, index) => [entry.id ?? index], conditions)
