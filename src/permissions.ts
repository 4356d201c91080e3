/**
 * Who may do what, as data: resources and their actions, the permission names made of them, and one pure question.
 * Provider kinds add their own resources at start (`oauth2provider`, ...), so the closed list of names is the registry's.
 */

const crud = ['view', 'add', 'change', 'delete'] as const
export type Action = (typeof crud)[number]

/** Beyond view, add, change and delete. */
export const specialPermissions = [
  'add_user_to_group',
  'assign_role',
  'disable_group_superuser',
  'enable_group_superuser',
  'impersonate',
  'manage_queue',
  'view_queue',
  'view_token_key',
] as const

/** A permission's name: one of the special ones, or `<action>_<resource>` of a registered model. */
export type Permission = (typeof specialPermissions)[number] | `${Action}_${string}`

/** The four permissions that every model has. */
export const permissionsOf = (resource: string): Permission[] => crud.map((action) => `${action}_${resource}` as const)

/** Whoever acts: a user with what he holds now, or the service itself (`pk` null) while it bootstraps. */
export type Actor = {
  readonly pk: number | null
  readonly username: string
  readonly isSuperuser: boolean
  readonly permissions: ReadonlySet<string>
  /** Who really acts, while he does so as somebody else. */
  readonly impersonator?: Actor
}

/** The service acting for itself, at its first start. */
export const system: Actor = { pk: null, username: 'gatewright', isSuperuser: true, permissions: new Set() }

export const allows = (actor: Actor, permission: Permission): boolean =>
  actor.isSuperuser || actor.permissions.has(permission)

/** Whether somebody may act as another: as a superuser only a superuser may. */
export const mayActAs = (real: Actor, effective: Actor): boolean =>
  allows(real, 'impersonate') && (real.isSuperuser || !effective.isSuperuser)

/** What a route asks of its caller: `anyone` needs no token, `authenticated` any valid one, else one of the named. */
export type Access = 'anyone' | 'authenticated' | 'superuser' | Permission | readonly Permission[]
