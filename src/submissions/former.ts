import type { FastifyReply } from 'fastify'
import type { z } from 'zod'
import { reader } from '../db/engine-tx.ts'
import { inTime } from '../db/in-time.ts'
import { ErrorList, Problem } from '../errors.ts'
import { requireAccess } from '../http/access.ts'
import type { Headers } from '../http/headers.ts'
import type { Registry } from '../models/registry.ts'
import type { Actor } from '../permissions.ts'
import { compile } from '../plan/compile.ts'
import { isReviewed } from '../plan/engine.ts'
import { withAuthors } from '../rights/actor.ts'
import { authorsOf, documentOf, type FormerRun, pathsOf, readFormerRun } from '../runs/documents.ts'
import { mayReadRun, noSuchRun } from '../runs/options.ts'
import { applyAccess, mayRollBack, requireKind } from './access.ts'
import { type applyQuery, conditionsIn } from './answer.ts'
import { readConditions } from './conditions.ts'
import { withRecordedFields } from './recorded.ts'
import type { Submitted, Submitter } from './submission.ts'
import { type ApplyRequest, submit } from './submit.ts'

/** Submits the stored document of a former run again, as a new run: by the API, and from the page of the run. */

type FormerRequest = {
  readonly id: string
  readonly query: z.infer<typeof applyQuery>
  readonly headers: Headers
}

/**
 * @returns the former run, for a caller who may apply it again
 * @throws {Problem} `not_found` and `permission_denied`
 */
export async function formerRunFor({ db, engine }: Submitter, id: string, actor: Actor): Promise<FormerRun> {
  const former = await inTime(readFormerRun(db, id))
  if (former === null || !mayReadRun(former, actor)) throw noSuchRun(actor)
  if (!mayRollBack(actor, former.submitterPk)) throw new Problem('permission_denied', ofAnother)
  requireSender(actor, former, engine.registry)
  return former
}

/**
 * Submits the document as the caller, with the rights that both the caller and its submitter have now
 * (docs/adr/0110-a-former-document-has-two-actors.md).
 *
 * @throws {Problem} when it is refused
 */
export async function submitFormer(
  submitter: Submitter,
  request: ApplyRequest,
  reply: FastifyReply,
  { id, query, headers }: FormerRequest,
): Promise<Submitted> {
  const { registry, keyring } = submitter.engine
  const former = await formerRunFor(submitter, id, request.actor)
  const stored = await inTime(documentOf(submitter.db, keyring, former))
  const { without, conditions: sent } = stored
  const { blueprint, left } = await withRecordedFields(submitter.db, registry, former, stored, request.actor)
  const actor = await inTime(withAuthors(reader(submitter.db), request.actor, authorsOf(former)))
  if (actor === null) throw new Problem('conflict', withoutAuthor)
  const read = () => {
    const errors = new ErrorList()
    const asked = { ...blueprint, ...conditionsIn(query), formerOwner: sent.owner, formerStack: sent.stack }
    // The run of a plan is applied as it was planned.
    const since = former.applied === true ? former.finishedAt?.toISOString() : sent.since
    const conditions = {
      ...readConditions(headers, errors, asked),
      expectedKeys: sent.expectedKeys,
      ...(since !== undefined && { since }),
      ...(without.length > 0 && { without }),
    }
    const isOfAnother = actor.authors?.some(({ pk }) => pk !== actor.pk) === true
    if (isOfAnother && !isReviewed(conditions)) throw new Problem('conflict', unreviewed)
    const { steps, errors: found } = compile(blueprint, registry, pathsOf(former), conditions)
    const title = former.title.replace(/^\w+/, conditions.mode)
    const { id, kind, slug } = former
    const plan = { steps, errors: errors.include([found]) }
    return { plan, blueprint, conditions, title, kind, slug, former: { id, left: shortened(left) }, actor }
  }
  return submit(submitter, request, reply, read, headers)
}

/** The most lines that are kept with a run. */
const mostLeft = 100

const shortened = (left: readonly string[]): readonly string[] =>
  left.length > mostLeft ? [...left.slice(0, mostLeft), `and ${left.length - mostLeft} more`] : left

const ofAnother = "To apply another user's run again you need the permission roll_back_run."

const withoutAuthor =
  'The submitter of this run is gone or no longer active, so its document has no rights: read it, and send the document yourself.'

const unreviewed =
  'The document of this run is of another user: plan it with dry_run=true, review the plan, and send its ETag as If-Match.'

/** The permissions of the route by which the document was sent. */
function requireSender(actor: Actor, former: FormerRun, { kinds }: Registry): void {
  requireAccess(actor, former.slug === null ? applyAccess.blueprint : applyAccess.submission)
  const kind = former.slug === null ? undefined : kinds.get(former.kind)
  if (kind !== undefined) requireKind(actor, kind)
}
