import { z } from 'zod'
import type { Db } from '../db/client.ts'
import type { Prisma } from '../db/generated/client.ts'
import { inTime } from '../db/in-time.ts'
import { Problem } from '../errors.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { type Actor, covers, type Permission } from '../permissions.ts'
import { avatarOf } from './avatar.ts'
import { groupSummary } from './group-summary.ts'
import { readUidOf, type UidOf } from './uid.ts'
import { shownUserFields, userFields } from './user.ts'

/** The caller's own user: with its groups, those above them, and what all of them give it. */

const currentUser = z
  .object({
    ...userFields,
    ...shownUserFields,
    is_superuser: z.boolean().meta({ examples: [false] }),
    groups: z.array(z.object({ name: groupSummary.shape.name, pk: groupSummary.shape.pk })).meta({
      description: 'With all groups above them.',
    }),
    settings: z.record(z.string(), z.unknown()).meta({
      description: 'Of the groups whose settings a caller wrote who held all that the user holds, then its own.',
      examples: [{ theme: 'dark' }],
    }),
    system_permissions: z.array(z.string()).meta({
      description: '`change_application@team-a`: for the rows of one owner only.',
      examples: [['add_application', 'view_group', 'view_user']],
    }),
  })
  .meta({ id: 'CurrentUser' })

export const me = z
  .object({
    user: currentUser,
    original: currentUser.optional().meta({ description: 'The real user, while impersonating.' }),
  })
  .meta({ id: 'SessionUser' })

const groupOfUserSelect = {
  pk: true,
  name: true,
  attributes: true,
  settingsBySuperuser: true,
  settingsByPermissions: true,
} satisfies Prisma.GroupSelect

export const currentUserSelect = {
  pk: true,
  username: true,
  name: true,
  isActive: true,
  email: true,
  attributes: true,
  type: true,
  memberships: {
    select: {
      group: {
        // A group is one of its own ancestors.
        select: { ancestors: { select: { ancestor: { select: groupOfUserSelect } } } },
      },
    },
  },
} satisfies Prisma.UserSelect

type Row = Prisma.UserGetPayload<{ select: typeof currentUserSelect }>

/**
 * One statement, for both users of an impersonation.
 *
 * @param all every permission that there is: a superuser holds them all
 * @throws {Problem} `not_authenticated` when a user vanished, `unavailable` when the database does not answer in time
 */
export async function readMe(db: Db, actor: Actor, all: readonly Permission[]): Promise<z.output<typeof me>> {
  const actors = [actor, actor.impersonator].filter((each) => each !== undefined)
  const where = { pk: { in: actors.map(({ pk }) => pk).filter((pk) => pk !== null) } }
  const users = db.user.findMany({ where, select: currentUserSelect, relationLoadStrategy: 'join' })
  const [rows, uidOf] = await inTime(Promise.all([users, readUidOf(db)]))
  const read = (each: Actor) => {
    const row = rows.find(({ pk }) => pk === each.pk)
    // Deleted since the token was read.
    if (row === undefined) throw new Problem('not_authenticated', 'The user of this access token is gone.')
    return toCurrentUser(row, { actor: each, uidOf, all })
  }
  const { impersonator } = actor
  return { user: read(actor), ...(impersonator !== undefined && { original: read(impersonator) }) }
}

export function toCurrentUser(
  row: Row,
  { actor, uidOf, all }: { actor: Actor; uidOf: UidOf; all: readonly Permission[] },
): z.output<typeof currentUser> {
  const ancestors = row.memberships.flatMap(({ group }) => group.ancestors.map(({ ancestor }) => ancestor))
  const groups = [...new Map(ancestors.map((group) => [group.pk, group])).values()]
  groups.sort((one, other) => (one.name < other.name ? -1 : 1))
  return {
    pk: row.pk,
    username: row.username,
    name: row.name,
    is_active: row.isActive,
    is_superuser: actor.isSuperuser,
    groups: groups.map(({ name, pk }) => ({ name, pk })),
    email: row.email,
    avatar: avatarOf(row.name || row.username, row.attributes),
    uid: uidOf(row.pk),
    settings: settingsOf([
      ...groups.filter((group) => mayInfluence(group, actor)).map(({ attributes }) => attributes),
      row.attributes,
    ]),
    type: row.type,
    system_permissions: actor.isSuperuser ? [...all] : [...actor.permissions].sort(),
  }
}

/**
 * Whether the settings were written by a caller who held all that this user holds
 * (docs/adr/0030-settings-keep-what-their-writer-held.md).
 */
function mayInfluence(
  { settingsBySuperuser, settingsByPermissions }: Prisma.GroupGetPayload<{ select: typeof groupOfUserSelect }>,
  { isSuperuser, permissions }: Actor,
): boolean {
  const held = new Set(settingsByPermissions)
  return settingsBySuperuser || (!isSuperuser && [...permissions].every((right) => covers(held, right)))
}

/** `settings` of all attributes in order; of two that set the same, the later one wins. */
const settingsOf = (attributes: readonly unknown[]): JsonObject =>
  attributes
    .map((each) => (isObject(each) ? each.settings : undefined))
    .filter(isObject)
    .reduce<JsonObject>(merge, {})

/** Bounded by the depth that attributes may have. */
function merge(into: JsonObject, from: JsonObject): JsonObject {
  const merged = new Map(Object.entries(into))
  for (const [name, value] of Object.entries(from)) {
    const before = merged.get(name)
    merged.set(name, isObject(before) && isObject(value) ? merge(before, value) : value)
  }
  return Object.fromEntries(merged)
}
