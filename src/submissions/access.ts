import { denied } from '../http/access.ts'
import type { ProviderModel } from '../models/provider.ts'
import { type Access, type Actor, allows } from '../permissions.ts'
import { mayWrite } from '../plan/submission.ts'

/** The permissions that a caller needs before a document is judged entry by entry, on any route. */

/** The permissions of the routes, by the kind of their documents. */
export const applyAccess = {
  blueprint: 'authenticated',
  submission: ['add_application', 'change_application'],
} as const satisfies Readonly<Record<string, Access>>

/** @throws {Problem} `permission_denied` for a caller who may write no provider of this kind */
export function requireKind(actor: Actor, kind: ProviderModel): void {
  if (!mayWrite(actor, kind)) throw denied([`add_${kind.resource}`, `change_${kind.resource}`])
}

/** Whether a caller who may view a former run may apply it again: its submitter and callers with `roll_back_run` may. */
export const mayRollBack = (actor: Actor, submitter: number | null): boolean =>
  allows(actor, 'roll_back_run') || (actor.pk !== null && actor.pk === submitter)
