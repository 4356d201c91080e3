import type { Report, Values } from '../models/define.ts'
import type { Permission } from '../permissions.ts'
import type { Rights, RightsFacts, RightsQuestion } from './rights.ts'
import { keysOf } from './rows.ts'

/** What each model says of rights. Models that are not here say nothing of them. */

/** What an entry does to its row, and who has it done. */
export type Turn = {
  readonly action: 'create' | 'update' | 'delete'
  readonly before: Values | undefined
  /** The row as it will be; a faulty member is undefined, one that is not known yet a symbol. */
  readonly after: Values
  readonly pk: string | number | undefined
  readonly caller: {
    readonly pk: number | null
    readonly isSuperuser: boolean
    readonly isImpersonating: boolean
  }
  readonly tokenMaxDays: number
}

/** Why the caller may not; null: nothing is in the way. */
export type Obstacle = string | null

export type Judge = {
  readonly facts: RightsFacts
  /** Whether the caller holds all that `rights` are. @param who has them, such as `its new parent` */
  within(rights: Rights, who: string): Obstacle
  may(permission: Permission): Obstacle
  superuser(what: string): Obstacle
}

/** `instead` is for members that the caller may not set: what else is wrong with them is not his to know. */
export type Tell = { readonly report: Report; readonly instead: Report }

export type Rule = {
  /** Members whose change decides what anybody may do. */
  readonly decides: readonly string[]
  /** Members by which an active superuser could be lost. */
  readonly takesAway: readonly string[]
  /** What must be known; null when nothing of this turn is about rights. */
  asks(turn: Turn): RightsQuestion | null
  obstacles(turn: Turn, judge: Judge, tell: Tell): Iterable<Obstacle>
}

const uuids = (value: unknown): string[] => keysOf(value).filter((key) => typeof key === 'string')
const numbers = (value: unknown): number[] => keysOf(value).filter((key) => typeof key === 'number')

function added<Key>(keys: (value: unknown) => Key[], name: string, { before, after }: Turn): Key[] {
  const there = new Set(keys(before?.[name]))
  return keys(after[name]).filter((key) => !there.has(key))
}

const differs = (name: string, { before, after }: Turn): boolean => before?.[name] !== after[name]

/** What a turn does to a group, as links in the chain through which rights flow. */
function linksOf(turn: Turn) {
  const { before, after, action } = turn
  const [parentWas] = uuids(before?.parent)
  const [parentIs] = uuids(after.parent)
  const rolesWere = uuids(before?.roles)
  const rolesAre = new Set(uuids(after.roles))
  return {
    ...{ parentWas, parentIs },
    isMoved: action !== 'delete' && parentWas !== parentIs,
    isTurned: action !== 'delete' && (before?.is_superuser === true) !== (after.is_superuser === true),
    roles: added(uuids, 'roles', turn),
    losesRoles: rolesWere.some((role) => !rolesAre.has(role)),
    users: added(numbers, 'users', turn),
  }
}

const group: Rule = {
  decides: ['is_superuser', 'parent', 'users', 'roles'],
  takesAway: ['is_superuser', 'parent', 'users'],
  asks(turn) {
    const { action, pk, after, caller } = turn
    const own = uuids(pk)
    const { parentWas, parentIs, isMoved, isTurned, roles, losesRoles, users } = linksOf(turn)
    const [below] = own
    if (caller.isSuperuser) return isMoved && below !== undefined ? { below, parent: parentIs } : null
    if (action === 'delete') return { groups: own }
    if (!isMoved && !isTurned && roles.length === 0 && !losesRoles && users.length === 0) return null
    const parents = [parentWas, parentIs].filter((key) => key !== undefined)
    return { groups: parents, roles: uuids(after.roles), below, parent: isMoved ? parentIs : undefined }
  },
  *obstacles(turn, { facts, may, within, superuser }, { report }) {
    const { action, pk, before, after } = turn
    if (action === 'delete') {
      if (facts.group(pk).superuser) yield may('disable_group_superuser')
      return
    }
    if (facts.isCircle) report(['parent'], 'Is this group, or stands below it: groups cannot form a circle.')
    const { parentWas, parentIs, isMoved, isTurned, roles, losesRoles, users } = linksOf(turn)
    const [from, to] = [facts.group(parentWas), facts.group(parentIs)]
    const isFlagged = after.is_superuser === true
    if ((isTurned && isFlagged) || (isMoved && to.superuser)) {
      yield may('enable_group_superuser')
      if (facts.hasMembers) yield superuser('make superusers of its members')
    }
    if ((isTurned && before?.is_superuser === true) || (isMoved && from.superuser && !to.superuser))
      yield may('disable_group_superuser')
    if (isMoved) yield within({ ...to, superuser: false }, 'its new parent')
    if (roles.length > 0 || losesRoles) yield may('assign_role')
    for (const role of roles) yield within(facts.role(role), 'the role')
    if (users.length === 0) return
    yield may('add_user_to_group')
    yield within({ superuser: isFlagged || to.superuser, permissions: to.permissions }, 'the group')
    for (const role of uuids(after.roles)) yield within(facts.role(role), 'the group')
  },
}

/** By these somebody is who he is: whoever may change them could become him, or let him in again. */
const identity = ['username', 'email', 'is_active'] as const

const user: Rule = {
  decides: ['is_active', 'groups'],
  takesAway: ['is_active', 'groups'],
  asks(turn) {
    const { action, pk, caller } = turn
    const groups = added(uuids, 'groups', turn)
    const isOther = action === 'delete' || (action === 'update' && identity.some((name) => differs(name, turn)))
    if (caller.isSuperuser || (groups.length === 0 && !isOther)) return null
    return { groups, users: numbers(pk) }
  },
  *obstacles(turn, { facts, may, within }) {
    const { action, pk } = turn
    if (action === 'delete' || (action === 'update' && identity.some((name) => differs(name, turn))))
      yield within(facts.user(pk), 'that user')
    const groups = added(uuids, 'groups', turn)
    if (groups.length > 0) yield may('add_user_to_group')
    for (const each of groups) yield within(facts.group(each), 'the group')
  },
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []

const role: Rule = {
  decides: ['permissions'],
  takesAway: [],
  asks: (turn) => (turn.caller.isSuperuser || added(texts, 'permissions', turn).length === 0 ? null : {}),
  *obstacles(turn, { may, within }) {
    // What is added to a role is handed to all who have it.
    if (turn.action === 'update') yield may('assign_role')
    yield within({ superuser: false, permissions: added(texts, 'permissions', turn) }, 'the role')
  },
}

const dayMs = 86_400_000
const powers = ['intent', 'expires', 'expiring', 'managed'] as const

const token: Rule = {
  decides: [],
  takesAway: [],
  asks(turn) {
    const { action, after, caller } = turn
    if (caller.isSuperuser || action === 'delete' || !powers.some((name) => differs(name, turn))) return null
    return { users: numbers(after.user) }
  },
  *obstacles(turn, { facts, within, superuser }, { report, instead }) {
    const { after, caller, tokenMaxDays } = turn
    const { intent, user: owner, expires, expiring, managed } = after
    if (owner !== caller.pk || caller.isImpersonating) yield within(facts.user(owner), 'its user')
    if (differs('intent', turn) && (intent === 'verification' || intent === 'recovery'))
      yield superuser(`make it a ${intent} token`)
    if (differs('expiring', turn) && expiring === false) yield superuser('make a token that does not expire')
    if (differs('managed', turn) && (managed !== null || turn.action === 'update'))
      instead(['managed'], 'Only a superuser may set this member.')
    const latest = facts.now.getTime() + tokenMaxDays * dayMs
    if (differs('expires', turn) && typeof expires === 'string' && Date.parse(expires) > latest)
      report(['expires'], `Must be at most ${tokenMaxDays} days ahead.`)
  },
}

/** Whoever knows its key passes for its user; whoever takes it away can put another in its place. */
const device: Rule = {
  decides: [],
  takesAway: [],
  asks({ before, after, caller }) {
    const owners = [...numbers(before?.user), ...numbers(after.user)]
    const isOwn = !caller.isImpersonating && owners.every((owner) => owner === caller.pk)
    return caller.isSuperuser || isOwn ? null : { users: owners }
  },
  *obstacles({ before, after }, { facts, within }) {
    for (const owner of [...numbers(before?.user), ...numbers(after.user)]) yield within(facts.user(owner), 'its user')
  },
}

export const rules: Readonly<Record<string, Rule>> = {
  'service_core.group': group,
  'service_core.user': user,
  'service_rbac.role': role,
  'service_core.token': token,
  'service_stages_totp.totpdevice': device,
}
