import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { Find } from '../document/document.ts'
import type { Values } from '../models/define.ts'
import { comparedName } from '../names.ts'
import { covers, rightsOf } from '../permissions.ts'
import type { Step } from '../plan/compile.ts'
import type { Effect } from '../plan/effect.ts'
import { itemsOf } from '../plan/list-edit.ts'
import { Named } from '../plan/named.ts'
import type { Identity } from '../plan/storage.ts'
import {
  type GroupState,
  gainRow,
  gainStatement,
  type Membership,
  makesSuperusers,
  type NamedUsers,
  type RightsDelta,
  type RoleState,
  superuserRow,
  superuserStatement,
} from './gains-sql.ts'

/**
 * A document gives rights only to the users whom it names. Documents find groups, roles and parents by name, and a user can take
 * a name first, by a group of its own or an empty role that it has. So the whole document is judged by its effect, and not each
 * entry by the row that it writes (docs/adr/0057-rights-reach-whom-a-document-names.md).
 */

const groupModel = 'service_core.group'
const roleModel = 'service_rbac.role'
const userModel = 'service_core.user'

/** Users who have more rights after the document than before. */
export type Gains = {
  /** The first users by name. `rights` has `superuser` alone, when that is among them. */
  readonly users: readonly { readonly username: string; readonly rights: readonly string[] }[]
  readonly total: number
  /** The digest of all users and their gains, for plans: a plan keeps it for its reviewed apply. */
  readonly digest: string | null
}

/** The change that an entry makes. @property identity that of a new row */
type Judged = Effect & { readonly identity: Identity | undefined }

/**
 * The users who gain rights, and whom the document does not name by username or key.
 *
 * @param reader sees the database as it is before all entries, or after all of them
 * @param steps the whole document
 * @param isReviewed true for a plan, and for the apply of a reviewed one
 * @returns null when there are none
 */
export async function gainsOf(
  reader: EngineReader,
  effects: readonly Judged[],
  steps: readonly Step[],
  isReviewed: boolean,
): Promise<Gains | null> {
  const delta = deltaOf(effects)
  if (delta === null || !mayGive(delta)) return null
  const rows = await reader.query(gainRow, gainStatement(delta, namedUsers(effects, steps), isReviewed))
  const [first] = rows
  if (first === undefined) return null
  const users = rows.map(({ username, gained }) => ({
    username,
    rights: gained.includes('superuser') ? ['superuser'] : gained,
  }))
  return { users, total: first.total, digest: first.digest }
}

/** Users who become superusers, each with the group that makes them so: the first by name, and the number of all. */
export type NewSuperusers = { readonly users: readonly z.output<typeof superuserRow>[]; readonly total: number }

/**
 * The users who become superusers by the document, including those whom it names.
 *
 * @returns null when there are none
 */
export async function newSuperusers(reader: EngineReader, effects: readonly Judged[]): Promise<NewSuperusers | null> {
  const { before, after, ...members } = deltaOf(effects) ?? { before: none, after: none, joined: [], left: [] }
  const ofUsers = effects.filter(({ step, isForeign, action }) => {
    return step.model.name === userModel && !isForeign && (action === 'create' || action === 'update')
  })
  const changed = ofUsers.map(({ row, identity, values }) => {
    // An inactive user has no rights.
    const had = row?.is_active === false ? [] : textsIn(row?.links?.groups)
    const has = values.is_active === false ? [] : textsIn(values.groups)
    const to = (groups: string[]) => groups.map((group) => ({ group, user: Number(row?.pk ?? identity?.pk) }))
    return { joined: to(has.filter((key) => !had.includes(key))), left: to(had.filter((key) => !has.includes(key))) }
  })
  const joined = [...members.joined, ...changed.flatMap((each) => each.joined)]
  const delta = { before, after, joined, left: [...members.left, ...changed.flatMap((each) => each.left)] }
  if (!mayGive(delta)) return null
  const groups = [...joined.map(({ group }) => group), ...after.groups.map(({ pk }) => pk)]
  if ((await reader.query(z.object({ group_pk: z.string() }), makesSuperusers(groups))).length === 0) return null
  const rows = await reader.query(gainRow, gainStatement(delta, { keys: new Set(), names: new Set() }, false, true))
  const [first] = rows
  if (first === undefined) return null
  const users = await reader.query(superuserRow, superuserStatement(rows.map(({ username }) => username)))
  return { users, total: first.total }
}

const none = { groups: [], roles: [] }

/**
 * A group or a role as it is on one side of the document.
 *
 * @property users undefined where they were not read: no entry so far changes them
 * @property owners the owners to which the permissions of the role are bound
 */
type State = {
  readonly group?: GroupState
  readonly users?: readonly number[] | undefined
  readonly role?: RoleState
  readonly owners?: readonly string[]
}

/** Two entries may write one row: the state before the first counts, and the one after the last. */
function deltaOf(effects: readonly Judged[]): RightsDelta | null {
  const concerned = effects.filter(({ step: { model }, isForeign, action }) => {
    return action !== 'leave' && !isForeign && (model.name === groupModel || model.name === roleModel)
  })
  if (concerned.length === 0) return null
  const [before, after] = [new Map<string, State>(), new Map<string, State>()]
  for (const effect of concerned) {
    const { row, action, values } = effect
    const pk = String(row?.pk ?? effect.identity?.pk)
    const earlier = after.get(pk)
    const isFirst = earlier === undefined && !before.has(pk)
    const { edits } = effect.step
    const was = row === undefined ? {} : stateOf(effect, pk, { ...row, ...row.links })
    if (row !== undefined) {
      const first = isFirst ? was : before.get(pk)
      // An earlier entry, which did not read the members, left them as they were. One that edits them has read some.
      const others = edits?.has('users') ? without(was.users, [...(first?.users ?? []), ...(earlier?.users ?? [])]) : []
      const users = first?.users ?? was.users
      if (first !== undefined) before.set(pk, { ...first, users: users && [...users, ...others] })
    }
    if (action === 'delete') {
      after.delete(pk)
      continue
    }
    const state = stateOf(effect, pk, values)
    after.set(pk, earlier === undefined ? state : { ...state, users: membersAfter(earlier, was, state, effect.step) })
  }
  return {
    before: statesOf(before),
    after: statesOf(after),
    joined: membershipsOf(after, before),
    left: membershipsOf(before, after),
  }
}

function stateOf({ step: { model } }: Judged, pk: string, values: Values): State {
  if (model.name === roleModel)
    return { role: { pk, permissions: textsIn(values.permissions) }, owners: textsIn(values.owners) }
  const [parent = null] = textsIn(values.parent)
  const group = { pk, parent, superuser: values.is_superuser === true, roles: textsIn(values.roles) }
  const { users } = values
  return { group, users: users === undefined ? undefined : numbersIn(users) }
}

/** The members as two entries leave them. One that edits them has read only those that it names. */
function membersAfter({ users }: State, was: State, later: State, { edits, attrs }: Step): State['users'] {
  if (!attrs.has('users')) return users
  if (edits?.has('users') !== true) return later.users
  const { users: named = [] } = later
  return [...without(users, [...(was.users ?? []), ...named]), ...named]
}

function without<Key>(keys: readonly Key[] = [], others: readonly Key[] = []): Key[] {
  const left = new Set(others)
  return keys.filter((key) => !left.has(key))
}

const statesOf = (states: ReadonlyMap<string, State>) => ({
  groups: [...states.values()].flatMap(({ group }) => group ?? []),
  roles: [...states.values()].flatMap(({ role, owners = [] }) =>
    role === undefined ? [] : { ...role, permissions: rightsOf(role.permissions, owners) },
  ),
})

/** The members that groups have on one side only. */
function membershipsOf(states: ReadonlyMap<string, State>, others: ReadonlyMap<string, State>): Membership[] {
  return [...states].flatMap(([group, { users = [] }]) => {
    const there = new Set(others.get(group)?.users)
    return users.filter((user) => !there.has(user)).map((user) => ({ group, user }))
  })
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])
const numbersIn = (value: unknown): number[] => listOf(value).filter((each) => typeof each === 'number')
const textsIn = (value: unknown): string[] => listOf(value).filter((each) => typeof each === 'string')

/** Whether a document could give rights: most need no statement. */
function mayGive({ before, after, joined }: RightsDelta): boolean {
  const [groups, roles] = [byKey(before.groups), byKey(before.roles)]
  return (
    joined.length > 0 ||
    after.groups.some(({ pk, parent, superuser, roles: worn }) => {
      const was = groups.get(pk)
      // A new group has the members who join it. A group comes below it by an entry of its own.
      if (was === undefined) return false
      const isMoved = parent !== null && parent !== was.parent
      return isMoved || (superuser && !was.superuser) || worn.some((role) => !was.roles.includes(role))
    }) ||
    after.roles.some(({ pk, permissions }) => {
      const was = roles.get(pk)
      const had = new Set(was?.permissions)
      return was !== undefined && permissions.some((right) => !covers(had, right))
    })
  )
}

const byKey = <State extends { readonly pk: string }>(states: readonly State[]) =>
  new Map(states.map((state) => [state.pk, state]))

/** The users that entries write or refer to, as far as the text of the document says. */
function namedUsers(effects: readonly Judged[], steps: readonly Step[]): NamedUsers {
  const [keys, names] = [new Set<number>(), new Set<string>()]
  const add = (key: unknown, name: unknown) => {
    if (typeof key === 'number') keys.add(key)
    if (typeof name === 'string') names.add(comparedName(name))
  }
  for (const { step, row, identity } of effects)
    if (step.model.name === userModel) add(row?.pk ?? identity?.pk, undefined)
  for (const { model, attrs } of steps) {
    if (model.name !== groupModel) continue
    for (const user of itemsOf(attrs.get('users')))
      if (user instanceof Find) add(user.identifiers.pk, user.identifiers.username)
      else if (user instanceof Named) add(undefined, user.name)
      else add(user, undefined)
  }
  return { keys, names }
}
