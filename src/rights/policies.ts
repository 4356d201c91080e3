import { isDeepStrictEqual } from 'node:util'
import type { Report, Values } from '../models/define.ts'
import { rulesOf, trustFields } from '../models/trusted-issuer.ts'
import { covers, type Permission, type Right, rightsOf } from '../permissions.ts'
import { keysOf } from '../plan/storage.ts'
import type { Rights, RightsFacts, RightsQuestion } from './rights.ts'

/** The policy of each model whose rows grant rights. The other models have none. */

/** The change that an entry makes to its row, and its caller. */
export type RightsChange = {
  readonly action: 'create' | 'update' | 'delete'
  readonly before: Values | undefined
  /** The row as it will be. A field with errors is undefined; one that is not known yet is a symbol. */
  readonly after: Values
  readonly pk: string | number | undefined
  readonly caller: {
    /** The caller's key; null while impersonating, or with a token that another user made: it may not carry all rights of its user. */
    readonly self: number | null
    readonly isSuperuser: boolean
    /** Whether the row is the token of the request, or no more than that. */
    readonly renews: boolean
    /** The stacks to which the token of the request is bound; null: to none. */
    readonly stacks: ReadonlySet<string> | null
    /** The user of a job; null: the caller is none. */
    readonly ofJob: { readonly pk: number | null; readonly username: string } | null
  }
  readonly tokenMaxDays: number
  /** Fields that count as changed: the caller may not view the row, and a denial would show its values. */
  readonly assumed: readonly string[]
}

/** Why the caller may not do it; null when the caller may. */
export type Denial = string | null

/** Compares the rights of the caller with those that a change needs. */
export type Holdings = {
  readonly facts: RightsFacts
  /** Denies unless the caller holds all of `rights`. @param who the holder of these rights, such as `its new parent` */
  holdsAll(rights: Rights, who: string): Denial
  may(permission: Permission): Denial
  superuser(what: string): Denial
}

/** `instead` is for fields that the caller may not set: it replaces their other errors, which the caller may not know. */
export type Reporter = { readonly report: Report; readonly instead: Report }

export type Policy = {
  /** Fields that grant or revoke rights. */
  readonly decides: readonly string[]
  /** Documents that give rights find its rows by `name`. */
  readonly isNamed?: true
  /** Fields whose change could remove the last superuser who can authenticate. */
  readonly takesAway: readonly string[]
  /** Whether a change of those fields ends the row's life earlier: then it counts as gone. Absent: each change may. */
  readonly ends?: (change: RightsChange) => boolean
  /** The facts to read for the decision; null when the change does not concern rights. */
  asks(change: RightsChange): RightsQuestion | null
  denials(change: RightsChange, holdings: Holdings, reporter: Reporter): Iterable<Denial>
}

/** One text or number, several or none, as a list. */
export const texts = (value: unknown): string[] => keysOf(value).filter((key) => typeof key === 'string')
export const numbers = (value: unknown): number[] => keysOf(value).filter((key) => typeof key === 'number')

/** A field before and after. One with errors counts as unchanged: the caller gets its errors. */
function sidesOf(name: string, { action, before, after }: RightsChange): { was: unknown; is: unknown } {
  const was = before?.[name]
  if (action === 'delete') return { was, is: undefined }
  return { was, is: after[name] === undefined ? was : after[name] }
}

/** Keys that a change adds to a field, and those that it removes. */
function movesOf<Key>(
  keys: (value: unknown) => Key[],
  name: string,
  change: RightsChange,
): { added: Key[]; removed: Key[] } {
  const { was, is } = sidesOf(name, change)
  // A field that was not sent is the same on both sides. Its keys are not compared: a group may have very many members.
  if (was === is) return { added: [], removed: [] }
  const [before, after] = [new Set(keys(was)), new Set(keys(is))]
  return { added: [...after.difference(before)], removed: [...before.difference(after)] }
}

const differs = (name: string, { before, after }: RightsChange): boolean => before?.[name] !== after[name]

/** Whether an update changes a field. One with errors counts as changed. */
const isChanged = (name: string, { action, before, after, assumed }: RightsChange): boolean =>
  action === 'update' && (assumed.includes(name) || !isDeepStrictEqual(before?.[name], after[name]))

/** Whether it changes one of these fields, or deletes the row: another row may take a name that is free then. */
const concerns = (change: RightsChange, fields: readonly string[]): boolean =>
  change.action === 'delete' || fields.some((name) => isChanged(name, change))

/** How a change alters the group's links: rights are inherited through parent, roles and members. */
function linksOf(change: RightsChange) {
  const [parent, flag] = [sidesOf('parent', change), sidesOf('is_superuser', change)]
  const [[parentWas], [parentIs]] = [texts(parent.was), texts(parent.is)]
  const [roles, users] = [movesOf(texts, 'roles', change), movesOf(numbers, 'users', change)]
  const isMoved = parentWas !== parentIs
  const isUnflagged = flag.was === true && flag.is !== true
  return {
    parentWas,
    parentIs,
    isMoved,
    roles,
    users,
    isUnflagged,
    isFlagged: flag.was !== true && flag.is === true,
    /** Whether it takes rights from the members that they have by the group. */
    takes: (isMoved && parentWas !== undefined) || isUnflagged || roles.removed.length > 0 || users.removed.length > 0,
  }
}

const group: Policy = {
  decides: ['is_superuser', 'parent', 'users', 'roles'],
  isNamed: true,
  takesAway: ['is_superuser', 'parent', 'users'],
  asks(change) {
    const { pk, after, caller } = change
    const own = texts(pk)
    const [below] = own
    const { parentWas, parentIs, isMoved, isFlagged, roles, users, takes } = linksOf(change)
    if (caller.isSuperuser) return isMoved && parentIs !== undefined ? { below, parent: parentIs } : null
    const isJoined = users.added.length > 0
    const isOwn = concerns(change, ['name', 'attributes'])
    if (!takes && !isMoved && !isFlagged && !isJoined && roles.added.length === 0 && !isOwn) return null
    const groups = [...own, parentWas, parentIs].filter((key) => key !== undefined)
    const concerned = { users: [...users.added, ...users.removed], below: isMoved ? below : undefined }
    return { groups, roles: texts(after.roles), below, parent: isMoved ? parentIs : undefined, concerned }
  },
  *denials(change, { facts, may, holdsAll, superuser }, { report }) {
    const { pk, after } = change
    if (facts.isCircle)
      report(['parent'], 'invalid_value', 'Is this group, or stands below it: groups cannot form a circle.')
    const { parentWas, parentIs, isMoved, isFlagged, isUnflagged, roles, users, takes } = linksOf(change)
    const [itself, from, to] = [facts.group(pk), facts.group(parentWas), facts.group(parentIs)]
    const { hasMembers } = facts
    if (isFlagged || (isMoved && to.superuser)) {
      yield may('enable_group_superuser')
      if (hasMembers) yield superuser('make superusers of its members')
    }
    if (isUnflagged || (isMoved && from.superuser)) {
      yield may('disable_group_superuser')
      if (hasMembers) yield superuser('take superuser rights from its members')
    }
    const isMovedByRoles = isMoved && (from.hasRoles || to.hasRoles)
    if (isMovedByRoles || roles.added.length > 0 || roles.removed.length > 0) yield may('assign_role')
    const isRegrouped = users.added.length > 0 || users.removed.length > 0 || (isMoved && hasMembers)
    if (isRegrouped) yield may('add_user_to_group')
    if (isMoved) yield holdsAll({ ...to, superuser: false }, 'its new parent')
    for (const role of roles.added) yield holdsAll(facts.role(role), 'the role')
    // A flag without members makes no superuser: its permission is enough, to set it and to unset it.
    if (takes) yield holdsAll({ ...itself, superuser: itself.superuser && hasMembers }, 'the group')
    // Other systems may authorise by the name of a group, and by its attributes.
    if (concerns(change, ['name', 'attributes'])) yield holdsAll(itself, 'the group')
    if (isChanged('name', change)) yield may('rename_group')
    if (users.added.length > 0) {
      yield holdsAll(
        { superuser: after.is_superuser === true || to.superuser, permissions: to.permissions },
        'the group',
      )
      for (const role of texts(after.roles)) yield holdsAll(facts.role(role), 'the group')
    }
    if (isRegrouped) yield holdsAll(facts.concerned, 'one of the users')
  },
}

/**
 * A caller who may change these could log in as the user, reactivate the user, pass another for the user, or choose what
 * the user sees. Other systems may authorise by path, type and attributes.
 */
const identity = ['username', 'name', 'email', 'is_active', 'attributes', 'path', 'type'] as const

const user: Policy = {
  decides: ['is_active', 'groups'],
  takesAway: ['is_active', 'groups'],
  asks(change) {
    const { pk, caller } = change
    const { added, removed } = movesOf(texts, 'groups', change)
    const groups = [...added, ...removed]
    const isFree = caller.isSuperuser && caller.ofJob === null
    if (isFree || (groups.length === 0 && !concerns(change, identity))) return null
    return { groups, users: numbers(pk) }
  },
  *denials(change, { facts, may, holdsAll }) {
    const { added, removed } = movesOf(texts, 'groups', change)
    const groups = [...added, ...removed]
    yield holdsAll(facts.user(change.pk), 'that user')
    // Documents give rights to users by name: a user who takes the name of another would be given them.
    if (isChanged('username', change)) yield may('rename_user')
    if (isChanged('username', change) && isOfJob(change, numbers(change.pk))) yield notOfOwnUser('other name')
    if (groups.length > 0) yield may('add_user_to_group')
    for (const each of groups) yield holdsAll(facts.group(each), 'the group')
  },
}

/** Why the access token of a job may not write something of its own user: the job would outlast its rule. */
const notOfOwnUser = (what: string) => `the access token of a job is for no ${what} of its own user`
const isOfJob = ({ caller }: RightsChange, users: readonly number[]): boolean =>
  users.some((user) => user === caller.ofJob?.pk)

/** The permissions of a role, before and after. Those with errors count as unchanged. */
function rightsMoved(change: RightsChange): { added: Right[]; removed: Right[] } {
  const [permissions, owners] = [sidesOf('permissions', change), sidesOf('owners', change)]
  const was = rightsOf(texts(permissions.was), texts(owners.was))
  const is = rightsOf(texts(permissions.is), texts(owners.is))
  const [had, has] = [new Set(was), new Set(is)]
  return { added: is.filter((right) => !covers(had, right)), removed: was.filter((right) => !covers(has, right)) }
}

const role: Policy = {
  decides: ['permissions', 'owners'],
  isNamed: true,
  takesAway: [],
  asks(change) {
    const { added, removed } = rightsMoved(change)
    const isGiven = added.length > 0 || removed.length > 0
    return change.caller.isSuperuser || !(isGiven || concerns(change, ['name'])) ? null : {}
  },
  *denials(change, { may, holdsAll }) {
    const { added, removed } = rightsMoved(change)
    // All users with the role gain the added permissions, and lose the removed ones.
    const isGiven = change.action === 'delete' || added.length > 0 || removed.length > 0
    if (change.action !== 'create' && isGiven) yield may('assign_role')
    const { permissions, owners } = change.before ?? {}
    const named = concerns(change, ['name']) ? rightsOf(texts(permissions), texts(owners)) : []
    yield holdsAll({ superuser: false, permissions: [...added, ...removed, ...named] }, 'the role')
  },
}

const dayMs = 86_400_000
const grantingFields = ['intent', 'expires', 'expiring', 'managed'] as const

/** Refuses `managed`: documents find rows by it, and migrations may overwrite such rows. */
function refuseManaged(change: RightsChange, instead: Report): void {
  if (setsManaged(change)) instead(['managed'], 'not_permitted', 'Only a superuser may set this field.')
}

const setsManaged = (change: RightsChange): boolean =>
  change.action !== 'delete' &&
  differs('managed', change) &&
  (change.action === 'update' || change.after.managed !== null)

/** The end of a token. A value with errors ends nothing: the change is refused for it. */
const endOf = ({ expires, expiring }: Values): number =>
  expiring === true && typeof expires === 'string' ? Date.parse(expires) : Number.POSITIVE_INFINITY

/** Whether all these users are the caller, authenticated in full. */
const isSelf = ({ self }: RightsChange['caller'], users: readonly number[]): boolean =>
  users.every((user) => user === self)

/** The policy of tokens. A token keeps its user. */
const tokenOwner = ({ before, after }: RightsChange): number[] => numbers((before ?? after).user)

const token: Policy = {
  decides: ['expires', 'expiring'],
  takesAway: ['expires', 'expiring'],
  ends: ({ before = {}, after }) => endOf(after) < endOf(before),
  asks(change) {
    const { action, caller } = change
    const owners = tokenOwner(change)
    const isPlain = action === 'delete' || !grantingFields.some((name) => differs(name, change))
    const isFree = caller.isSuperuser || (isPlain && isSelf(caller, owners))
    return isFree && caller.ofJob === null ? null : { users: owners }
  },
  *denials(change, { facts, holdsAll, superuser }, { report, instead }) {
    const { action, after, caller, tokenMaxDays } = change
    const { intent, expires, expiring } = after
    if (action !== 'delete' && isOfJob(change, tokenOwner(change))) yield notOfOwnUser('token')
    for (const owner of tokenOwner(change)) if (!isSelf(caller, [owner])) yield holdsAll(facts.user(owner), 'its user')
    if (action === 'delete') return
    if (action === 'create' && (intent === 'verification' || intent === 'recovery'))
      yield superuser(`make it a ${intent} token`)
    if (differs('expiring', change) && expiring === false && !caller.renews)
      yield superuser('make a token that does not expire')
    const own = caller.stacks
    const others = texts(after.stacks).filter((stack) => own?.has(stack) === false)
    if (action === 'create' && own !== null && others.length > 0) {
      const [bound, sent] = [[...own], others].map((names) => names.map((name) => JSON.stringify(name)).join(', '))
      report(
        ['stacks'],
        'invalid_choice',
        `The token that makes it is bound to stack ${bound}: it makes none for ${sent}.`,
      )
    }
    refuseManaged(change, instead)
    const latest = facts.now.getTime() + tokenMaxDays * dayMs
    if (differs('expires', change) && !caller.renews && typeof expires === 'string' && Date.parse(expires) > latest)
      report(['expires'], 'too_large', `Must be at most ${tokenMaxDays} days from now.`)
  },
}

/** The owners of a device as it is, and as it will be. */
const deviceOwners = ({ before, after }: RightsChange): number[] => [...numbers(before?.user), ...numbers(after.user)]

/** A caller who knows the key can log in as its user, and one who deletes the device can create another. */
const device: Policy = {
  decides: [],
  takesAway: [],
  asks(change) {
    const { caller } = change
    const owners = deviceOwners(change)
    const isFree = caller.isSuperuser || isSelf(caller, owners)
    return isFree && caller.ofJob === null ? null : { users: owners }
  },
  *denials(change, { facts, holdsAll }) {
    const owners = deviceOwners(change)
    for (const owner of owners) yield holdsAll(facts.user(owner), 'its user')
    if (isOfJob(change, owners)) yield notOfOwnUser('device')
  },
}

/** Each change needs all that its rules give, before and afterwards. */
const trustedIssuer: Policy = {
  decides: [...trustFields, 'rules', 'name'],
  takesAway: [],
  asks(change) {
    const { caller } = change
    if (caller.isSuperuser && caller.ofJob === null) return null
    const { was, is } = sidesOf('rules', change)
    return { named: [was, is].flatMap((rules) => rulesOf(rules).map(({ user }) => user)) }
  },
  *denials(change, { facts, holdsAll }) {
    for (const rights of facts.named) yield holdsAll(rights, 'the user of one of its rules')
    const { action, caller } = change
    const user = caller.ofJob?.username
    if (action === 'delete' || user === undefined) return
    const { was, is } = sidesOf('rules', change)
    const [had, has] = [was, is].map((rules) => rulesOf(rules).filter((rule) => rule.user === user))
    const isMoved = trustFields.some((name) => isChanged(name, change))
    if (has?.some((rule) => isMoved || !had?.some((other) => isDeepStrictEqual(rule, other))))
      yield notOfOwnUser('rule')
  },
}

/** Providers refer to a mapping by `managed` before its name: a caller who sets it chooses the data that they send. */
const propertyMapping: Policy = {
  decides: [],
  takesAway: [],
  asks: (change) => (change.caller.isSuperuser || !setsManaged(change) ? null : {}),
  // biome-ignore lint/correctness/useYield: only fields are refused
  *denials(change, _, { instead }) {
    refuseManaged(change, instead)
  },
}

export const policies: Readonly<Record<string, Policy>> = {
  'service_core.group': group,
  'service_core.user': user,
  'service_rbac.role': role,
  'service_core.token': token,
  'service_stages_totp.totpdevice': device,
  'service_mappings.propertymapping': propertyMapping,
  'service_rbac.trustedissuer': trustedIssuer,
}
