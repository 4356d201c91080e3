import type { ErrorCode } from '../error-codes.ts'
import type { ErrorList } from '../errors.ts'
import type { Actor } from '../permissions.ts'
import type { LabelledRow } from '../plan/claims.ts'
import type { Effect } from '../plan/effect.ts'
import type { Unseen } from '../plan/sight.ts'
import type { Key } from '../plan/statements.ts'
import type { Step } from '../plan/step.ts'
import type { Identity } from '../plan/storage.ts'
import type { Gains } from '../rights/gains.ts'
import type { Change } from './changes.ts'
import type { Ownership } from './ownership.ts'

/** The findings of the judge. They carry structure: `words.ts` makes the sentences. */

/** One row, and the change that a document makes to it. */
export type Finding = Effect & {
  /**
   * The cause of the judgement: an entry names the row; an entry takes it through a reference; it is left over in the stack; an
   * application loses it.
   */
  readonly cause: 'entry' | 'taken' | 'left' | 'replaced'
  /** The owner of the row; undefined for a new row, and for one of a model without owners. */
  readonly ownership: Ownership | undefined
  readonly change: Change
  /** The row that the entry has read, for the digest of a plan; undefined where no plan is made or compared. */
  readonly looked?: unknown
  /** The keys of a new row. A check and a plan take no number of a sequence. */
  readonly identity: Identity | undefined
  /** The text in place of the key of a new row in `change`, because a plan has no key. */
  readonly tag: string | undefined
  /** The reasons against it. A finding without any is written. */
  readonly objections: readonly Objection[]
}

/** The key of its row; undefined for a row that is not there, and stays so. */
export const keyOf = ({ row, identity }: Finding): Key | undefined => row?.pk ?? identity?.pk

/** An entry whose conditions are false. */
export type Skipped = { readonly cause: 'skipped'; readonly step: Step }

/** Users who have more rights after the document than before, and whom it does not name. */
export type Given = { readonly cause: 'given'; readonly gains: Gains; readonly objections: readonly Objection[] }

/** The document as a whole is refused. */
export type Refused = { readonly cause: 'refused'; readonly objections: readonly Objection[] }

/** The codes of refusals. A denial hides all others; an error comes before those that follow from it. */
export const precedence = ['permission_denied', 'not_found', 'precondition_failed', 'invalid', 'conflict'] as const
export type Reason = (typeof precedence)[number]

/** One reason why a document is not applied. */
export type Objection =
  /** @property why after "You may not update group x: " */
  | {
      readonly is: 'denied'
      readonly effect: Effect
      readonly actor: Actor
      readonly why: string
      /** The row follows from the document, which does not name it. */
      readonly follows?: boolean
    }
  /** The entry looks up rows that the submitter may not view. */
  | ({ readonly is: 'unseen'; readonly actor: Actor } & Unseen)
  /**
   * The caller may write nothing for the owner that the request names. @property owners those for whose rows it may write
   * @property step the entry that names it
   */
  | {
      readonly is: 'claimed'
      readonly actor: Actor
      readonly owner: string
      readonly owners: readonly string[]
      readonly step?: Step
    }
  /** The token of the caller is bound to other stacks. */
  | { readonly is: 'unstacked'; readonly actor: Actor }
  /** The submitter is gone, or no longer active. */
  | { readonly is: 'gone' }
  | { readonly is: 'missing'; readonly step: Step }
  | { readonly is: 'exists'; readonly effect: Effect }
  /** The entry has another change than in the plan that was reviewed. @property by undefined when no user is recorded */
  | { readonly is: 'changed'; readonly effect: Effect; readonly by?: string | undefined }
  /** Other users gain rights, or other stacks lose rows, than in the plan that was reviewed. */
  | { readonly is: 'followed'; readonly what: 'gains' | 'stacks' }
  /** Another stack has the row. @property stack that of the request @property going the row that goes with it, in messages */
  | {
      readonly is: 'stacked'
      readonly effect: Effect
      readonly from: string
      readonly stack: string
      readonly going: string | undefined
    }
  /** The reviewed plan has more to delete than there is now. */
  | { readonly is: 'fewer'; readonly count: number }
  | { readonly is: 'invalid'; readonly errors: ErrorList }
  /** A rename whose old and new name are both there. */
  | { readonly is: 'both'; readonly effect: Effect }
  /** @property label the owner that the entry, or the request, names */
  | { readonly is: 'owned'; readonly effect: Effect; readonly ownership: Ownership; readonly label: string | null }
  /** @property actor the reader of the answer: names of users are for actors who may view them */
  | { readonly is: 'grants'; readonly gains: Gains; readonly actor: Actor }
  | {
      readonly is: 'left'
      readonly rows: readonly LabelledRow[]
      readonly acknowledged: number | null
      readonly actor: Actor
    }
  /** The database refused a write. @property count rows that the statement wrote */
  | { readonly is: 'broken'; readonly effect: Effect; readonly count: number; readonly rule: BrokenRule }
  | { readonly is: 'stated'; readonly reason: Reason; readonly text: string; readonly hint?: string }

export type BrokenRule = 'unique' | 'reference' | 'check'

/** The reason of each kind of objection, and its code in `errors` of the answer where that is not `denied`. */
const meanings = {
  denied: ['permission_denied'],
  unseen: ['permission_denied'],
  claimed: ['permission_denied'],
  unstacked: ['permission_denied'],
  gone: ['permission_denied'],
  missing: ['not_found', 'no_such_row'],
  exists: ['precondition_failed', 'exists'],
  changed: ['precondition_failed', 'changed'],
  followed: ['precondition_failed'],
  fewer: ['precondition_failed'],
  invalid: ['invalid'],
  both: ['conflict', 'invalid_rename'],
  owned: ['conflict', 'other_owner'],
  grants: ['conflict'],
  left: ['conflict'],
  stacked: ['conflict', 'other_stack'],
  broken: ['conflict'],
} as const satisfies Readonly<Record<Exclude<Objection['is'], 'stated'>, readonly [Reason, ErrorCode?]>>

const brokenCodes = { unique: 'taken', reference: 'in_use', check: 'invalid_value' } as const

export const reasonOf = (objection: Objection): Reason =>
  objection.is === 'stated' ? objection.reason : meanings[objection.is][0]

/** The entry that an objection is about. One about the whole document, or one of many rows, has none. */
export function stepOf(objection: Objection): Step | undefined {
  if (objection.is === 'broken' && objection.count > 1) return undefined
  return 'effect' in objection ? objection.effect.step : 'step' in objection ? objection.step : undefined
}

/** The code of an objection to an entry, in `errors` of the answer. */
export function codeOf(objection: Objection): ErrorCode {
  if (objection.is === 'broken') return brokenCodes[objection.rule]
  return (objection.is !== 'stated' && meanings[objection.is][1]) || 'denied'
}
