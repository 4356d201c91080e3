import { z } from 'zod'
import { Problem } from '../errors.ts'
import { type Actor, allows, isWithin, ownersShown, type Right, seesAllRuns } from '../permissions.ts'
import { storedPipeline } from '../pipeline.ts'
import { type Conditions, conditionsForm, nothingAllowed } from '../plan/engine.ts'

/** The options of a run: its conditions, and the rights with which it was submitted. */

const keysSchema = z.object({
  impersonator: z.object({ pk: z.number(), username: z.string() }).optional(),
  ceiling: z
    .array(z.string())
    .transform((rights) => new Set(rights))
    .optional(),
})
const optionsSchema = conditionsForm.extend({
  ...keysSchema.shape,
  authors: z.array(keysSchema.extend({ pk: z.int() })).optional(),
  /** The owners that entries name beside the owner of the run: null stands for entries under none. */
  owners: z.array(z.string().nullable()).default([]),
  message: z.string().nullable().default(null),
  /** The run whose document was submitted again. */
  former: z.guid().nullable().default(null),
  /** The fields that were changed since the former run, and that its document cannot put back. */
  not_put_back: z.array(z.string()).default([]),
  pipeline: storedPipeline.default(null),
  /** The user who cancelled it while it waited. */
  cancelled_by: z.string().nullable().default(null),
})

type Stored = { readonly options: unknown }

/** @returns null for options in a form that cannot be read: SQL, or another version, may have written them */
export const optionsOf = ({ options }: Stored): z.output<typeof optionsSchema> | null =>
  optionsSchema.safeParse(options).data ?? null

/** @throws {Problem} which names the fields of options that cannot be read: the run is not executed under others */
function parsed<Output>(form: z.ZodType<Output>, options: unknown): Output {
  const { data, error } = form.safeParse(options)
  if (error === undefined) return data
  const fields = new Set(error.issues.map(({ path: [field = 'options'] }) => String(field)))
  const why = `the stored options of the run cannot be read (${[...fields].join(', ')}): submit its document again`
  throw new Problem('server_error', why)
}

export const conditionsOf = ({ options }: Stored): Conditions => parsed(conditionsForm, options)

/**
 * The submitter of a run: the real user, if it was impersonated; the only permissions of its token; the job that had the token;
 * the submitters of a former document.
 */
export function submitterOf({ options }: Stored) {
  const { impersonator, ceiling, authors, pipeline } = parsed(optionsSchema, options)
  return { impersonator, ceiling, authors, pipeline: pipeline ?? undefined }
}

/** The options of a run whose row has no others. Version 0.2.0 reads the others without a default. */
const unsaid = conditionsForm.omit({ createOnly: true, expectedKeys: true }).parse({})

/**
 * The options as the row holds them, without the defaults: most runs have these, and there are many runs.
 *
 * @param submitter the real user while impersonating, the ceiling, the job, the message, and the former run
 * @param owners those that the document names for entries
 */
export function storedOptions(
  { allow, ...conditions }: Conditions,
  submitter: Readonly<Record<string, unknown>>,
  owners: readonly (string | null)[] = [],
): object {
  const more = owners.filter((owner) => owner !== conditions.owner)
  const others = Object.entries(allow).filter(([word, value]) => value !== nothingAllowed[word as keyof typeof allow])
  const isSaid = ([name, value]: [string, unknown]) => !Object.hasOwn(unsaid, name) || value !== Object(unsaid)[name]
  return {
    ...Object.fromEntries(Object.entries(conditions).filter(isSaid)),
    ...(others.length > 0 && { allow: Object.fromEntries(others) }),
    ...(more.length > 0 && { owners: more }),
    ...submitter,
  }
}

/**
 * Whether the caller may know of a run: its submitter may, and a caller with `view_run`. A caller whose rights are bound to
 * owners knows of the runs of these, and of its own without an owner. If a run has several owners, all must be the caller's.
 */
export function mayReadRun(run: Stored & { readonly submitterPk: number | null }, actor: Actor): boolean {
  const isOwn = run.submitterPk === actor.pk
  if (!isOwn && !allows(actor, 'view_run')) return false
  const owners = ownersShown(actor)
  if (owners === null) return true
  const found = optionsOf(run)
  // The owners of the run are not known.
  if (found === null) return false
  return [found.owner, ...found.owners].every((owner) => (owner === null ? isOwn : owners.includes(owner)))
}

/** The job that submitted a run; null also for a caller who may not know of the run. */
export const pipelineShown = (run: Parameters<typeof mayReadRun>[0], actor: Actor) =>
  mayReadRun(run, actor) ? (optionsOf(run)?.pipeline ?? null) : null

/** @param actor a caller who may not know of every run: the answer is the same, and operators see that it was refused */
export const noSuchRun = (actor?: Actor): Problem => {
  const isBlind = actor !== undefined && !seesAllRuns(actor)
  return new Problem('not_found', 'There is no such run.', { missing: isBlind ? ['view_run'] : [] })
}

/** The submitters of the document of a run, and of the former run from which it has the document, as a new run records them. */
export const storedAuthors = (authors: Actor['authors']) =>
  authors?.map(({ pk, impersonator, ceiling }) => ({ pk, impersonator, ceiling: ceiling && [...ceiling].sort() }))

/**
 * Whether a token with this ceiling may read what its user may read of a run: the run had no more rights. A token without a
 * ceiling may.
 */
export function isWithinCeiling(run: Stored, ceiling: ReadonlySet<Right> | undefined): boolean {
  if (ceiling === undefined) return true
  const had = optionsOf(run)?.ceiling
  return had !== undefined && isWithin(had, ceiling)
}
