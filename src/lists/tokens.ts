import { type Actor, allows } from '../permissions.ts'

/** The owners whose tokens a caller sees. */
export const ownTokens = { field: 'userPk', unless: 'view_token' } as const

/** @returns the key of the only user whose tokens the caller sees; undefined: all */
export const tokenOwners = (actor: Actor): number | null | undefined =>
  allows(actor, ownTokens.unless) ? undefined : actor.pk
