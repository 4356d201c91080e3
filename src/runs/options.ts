import { z } from 'zod'
import { type Actor, allows, boundOwners, isBound } from '../permissions.ts'
import { acknowledgements, type Conditions, nothingAllowed } from '../plan/engine.ts'

/** The options of a run: its conditions, and with which rights it was submitted. */

/** Runs of earlier versions have neither. */
const ownershipSchema = z.object({
  owner: z.string().nullable().default(null),
  allow: acknowledgements.default(nothingAllowed),
})
const conditionsSchema = ownershipSchema.extend({
  mode: z.enum(['apply', 'plan']).default('apply'),
  reviewed: z.string().nullable().default(null),
  createOnly: z.boolean(),
  replaceProvider: z.boolean().default(false),
  prune: z.boolean().default(false),
  expectedKeys: z.record(z.string(), z.number()),
})
const submitterSchema = z.object({
  impersonator: z.object({ pk: z.number(), username: z.string() }).optional(),
  ceiling: z.array(z.string()).optional(),
})

export const conditionsOf = ({ options }: { readonly options: unknown }): Conditions => conditionsSchema.parse(options)

/** Under which owner it was submitted, and what the submitter acknowledged. */
export const ownershipOfRun = ({ options }: { readonly options: unknown }) => ownershipSchema.parse(options)

/**
 * Whether the caller may know of a run: as its submitter, or with `view_run`. A caller whose rights are bound to owners
 * knows of the runs of these, and of its own without an owner.
 */
export function mayReadRun(
  run: { readonly options: unknown; readonly submitterPk: number | null },
  actor: Actor,
): boolean {
  const isOwn = run.submitterPk === actor.pk
  if (!isOwn && !allows(actor, 'view_run')) return false
  if (allows(actor, 'view_application') || !isBound(actor)) return true
  const { owner } = ownershipOfRun(run)
  return owner === null ? isOwn : boundOwners(actor).includes(owner)
}

/** The real user, if the submitter was impersonated. The only permissions that its token carries, if it has a ceiling. */
export function submitterOf(run: { readonly options: unknown }) {
  const { impersonator, ceiling } = submitterSchema.parse(run.options)
  return { impersonator, ceiling: ceiling && new Set(ceiling) }
}
