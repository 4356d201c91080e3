import type { Pipeline } from './pipeline.ts'

/**
 * Permission names, and the check whether an actor has one. Provider kinds add their resources at start (`oauth2provider`, ...),
 * so the registry has the closed list of names.
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
  'record_sign_in',
  'rename_group',
  'rename_user',
  'roll_back_run',
  'view_audit',
  'view_queue',
  'view_run',
  'view_token_key',
] as const

/** A permission's name: one of the special ones, `<action>_<resource>` of a registered model, or one to read its secrets. */
export type Permission = (typeof specialPermissions)[number] | `${Action}_${string}` | `read_${string}_secrets`

/** The permission to read the secrets of rows, on the routes for consumers alone: no other permission implies it. */
export const toReadSecrets = (resource: string) => `read_${resource}_secrets` as const

export const isToReadSecrets = (right: Right): boolean => right.startsWith('read_')

/** The four permissions that every model has. */
export const permissionsOf = (resource: string): Permission[] => crud.map((action) => `${action}_${resource}` as const)

/**
 * A permission for all rows of its model (`change_application`), or for those of one owner
 * (`change_application@team-one`; docs/adr/0058-roles-are-bound-to-owners.md).
 */
export type Right = string

/** The permissions whose rows have an owner. `role_rights` in SQL says the same. */
const ofOwners = /^((view|add|change|delete)_(application|.*provider)|read_.*provider_secrets)$/s

/** The resources whose rows have an owner: the registry compares this with the models. */
export const hasOwner = (resource: string): boolean => ofOwners.test(`view_${resource}`)

/** A right without its owner. */
export const permissionOf = (right: Right): string => right.split('@', 1).join()

/** The owner to which a right is bound; null for one that holds for all. */
export const ownerOf = (right: Right): string | null => {
  const at = right.indexOf('@')
  return at < 0 ? null : right.slice(at + 1)
}

/**
 * The rights that a role gives, or that a token carries which is bound to owners: as `role_rights` in SQL.
 *
 * @param owners bind the permissions whose rows have an owner; none: all owners
 */
export const rightsOf = (permissions: Iterable<string>, owners: readonly string[]): Right[] =>
  [...permissions].flatMap((permission) =>
    owners.length === 0 || !ofOwners.test(permission) ? permission : owners.map((owner) => `${permission}@${owner}`),
  )

/** Whether rights include another one: a permission for all owners includes it for each. */
export const covers = (rights: ReadonlySet<Right>, right: Right): boolean =>
  rights.has(right) || rights.has(permissionOf(right))

/** The rights that two sets have in common. */
export const meet = (one: ReadonlySet<Right>, other: ReadonlySet<Right>): Set<Right> =>
  new Set([...[...one].filter((right) => covers(other, right)), ...[...other].filter((right) => covers(one, right))])

/** A token that is bound to a stack carries this beside its rights. */
export const rightOfStack = (stack: string): Right => `stack:${stack}`

/** Whether it is no permission, but names a stack. */
export const isOfStack = (right: Right): boolean => right.startsWith('stack:')

/** The stacks in whose documents alone the tokens of an actor, and of the submitters of its document, write; null: in any. */
export function stacksOf({
  ceiling,
  authors = [],
}: Pick<ActorKeys, 'ceiling'> & {
  readonly authors?: readonly Pick<ActorKeys, 'ceiling'>[] | undefined
}): ReadonlySet<string> | null {
  const bound = [ceiling, ...authors.map((author) => author.ceiling)]
    .map((rights) => [...(rights ?? [])].filter(isOfStack))
    .filter(({ length }) => length > 0)
  if (bound.length === 0) return null
  const [first = new Set<string>(), ...others] = bound.map(
    (rights) => new Set(rights.map((each) => each.slice('stack:'.length))),
  )
  return others.reduce((one, other) => one.intersection(other), first)
}

/** Whether the token of an actor is bound to stacks, and this is none of them. @param stack null: none at all */
export function isOutOfBonds(actor: Parameters<typeof stacksOf>[0], stack: string | null): boolean {
  const stacks = stacksOf(actor)
  return stacks !== null && (stack === null || !stacks.has(stack))
}

/**
 * Whether a token with these rights may do no more than one with that ceiling. A right gives, and a bond to stacks takes: without
 * one, it writes anywhere.
 */
export const isWithin = (rights: ReadonlySet<Right>, ceiling: ReadonlySet<Right>): boolean =>
  [...rights].every((right) => covers(ceiling, right)) &&
  (stacksOf({ ceiling }) === null || stacksOf({ ceiling: rights }) !== null)

/** The name of a right in messages. */
export const rightName = (right: Right): string => {
  const owner = ownerOf(right)
  return `${permissionOf(right)}${owner === null ? '' : ` for owner ${JSON.stringify(owner)}`}`
}

/** An effective user by key, the real user behind it while impersonating, and what limits the token. */
export type ActorKeys = {
  readonly pk: number | null
  readonly impersonator?: { readonly pk: number | null } | undefined
  /** The only rights that the token of the request carries. */
  readonly ceiling?: ReadonlySet<Right> | undefined
  /** The job that sends the request, with a token that was exchanged. */
  readonly pipeline?: Pipeline | undefined
  /** Set by routes of tokens alone: they write the token of the request, or a deleted one (`apply/token-key.ts`). */
  readonly renews?: true | undefined
  /** The submitters of a stored document that the actor applies. The actor holds only what all of them hold. */
  readonly authors?: readonly ActorKeys[] | undefined
}

/** The effective user with its current rights, or the service itself (`pk` null) at bootstrap. */
export type Actor = ActorKeys & {
  readonly username: string
  readonly isSuperuser: boolean
  /** Those of the ceiling at most. */
  readonly permissions: ReadonlySet<Right>
  readonly impersonator?: Actor
  /** The token of the request, where it has a ceiling. */
  readonly tokenPk?: string
}

/**
 * Whether a stored document was submitted by another user, or with a token of the caller with another ceiling. The rights of a
 * user over own rows do not hold for it.
 */
export const isOfOthers = ({ pk, impersonator, ceiling, authors = [] }: Actor): boolean =>
  authors.some((author) => {
    const isUser = author.pk === pk && author.impersonator?.pk === impersonator?.pk
    return (
      !isUser || (author.ceiling !== undefined && author.ceiling.symmetricDifference(ceiling ?? new Set()).size > 0)
    )
  })

/** The service itself, at its first start. */
export const system: Actor = { pk: null, username: 'gatewright', isSuperuser: true, permissions: new Set() }

/** Whether the actor has a permission for all rows of its model. */
export const allows = (actor: Actor, permission: Permission): boolean =>
  actor.isSuperuser || actor.permissions.has(permission)

/** Whether the actor may act on the queue, which is that of all stacks. */
export const mayManageQueue = (actor: Actor): boolean => allows(actor, 'manage_queue') && stacksOf(actor) === null

/** Whether the actor may see a user's name: those who may view users may, and the user itself. `pk` is null for the service. */
export const mayNameUser = (actor: Actor, pk: number | null): boolean =>
  allows(actor, 'view_user') || (pk !== null && pk === actor.pk)

/** Whether the actor may write anything beside own tokens, which every user may write. */
export const mayWriteAnything = ({ isSuperuser, permissions }: Actor): boolean =>
  isSuperuser || [...permissions].some((permission) => /^(add|change|delete|record)_/.test(permission))

/** Whether the actor has a permission for the rows of an owner. @param owner null for rows without one */
export const allowsFor = (actor: Actor, permission: Permission, owner: string | null): boolean =>
  allows(actor, permission) || (owner !== null && actor.permissions.has(`${permission}@${owner}`))

/** Whether the actor may read the secrets of a row. They outlast an impersonation: the real user has to have the right, too. */
export const mayReadSecrets = (actor: Actor, resource: string, owner: string | null): boolean =>
  [actor, actor.impersonator ?? actor].every((each) => allowsFor(each, toReadSecrets(resource), owner))

/** Whether the actor has a permission for the rows of at least one owner. */
export const allowsSome = (actor: Actor, permission: Permission): boolean =>
  allows(actor, permission) || ownersFor(actor, permission).length > 0

/** Whether the actor has a permission for a row. @param owner its label, in a model that has labels */
export const allowsRow = (
  actor: Actor,
  permission: Permission,
  { isLabelled }: { readonly isLabelled?: boolean },
  owner: unknown,
): boolean =>
  isLabelled === true
    ? allowsFor(actor, permission, typeof owner === 'string' ? owner : null)
    : allowsSome(actor, permission)

/** The owners to which a permission of the actor is bound, sorted. */
export const ownersFor = (actor: Actor, permission: Permission): string[] =>
  [...actor.permissions]
    .filter((right) => right.startsWith(`${permission}@`))
    .flatMap((right) => ownerOf(right) ?? [])
    .sort()

/** The owners whose objects a permission of the actor is for; null: all. */
export const ownersWith = (actor: Actor, permission: Permission): string[] | null =>
  allows(actor, permission) ? null : ownersFor(actor, permission)

/** Whether any right of the actor is bound to an owner. */
export const isBound = (actor: Actor): boolean =>
  !actor.isSuperuser && [...actor.permissions].some((right) => ownerOf(right) !== null)

/**
 * The owners whose objects the actor may know of, in answers about something else that show them; null: all owners. An actor
 * whose rights are bound needs this permission. Not every object has an owner.
 */
export const ownersShown = (actor: Actor, permission: Permission = 'view_application'): string[] | null =>
  isBound(actor) ? ownersWith(actor, permission) : null

/** Whether the actor sees the runs of all users and owners, and what does not record its owner: refusals. */
export const seesAllRuns = (actor: Actor): boolean => allows(actor, 'view_run') && ownersShown(actor) === null

/** Whether one user may impersonate another. Only a superuser may impersonate a superuser. */
export const mayActAs = (real: Actor, effective: Actor): boolean =>
  allows(real, 'impersonate') && (real.isSuperuser || !effective.isSuperuser)

/** What a route requires: nothing (`anyone`), a valid token (`authenticated`), or one of the named permissions. */
export type Access = 'anyone' | 'authenticated' | 'superuser' | Permission | readonly Permission[]
