import { z } from 'zod'
import type { Keyring } from '../db/seal.ts'
import type { Registry } from '../models/registry.ts'
import type { Step } from './step.ts'

/** The parts for compiling, checking and applying a document, apart from the database. */
export type Engine = {
  readonly registry: Registry
  readonly keyring: Keyring
  /** The longest lifetime of a token, in days; superusers may exceed it. */
  readonly tokenMaxDays: number
}

/** The effects that a submitter acknowledges beforehand: the words of `Gatewright-Allow`. */
export const acknowledgements = z.object({
  takeover: z.boolean().default(false).meta({
    description:
      'apply to what another owner or another stack manages, or another user made; it is yours afterwards. A reviewed plan acknowledges it, too',
  }),
  grants: z.boolean().default(false).meta({
    description: 'give rights to users whom the request does not name',
  }),
  deletes: z.int().min(0).nullable().default(null).meta({
    description:
      'with their number, `deletes=3`: delete what is left over in the stack. A reviewed plan (`If-Match`) acknowledges those that it lists',
  }),
})

export type Acknowledgements = Readonly<z.output<typeof acknowledgements>>

export const nothingAllowed: Acknowledgements = acknowledgements.parse({})

/** The conditions of a request on its document, as a run records them: without those that are not asked for. */
export const conditionsForm = z.object({
  mode: z.enum(['apply', 'plan']).default('apply'),
  /** `If-Match`: the tag of the plan that was reviewed. Only its changes are applied. */
  reviewed: z.string().nullable().default(null),
  /** `If-None-Match: *`: no row that the document names may exist yet. */
  createOnly: z.boolean().default(false),
  /** `replace_provider=true`: the provider that an application loses, and that no other one has, is deleted too. */
  replaceProvider: z.boolean().default(false),
  /** `Gatewright-Stack`: what the document names belongs to this stack; null without one. */
  stack: z.string().nullable().default(null),
  /** When the former run ended whose document is applied again: what stood then is not deleted as left over. */
  since: z.iso.datetime().optional(),
  /** `reset=true`: fields that the document does not name go back to their defaults. */
  reset: z.boolean().default(false),
  /** The keys that rows must have, by entry id. */
  expectedKeys: z.record(z.string(), z.number()).default({}),
  /** The indexes of entries of a former document that its run skipped or left. They are no part of it. */
  without: z.array(z.int()).readonly().optional(),
  /**
   * `Gatewright-Owner`: the label under which the submitter manages the objects; null without one. An entry may have one of its
   * own (`ownerFor`).
   */
  owner: z.string().nullable().default(null),
  /** `Gatewright-Allow`. */
  allow: acknowledgements.default(nothingAllowed),
})

export type Conditions = Readonly<z.output<typeof conditionsForm>>

/** A plan is an apply that is rolled back. */
export type Mode = Conditions['mode']

/** The conditions that do not depend on the document. */
export type RequestConditions = Omit<Conditions, 'expectedKeys'>

export const unconditional: Conditions = conditionsForm.parse({})

/** The label under which the submitter manages the row of an entry: its own, or that of the request; null without one. */
export const ownerFor = ({ owner }: Pick<Step, 'owner'>, request: Pick<Conditions, 'owner'>): string | null =>
  owner === undefined ? request.owner : owner

/** Whether the request reviews what follows from its document, or has reviewed it. */
export const isReviewed = ({ mode, reviewed }: Pick<Conditions, 'mode' | 'reviewed'>): boolean =>
  mode === 'plan' || reviewed !== null
