import type { EngineReader } from '../db/engine-tx.ts'
import { Find } from '../document/document.ts'
import { comparedName } from '../names.ts'
import { covers, isToReadSecrets, type Right, rightsOf } from '../permissions.ts'
import { itemsOf } from '../plan/list-edit.ts'
import { Named } from '../plan/named.ts'
import type { Key, Row } from '../plan/statements.ts'
import type { Step } from '../plan/step.ts'
import type { Changed, World } from '../plan/world.ts'
import {
  announcedRights,
  announcedRow,
  announcedStatement,
  type GroupState,
  gainRow,
  gainStatement,
  type Membership,
  type NamedUsers,
  type RightsDelta,
  type RoleState,
  superuserRow,
  superuserStatement,
} from './gains-sql.ts'
import { numbers, texts } from './policies.ts'

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

/**
 * The users who gain rights, and whom the document does not name by username or key.
 *
 * @param reader sees the database as it is before all entries, or after all of them
 * @param world the rows after all entries
 * @param steps the whole document
 * @param isReviewed true for a plan, and for the apply of a reviewed one
 * @returns null when there are none
 */
export async function gainsOf(
  reader: EngineReader,
  world: World,
  steps: readonly Step[],
  isReviewed: boolean,
): Promise<Gains | null> {
  const delta = deltaOf(world)
  if (!mayGive(delta)) return null
  const rows = await reader.query(gainRow, gainStatement(delta, namedUsers(world, steps), isReviewed))
  const [first] = rows
  if (first === undefined) return null
  const users = rows.map(({ username, gained }) => ({
    username,
    rights: gained.includes('superuser') ? ['superuser'] : gained,
  }))
  return { users, total: first.total, digest: first.digest }
}

/** Users who get rights of which a document says in sentences of its own who gets them. */
export type AnnouncedGains = {
  readonly is: keyof typeof announcedRights
  /** The first by name; superusers with the group that makes them so. */
  readonly users: readonly { readonly username: string; readonly rights?: readonly Right[]; readonly group?: string }[]
  readonly total: number
}

/** The users who become superusers by the document, or may read secrets by it, including those whom it names. */
export async function announcedGains(reader: EngineReader, world: World): Promise<AnnouncedGains[]> {
  const members = deltaOf(world)
  // An inactive user has no rights.
  const ofUsers = movesOf(
    changedIn(world, userModel).filter(({ after }) => after !== undefined),
    (row) => (row?.is_active === false ? [] : texts(row?.links?.groups)),
    (user, group) => ({ group, user: Number(user) }),
  )
  const joined = [...members.joined, ...ofUsers.joined]
  const delta = { ...members, joined, left: [...members.left, ...ofUsers.left] }
  if (!mayGive(delta)) return []
  const groups = [...joined.map(({ group }) => group), ...delta.after.groups.map(({ pk }) => pk)]
  const [given] = await reader.query(announcedRow, announcedStatement(groups))
  const gaining = async (is: AnnouncedGains['is']): Promise<AnnouncedGains[]> => {
    const noUsers = { keys: new Set<number>(), names: new Set<string>() }
    const rows = await reader.query(gainRow, gainStatement(delta, noUsers, false, announcedRights[is]))
    const [first] = rows
    if (first === undefined) return []
    const users =
      is === 'secrets'
        ? rows.map(({ username, gained }) => ({ username, rights: gained.filter(isToReadSecrets) }))
        : await reader.query(superuserRow, superuserStatement(rows.map(({ username }) => username)))
    return [{ is, users, total: first.total }]
  }
  const isInRole = delta.after.roles.some(({ permissions }) => permissions.some(isToReadSecrets))
  return [
    ...(given?.superuser ? await gaining('superuser') : []),
    ...(given?.secrets || isInRole ? await gaining('secrets') : []),
  ]
}

/** The rows of a model that entries name, on both sides of the document: several entries may write one row. */
const changedIn = (world: World, name: string): readonly Changed[] => world.changed(tableOf(world, name))

const tableOf = ({ registry }: World, name: string): string => registry.byName(name)?.table ?? ''

function deltaOf(world: World): RightsDelta {
  const [groups, roles] = [changedIn(world, groupModel), changedIn(world, roleModel)]
  const side = (of: (changed: Changed) => Row | undefined) => ({
    groups: groups.flatMap((each) => of(each) ?? []).map(groupState),
    roles: roles.flatMap((each) => of(each) ?? []).map(roleState),
  })
  const members = movesOf(
    groups,
    (row) => numbers(row?.links?.users),
    (group, user) => ({ group: String(group), user }),
  )
  return { before: side(({ before }) => before), after: side(({ after }) => after), ...members }
}

/** The memberships that rows have on one side of the document only. */
function movesOf<Item>(
  rows: readonly Changed[],
  linksOf: (row: Row | undefined) => readonly Item[],
  to: (key: Key, item: Item) => Membership,
): Pick<RightsDelta, 'joined' | 'left'> {
  const only = (one: 'before' | 'after', other: 'before' | 'after') =>
    rows.flatMap((row) =>
      [...new Set(linksOf(row[one])).difference(new Set(linksOf(row[other])))].map((item) => to(row.key, item)),
    )
  return { joined: only('after', 'before'), left: only('before', 'after') }
}

function groupState({ pk, parent, is_superuser, links }: Row): GroupState {
  const [above = null] = texts(parent)
  return { pk: String(pk), parent: above, superuser: is_superuser === true, roles: texts(links?.roles) }
}

const roleState = ({ pk, permissions, owners }: Row): RoleState => ({
  pk: String(pk),
  permissions: rightsOf(texts(permissions), texts(owners)),
})

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
function namedUsers(world: World, steps: readonly Step[]): NamedUsers {
  const [keys, names] = [new Set(numbers(world.keysIn(tableOf(world, userModel)))), new Set<string>()]
  const add = (key: unknown, name: unknown) => {
    if (typeof key === 'number') keys.add(key)
    if (typeof name === 'string') names.add(comparedName(name))
  }
  for (const { model, attrs } of steps) {
    if (model.name !== groupModel) continue
    for (const user of itemsOf(attrs.get('users')))
      if (user instanceof Find) add(user.identifiers.pk, user.identifiers.username)
      else if (user instanceof Named) add(undefined, user.name)
      else add(user, undefined)
  }
  return { keys, names }
}
