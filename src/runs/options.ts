import { z } from 'zod'
import { type Actor, allows, covers, ownersShown, type Right } from '../permissions.ts'
import { acknowledgements, type Conditions, nothingAllowed } from '../plan/engine.ts'

/** The options of a run: its conditions, and the rights with which it was submitted. */

/** Runs of earlier versions have neither. */
const ownershipSchema = z.object({
  owner: z.string().nullable().default(null),
  allow: acknowledgements.default(nothingAllowed),
})
/** The owners that entries name beside the owner of the run: null stands for entries under none. */
const ownersSchema = ownershipSchema.extend({ owners: z.array(z.string().nullable()).default([]) })
const conditionsSchema = ownershipSchema.extend({
  mode: z.enum(['apply', 'plan']).default('apply'),
  reviewed: z.string().nullable().default(null),
  createOnly: z.boolean(),
  replaceProvider: z.boolean().default(false),
  prune: z.union([z.boolean(), z.array(z.string())]).default(false),
  reset: z.boolean().default(false),
  expectedKeys: z.record(z.string(), z.number()),
  without: z.array(z.int()).optional(),
})
const keysSchema = z.object({
  impersonator: z.object({ pk: z.number(), username: z.string() }).optional(),
  ceiling: z.array(z.string()).optional(),
})
const submitterSchema = keysSchema.extend({ authors: z.array(keysSchema.extend({ pk: z.int() })).optional() })

/** The options of a run whose row has no others. Version 0.2.0 reads the others without a default. */
const unsaid = conditionsSchema.omit({ createOnly: true, expectedKeys: true }).parse({})

/**
 * The options as the row holds them, without the defaults: most runs have these, and there are many runs.
 *
 * @param submitter the real user while impersonating, the ceiling, the message, and the former run: the parts that `submitterOf`,
 * `messageOfRun` and `formerOfRun` read
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

export const conditionsOf = ({ options }: { readonly options: unknown }): Conditions => conditionsSchema.parse(options)

/** The owner under which it was submitted, all that its document names, and what the submitter acknowledged. */
export function ownershipOfRun({ options }: { readonly options: unknown }) {
  const { owner, owners, allow } = ownersSchema.parse(options)
  return { owner, owners: [owner, ...owners].filter((label) => label !== null).sort(), allow }
}

/**
 * Whether the caller may know of a run: its submitter may, and a caller with `view_run`. A caller whose rights are bound to
 * owners knows of the runs of these, and of its own without an owner. If a run has several owners, all must be the caller's.
 */
export function mayReadRun(
  run: { readonly options: unknown; readonly submitterPk: number | null },
  actor: Actor,
): boolean {
  const isOwn = run.submitterPk === actor.pk
  if (!isOwn && !allows(actor, 'view_run')) return false
  const owners = ownersShown(actor)
  if (owners === null) return true
  const found = ownersSchema.safeParse(run.options).data
  // The owners of the run are not known.
  if (found === undefined) return false
  return [found.owner, ...found.owners].every((owner) => (owner === null ? isOwn : owners.includes(owner)))
}

/** The user who cancelled it while it waited; null for all other runs. */
export const cancelledByOf = ({ options }: { readonly options: unknown }): string | null =>
  z.object({ cancelled_by: z.string() }).safeParse(options).data?.cancelled_by ?? null

const formerSchema = z.object({ former: z.guid().nullable().default(null) })

/** The run whose document was submitted again; null for a document that was sent, and for runs of earlier versions. */
export const formerOfRun = ({ options }: { readonly options: unknown }): string | null =>
  formerSchema.safeParse(options).data?.former ?? null

/**
 * The submitter of a run: the real user, if it was impersonated; the only permissions of its token; the submitters of a former
 * document.
 */
export function submitterOf(run: { readonly options: unknown }) {
  const { authors, ...keys } = submitterSchema.parse(run.options)
  return { ...toKeys(keys), authors: authors?.map((author) => ({ ...author, ...toKeys(author) })) }
}

const toKeys = ({ impersonator, ceiling }: z.output<typeof keysSchema>) => ({
  impersonator,
  ceiling: ceiling && new Set(ceiling),
})

/** The submitters of the document of a run, and of the former run from which it has the document, as a new run records them. */
export const storedAuthors = (authors: Actor['authors']) =>
  authors?.map(({ pk, impersonator, ceiling }) => ({ pk, impersonator, ceiling: ceiling && [...ceiling].sort() }))

/**
 * Whether a token with this ceiling may read what its user may read of a run: the run had no more rights. A token without a
 * ceiling may.
 */
export function isWithinCeiling(run: { readonly options: unknown }, ceiling: ReadonlySet<Right> | undefined): boolean {
  if (ceiling === undefined) return true
  const had = submitterSchema.safeParse(run.options).data?.ceiling
  return had?.every((right) => covers(ceiling, right)) === true
}
