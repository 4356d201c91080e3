import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { Find } from '../document/document.ts'
import type { Step } from '../plan/compile.ts'
import type { Effect } from '../plan/effect.ts'
import { Named } from '../plan/named.ts'
import { storedKeys } from '../plan/storage.ts'

/**
 * A group that is there may have members whom the author of a document does not know: a user who may rename groups can
 * give the name in the document to a group of their own. So a document does not give rights to such members unawares
 * (docs/adr/0032-owners-are-labels.md).
 */

const groupModel = 'service_core.group'
const userModel = 'service_core.user'

/** At most this many members are listed. */
const listed = 10

const memberRow = z.object({ username: z.string(), total: z.int() })

/** Members of the group, and of the groups below it, whom the document does not name. */
const text = `SELECT u.username, (count(*) OVER ())::integer AS total FROM users u
  WHERE u.pk IN (SELECT m.user_pk FROM group_ancestors a JOIN memberships m ON m.group_pk = a.group_pk
      WHERE a.ancestor_pk = $1::uuid AND NOT (m.group_pk = $1::uuid AND $2::boolean))
    AND NOT u.pk = ANY($3::integer[]) AND NOT lower(u.username) = ANY($4::text[])
    AND ($5::boolean OR EXISTS (SELECT FROM group_ancestors a JOIN groups g ON g.pk = a.ancestor_pk
      WHERE a.group_pk = $6::uuid AND (g.is_superuser OR EXISTS (SELECT FROM group_roles r WHERE r.group_pk = g.pk))))
  ORDER BY u.username LIMIT ${listed}`

/** Users, the first ten by name, and how many there are. */
export type Members = { readonly usernames: readonly string[]; readonly total: number }

/**
 * The members who would get rights by an entry without being named in the document.
 *
 * @param steps the whole document
 * @returns null when there are none
 */
export async function unnamedMembers(
  reader: EngineReader,
  effect: Effect,
  steps: readonly Step[],
): Promise<Members | null> {
  const { step, row, action, values } = effect
  if (step.model.name !== groupModel || row === undefined || action !== 'update') return null
  const roles = step.model.fields.get('roles')
  const hadRoles = new Set<unknown>(roles && storedKeys(roles, row))
  // The key of a role that this document creates may not be known yet.
  const givesRoles = Array.isArray(values.roles) && values.roles.some((role) => !hadRoles.has(role))
  const givesFlag = values.is_superuser === true && row.is_superuser !== true
  const parent = values.parent === row.parent ? null : values.parent
  if (!givesRoles && !givesFlag && typeof parent !== 'string') return null
  // What the entry lists replaces the members of the group itself: all of them are named then.
  const replacesMembers = step.attrs.has('users')
  const named = known.getOrInsertComputed(steps, namedUsers)
  const rows = await reader.query(memberRow, {
    text,
    values: [
      row.pk,
      replacesMembers,
      [...named.keys],
      [...named.names],
      givesRoles || givesFlag,
      typeof parent === 'string' ? parent : null,
    ],
  })
  const [first] = rows
  return first === undefined ? null : { usernames: rows.map(({ username }) => username), total: first.total }
}

type NamedUsers = { readonly keys: Set<number>; readonly names: Set<string> }

/** Once for a document: it may have a thousand groups, and a hundred thousand keys. */
const known = new WeakMap<readonly Step[], NamedUsers>()

/** The users that entries write or refer to, as far as the text of the document says. */
function namedUsers(steps: readonly Step[]): NamedUsers {
  const [keys, names] = [new Set<number>(), new Set<string>()]
  const add = (key: unknown, name: unknown) => {
    if (typeof key === 'number') keys.add(key)
    if (typeof name === 'string') names.add(name.toLowerCase())
  }
  for (const { model, identifiers, attrs } of steps) {
    if (model.name === userModel) add(identifiers.get('pk'), identifiers.get('username'))
    if (model.name !== groupModel) continue
    const users = attrs.get('users')
    for (const user of Array.isArray(users) ? users : [])
      if (user instanceof Find) add(user.identifiers.pk, user.identifiers.username)
      else if (user instanceof Named) add(undefined, user.name)
      else add(user, undefined)
  }
  return { keys, names }
}
