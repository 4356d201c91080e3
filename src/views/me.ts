import { z } from 'zod'
import type { Queryable } from '../db/client.ts'
import { statement } from '../db/sql.ts'
import { Problem } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { type UserType, userTypes } from '../models/user.ts'
import type { Actor, Permission } from '../permissions.ts'
import { avatarOf } from './avatar.ts'
import { uid } from './user.ts'

/** Whoever asks, as he sees himself: with the groups he is in, those above them, and what all of them give him. */

const currentUser = z.object({
  pk: z.int(),
  username: z.string(),
  name: z.string(),
  is_active: z.boolean(),
  is_superuser: z.boolean(),
  groups: z.array(z.object({ name: z.string(), pk: z.string() })).meta({ description: 'With all groups above them.' }),
  email: z.string(),
  avatar: z.string(),
  uid: z.string(),
  settings: z.record(z.string(), z.unknown()),
  type: z.enum(userTypes),
  system_permissions: z.array(z.string()),
})

export const me = z.object({
  user: currentUser,
  original: currentUser.optional().meta({ description: 'Who really asks, while he acts as somebody else.' }),
})

type Found = {
  pk: number
  username: string
  name: string
  is_active: boolean
  email: string
  attributes: unknown
  uid: string
  type: UserType
  groups: { name: string; pk: string; attributes: unknown }[]
}

/**
 * One statement, for both users of an impersonation.
 *
 * @param all every permission that there is: a superuser holds them all
 */
export async function readMe(q: Queryable, actor: Actor, all: readonly Permission[]): Promise<z.output<typeof me>> {
  const acting = [actor, actor.impersonator].filter((each) => each !== undefined)
  const rows = await q.query<Found>(statement(currentUsers, [acting.map(({ pk }) => pk)]))
  const [user, original] = acting.map((each) => {
    const row = rows.find(({ pk }) => pk === each.pk)
    // Deleted since the token was looked up.
    if (row === undefined) throw new Problem('not_authenticated', 'The user of this access token is gone.')
    return toCurrentUser(row, each, all)
  })
  if (user === undefined) throw new Error('nobody asks')
  return { user, ...(original !== undefined && { original }) }
}

const currentUsers = `SELECT u.pk, u.username, u.name, u.is_active, u.email, u.attributes, u.type, ${uid} AS uid,
    coalesce((SELECT jsonb_agg(jsonb_build_object('name', g.name, 'pk', g.pk, 'attributes', g.attributes) ORDER BY g.name)
      FROM groups g WHERE g.pk IN (SELECT a.ancestor_pk FROM memberships m JOIN group_ancestors a ON a.group_pk = m.group_pk WHERE m.user_pk = u.pk)), '[]') AS groups
  FROM users u WHERE u.pk = ANY($1::integer[])`

function toCurrentUser(row: Found, { isSuperuser, permissions }: Actor, all: readonly Permission[]) {
  const { groups, attributes, ...shown } = row
  return {
    ...shown,
    is_superuser: isSuperuser,
    groups: groups.map(({ name, pk }) => ({ name, pk })),
    avatar: avatarOf(row.name || row.username, attributes),
    settings: settingsOf([...groups.map((group) => group.attributes), attributes]),
    system_permissions: isSuperuser ? [...all] : [...permissions].sort(),
  }
}

/** `settings` of all attributes in order; of two that set the same, the later one wins. */
function settingsOf(attributes: readonly unknown[]): JsonObject {
  return attributes
    .map((each) => (isObject(each) ? each.settings : undefined))
    .filter(isObject)
    .reduce<JsonObject>(merge, {})
}

/** Bounded by the depth that attributes may have. */
function merge(into: JsonObject, from: JsonObject): JsonObject {
  const merged = new Map(Object.entries(into))
  for (const [name, value] of Object.entries(from)) {
    const before = merged.get(name)
    merged.set(name, isObject(before) && isObject(value) ? merge(before, value) : value)
  }
  return Object.fromEntries(merged)
}
