import { Problem } from '../errors.ts'
import { denied } from '../http/access.ts'
import type { ProviderModel } from '../models/provider.ts'
import { type Access, type Actor, allows } from '../permissions.ts'
import { mayWrite } from '../plan/submission.ts'

/** What a caller needs before a document is judged entry by entry, whichever route brings it. */

/** Of the routes, by what they take. */
export const applyAccess = {
  blueprint: 'authenticated',
  submission: ['add_application', 'change_application'],
} as const satisfies Readonly<Record<string, Access>>

/** @throws {Problem} `permission_denied` for a caller who may write no provider of this kind */
export function requireKind(actor: Actor, kind: ProviderModel): void {
  if (!mayWrite(actor, kind)) throw denied([`add_${kind.resource}`, `change_${kind.resource}`])
}

/** Who may apply a former run again, of those who may see it: its submitter, and callers with `roll_back_run`. */
export const mayRollBack = (actor: Actor, submitter: number | null): boolean =>
  allows(actor, 'roll_back_run') || (actor.pk !== null && actor.pk === submitter)

/**
 * Of a former run. Those who may see it know that it is there.
 *
 * @throws {Problem} `permission_denied`
 */
export function requireSubmitter(actor: Actor, submitter: number | null): void {
  if (mayRollBack(actor, submitter)) return
  throw new Problem('permission_denied', "To apply another user's run again you need the permission roll_back_run.")
}
