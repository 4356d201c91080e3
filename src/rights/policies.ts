import type { Report, Values } from '../models/define.ts'
import type { Permission } from '../permissions.ts'
import { keysOf } from '../plan/storage.ts'
import type { Rights, RightsFacts, RightsQuestion } from './rights.ts'

/** The policy of each model whose rows grant rights. The other models have none. */

/** What an entry does to its row, and for which caller. */
export type Change = {
  readonly action: 'create' | 'update' | 'delete'
  readonly before: Values | undefined
  /** The row as it will be. A field with errors is undefined; one that is not known yet is a symbol. */
  readonly after: Values
  readonly pk: string | number | undefined
  readonly caller: {
    readonly pk: number | null
    readonly isSuperuser: boolean
    readonly isImpersonating: boolean
  }
  readonly tokenMaxDays: number
}

/** Why the caller may not do it; null when the caller may. */
export type Denial = string | null

/** What the caller holds, compared with what a change needs. */
export type Holdings = {
  readonly facts: RightsFacts
  /** Denies unless the caller holds all of `rights`. @param who has them, such as `its new parent` */
  holdsAll(rights: Rights, who: string): Denial
  may(permission: Permission): Denial
  superuser(what: string): Denial
}

/** `instead` is for fields that the caller may not set: it replaces their other errors, which the caller may not know. */
export type Reporter = { readonly report: Report; readonly instead: Report }

export type Policy = {
  /** Fields that grant or revoke rights. */
  readonly decides: readonly string[]
  /** Fields whose change could remove the last active superuser. */
  readonly takesAway: readonly string[]
  /** What must be read to decide; null when the change does not concern rights. */
  asks(change: Change): RightsQuestion | null
  denials(change: Change, holdings: Holdings, reporter: Reporter): Iterable<Denial>
}

const uuids = (value: unknown): string[] => keysOf(value).filter((key) => typeof key === 'string')
const numbers = (value: unknown): number[] => keysOf(value).filter((key) => typeof key === 'number')

function added<Key>(keys: (value: unknown) => Key[], name: string, { before, after }: Change): Key[] {
  const there = new Set(keys(before?.[name]))
  return keys(after[name]).filter((key) => !there.has(key))
}

const differs = (name: string, { before, after }: Change): boolean => before?.[name] !== after[name]

/** How a change alters the group's links: rights are inherited through parent, roles and members. */
function linksOf(change: Change) {
  const { before, after, action } = change
  const [parentWas] = uuids(before?.parent)
  const [parentIs] = uuids(after.parent)
  const rolesWere = uuids(before?.roles)
  const rolesAre = new Set(uuids(after.roles))
  return {
    ...{ parentWas, parentIs },
    isMoved: action !== 'delete' && parentWas !== parentIs,
    isFlagChanged: action !== 'delete' && (before?.is_superuser === true) !== (after.is_superuser === true),
    roles: added(uuids, 'roles', change),
    losesRoles: rolesWere.some((role) => !rolesAre.has(role)),
    users: added(numbers, 'users', change),
  }
}

const group: Policy = {
  decides: ['is_superuser', 'parent', 'users', 'roles'],
  takesAway: ['is_superuser', 'parent', 'users'],
  asks(change) {
    const { action, pk, after, caller } = change
    const own = uuids(pk)
    const { parentWas, parentIs, isMoved, isFlagChanged, roles, losesRoles, users } = linksOf(change)
    const [below] = own
    if (caller.isSuperuser) return isMoved && below !== undefined ? { below, parent: parentIs } : null
    if (action === 'delete') return { groups: own }
    if (!isMoved && !isFlagChanged && roles.length === 0 && !losesRoles && users.length === 0) return null
    const parents = [parentWas, parentIs].filter((key) => key !== undefined)
    return { groups: parents, roles: uuids(after.roles), below, parent: isMoved ? parentIs : undefined }
  },
  *denials(change, { facts, may, holdsAll, superuser }, { report }) {
    const { action, pk, before, after } = change
    if (action === 'delete') {
      if (facts.group(pk).superuser) yield may('disable_group_superuser')
      return
    }
    if (facts.isCircle) report(['parent'], 'Is this group, or stands below it: groups cannot form a circle.')
    const { parentWas, parentIs, isMoved, isFlagChanged, roles, losesRoles, users } = linksOf(change)
    const [from, to] = [facts.group(parentWas), facts.group(parentIs)]
    const isFlagged = after.is_superuser === true
    if ((isFlagChanged && isFlagged) || (isMoved && to.superuser)) {
      yield may('enable_group_superuser')
      if (facts.hasMembers) yield superuser('make superusers of its members')
    }
    if ((isFlagChanged && before?.is_superuser === true) || (isMoved && from.superuser && !to.superuser))
      yield may('disable_group_superuser')
    if (isMoved) yield holdsAll({ ...to, superuser: false }, 'its new parent')
    if (roles.length > 0 || losesRoles) yield may('assign_role')
    for (const role of roles) yield holdsAll(facts.role(role), 'the role')
    if (users.length === 0) return
    yield may('add_user_to_group')
    yield holdsAll({ superuser: isFlagged || to.superuser, permissions: to.permissions }, 'the group')
    for (const role of uuids(after.roles)) yield holdsAll(facts.role(role), 'the group')
  },
}

/** A caller who may change these could log in as the user, or reactivate the user. */
const identity = ['username', 'email', 'is_active'] as const

const user: Policy = {
  decides: ['is_active', 'groups'],
  takesAway: ['is_active', 'groups'],
  asks(change) {
    const { action, pk, caller } = change
    const groups = added(uuids, 'groups', change)
    const isOther = action === 'delete' || (action === 'update' && identity.some((name) => differs(name, change)))
    if (caller.isSuperuser || (groups.length === 0 && !isOther)) return null
    return { groups, users: numbers(pk) }
  },
  *denials(change, { facts, may, holdsAll }) {
    const { action, pk } = change
    if (action === 'delete' || (action === 'update' && identity.some((name) => differs(name, change))))
      yield holdsAll(facts.user(pk), 'that user')
    const groups = added(uuids, 'groups', change)
    if (groups.length > 0) yield may('add_user_to_group')
    for (const each of groups) yield holdsAll(facts.group(each), 'the group')
  },
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

const role: Policy = {
  decides: ['permissions'],
  takesAway: [],
  asks: (change) => (change.caller.isSuperuser || added(texts, 'permissions', change).length === 0 ? null : {}),
  *denials(change, { may, holdsAll }) {
    // A permission that is added to a role is granted to all users with that role.
    if (change.action === 'update') yield may('assign_role')
    yield holdsAll({ superuser: false, permissions: added(texts, 'permissions', change) }, 'the role')
  },
}

const dayMs = 86_400_000
const grantingFields = ['intent', 'expires', 'expiring', 'managed'] as const

const token: Policy = {
  decides: [],
  takesAway: [],
  asks(change) {
    const { action, after, caller } = change
    if (caller.isSuperuser || action === 'delete' || !grantingFields.some((name) => differs(name, change))) return null
    return { users: numbers(after.user) }
  },
  *denials(change, { facts, holdsAll, superuser }, { report, instead }) {
    const { after, caller, tokenMaxDays } = change
    const { intent, user: owner, expires, expiring, managed } = after
    if (owner !== caller.pk || caller.isImpersonating) yield holdsAll(facts.user(owner), 'its user')
    if (differs('intent', change) && (intent === 'verification' || intent === 'recovery'))
      yield superuser(`make it a ${intent} token`)
    if (differs('expiring', change) && expiring === false) yield superuser('make a token that does not expire')
    if (differs('managed', change) && (managed !== null || change.action === 'update'))
      instead(['managed'], 'Only a superuser may set this field.')
    const latest = facts.now.getTime() + tokenMaxDays * dayMs
    if (differs('expires', change) && typeof expires === 'string' && Date.parse(expires) > latest)
      report(['expires'], `Must be at most ${tokenMaxDays} days from now.`)
  },
}

/** A caller who knows the key can log in as its user, and one who deletes the device can create another. */
const device: Policy = {
  decides: [],
  takesAway: [],
  asks({ before, after, caller }) {
    const owners = [...numbers(before?.user), ...numbers(after.user)]
    const isOwn = !caller.isImpersonating && owners.every((owner) => owner === caller.pk)
    return caller.isSuperuser || isOwn ? null : { users: owners }
  },
  *denials({ before, after }, { facts, holdsAll }) {
    for (const owner of [...numbers(before?.user), ...numbers(after.user)])
      yield holdsAll(facts.user(owner), 'its user')
  },
}

export const policies: Readonly<Record<string, Policy>> = {
  'service_core.group': group,
  'service_core.user': user,
  'service_rbac.role': role,
  'service_core.token': token,
  'service_stages_totp.totpdevice': device,
}
