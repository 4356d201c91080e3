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

/** A plan is an apply that is rolled back. */
export type Mode = 'apply' | 'plan'

/** The conditions of a request on its document. */
export type Conditions = {
  readonly mode: Mode
  /** `If-Match`: the tag of the plan that was reviewed. Only its changes are applied. */
  readonly reviewed: string | null
  /** `If-None-Match: *`: no row that the document names may exist yet. */
  readonly createOnly: boolean
  /** The keys that rows must have, by entry id. */
  readonly expectedKeys: Readonly<Record<string, number>>
  /**
   * `Gatewright-Owner`: the label under which the submitter manages the objects; null without one. An entry may have one of its
   * own (`ownerFor`).
   */
  readonly owner: string | null
  /** `Gatewright-Allow`. */
  readonly allow: Acknowledgements
  /** `replace_provider=true`: the provider that an application loses, and that no other one has, is deleted too. */
  readonly replaceProvider: boolean
  /** `Gatewright-Stack`: what the document names belongs to this stack; null without one. */
  readonly stack: string | null
  /** When the former run ended whose document is applied again, in ISO 8601: what stood then is not deleted as left over. */
  readonly since?: string | undefined
  /** `reset=true`: fields that the document does not name go back to their defaults. */
  readonly reset: boolean
  /** The indexes of entries of a former document that its run skipped or left. They are no part of it. */
  readonly without?: readonly number[] | undefined
}

/** The conditions that do not depend on the document. */
export type RequestConditions = Omit<Conditions, 'expectedKeys'>

export const unconditional: Conditions = {
  mode: 'apply',
  reviewed: null,
  createOnly: false,
  expectedKeys: {},
  owner: null,
  allow: nothingAllowed,
  replaceProvider: false,
  stack: null,
  reset: false,
}

/** The label under which the submitter manages the row of an entry: its own, or that of the request; null without one. */
export const ownerFor = ({ owner }: Pick<Step, 'owner'>, request: Pick<Conditions, 'owner'>): string | null =>
  owner === undefined ? request.owner : owner

/** Whether the request reviews what follows from its document, or has reviewed it. */
export const isReviewed = ({ mode, reviewed }: Pick<Conditions, 'mode' | 'reviewed'>): boolean =>
  mode === 'plan' || reviewed !== null
