/**
 * Permission names, and the question whether an actor has one. Provider kinds add their resources at start
 * (`oauth2provider`, ...), so the registry has the closed list of names.
 */

const crud = ['view', 'add', 'change', 'delete'] as const
export type Action = (typeof crud)[number]

/** Permissions beside view, add, change and delete. */
export const specialPermissions = [
  'add_user_to_group',
  'assign_role',
  'disable_group_superuser',
  'enable_group_superuser',
  'impersonate',
  'manage_queue',
  'rename_user',
  'view_queue',
  'view_run',
  'view_token_key',
] as const

/** A permission's name: one of the special ones, or `<action>_<resource>` of a registered model. */
export type Permission = (typeof specialPermissions)[number] | `${Action}_${string}`

/** The four permissions that every model has. */
export const permissionsOf = (resource: string): Permission[] => crud.map((action) => `${action}_${resource}` as const)

/** The effective user with its current permissions, or the service itself (`pk` null) at bootstrap. */
export type Actor = {
  readonly pk: number | null
  readonly username: string
  readonly isSuperuser: boolean
  readonly permissions: ReadonlySet<string>
  /** The real user, while impersonating. */
  readonly impersonator?: Actor
  /** The only permissions that the token of the request carries. `permissions` are among them. */
  readonly ceiling?: ReadonlySet<string>
}

/** The service itself, at its first start. */
export const system: Actor = { pk: null, username: 'gatewright', isSuperuser: true, permissions: new Set() }

export const allows = (actor: Actor, permission: Permission): boolean =>
  actor.isSuperuser || actor.permissions.has(permission)

/** Whether the actor may write anything beside what every user may: own tokens. */
export const mayWriteAnything = ({ isSuperuser, permissions }: Actor): boolean =>
  isSuperuser || [...permissions].some((permission) => /^(add|change|delete)_/.test(permission))

/** Whether one user may impersonate another. Only a superuser may impersonate a superuser. */
export const mayActAs = (real: Actor, effective: Actor): boolean =>
  allows(real, 'impersonate') && (real.isSuperuser || !effective.isSuperuser)

/** What a route requires: nothing (`anyone`), a valid token (`authenticated`), or one of the named permissions. */
export type Access = 'anyone' | 'authenticated' | 'superuser' | Permission | readonly Permission[]
