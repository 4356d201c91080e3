import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { query } from '../db/raw.ts'
import { Problem } from '../errors.ts'
import { withExample } from '../example.ts'
import { isObject, type JsonObject } from '../json-object.ts'
import { type Actor, covers, type Permission } from '../permissions.ts'
import { groupsOfUser } from '../rights/actor.ts'
import { avatarOf } from './avatar.ts'
import { groupSummary } from './group-summary.ts'
import { readUidOf, type UidOf } from './uid.ts'
import { shownUserFields, userFields } from './user.ts'

/** The caller's own user, with its groups, those above them, and all rights and settings that they give it. */

const currentUser = z
  .object({
    ...userFields,
    ...shownUserFields,
    is_superuser: withExample(z.boolean(), false),
    groups: z.array(z.object({ name: groupSummary.shape.name, pk: groupSummary.shape.pk })).meta({
      description: 'With all groups above them.',
    }),
    settings: withExample(
      z.record(z.string(), z.unknown()),
      { theme: 'dark' },
      'Of the groups whose settings a caller wrote who held all that the user holds, then its own.',
    ),
    system_permissions: withExample(
      z.array(z.string()),
      ['add_application', 'view_group', 'view_user'],
      '`change_application@team-a`: for the rows of one owner only.',
    ),
  })
  .meta({ id: 'CurrentUser' })

export const me = z
  .object({
    user: currentUser,
    original: currentUser.optional().meta({ description: 'The real user, while impersonating.' }),
  })
  .meta({ id: 'SessionUser' })

const settingsOfGroup = z.object({
  pk: z.guid(),
  settings: z.unknown(),
  bySuperuser: z.boolean(),
  byPermissions: z.array(z.string()),
})

/** What is read of a user. The groups are in no order. */
const row = currentUser
  .omit({ avatar: true, uid: true, is_superuser: true, system_permissions: true })
  .extend({ attributes: z.unknown(), settings: z.array(settingsOfGroup) })

type CurrentUserRow = z.output<typeof row>

const text = `SELECT u.pk, u.username, u.name, u.is_active, u.email, u.attributes, u.type::text AS type, held.*
  FROM users u, LATERAL (
    WITH held AS MATERIALIZED (${groupsOfUser('u.pk')})
    SELECT
      (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', g.pk, 'name', g.name)), '[]')
        FROM held JOIN groups g ON g.pk = held.pk) AS groups,
      (SELECT coalesce(jsonb_agg(jsonb_build_object('pk', g.pk, 'settings', g.attributes -> 'settings',
          'bySuperuser', g.settings_by_superuser, 'byPermissions', g.settings_by_permissions)), '[]')
        FROM held JOIN groups g ON g.pk = held.pk WHERE (g.attributes -> 'settings') IS NOT NULL) AS settings
  ) held
  WHERE u.pk = ANY($1::integer[])`

/**
 * Reads the user in one statement, for both users of an impersonation.
 *
 * @param all every permission: a superuser holds them all
 * @throws {Problem} `not_authenticated` when a user vanished, `unavailable` when the database does not answer in time
 */
export async function readMe(db: Db, actor: Actor, all: readonly Permission[]): Promise<z.output<typeof me>> {
  const actors = [actor, actor.impersonator].filter((each) => each !== undefined)
  const users = query(db, row, { text, values: [actors.map(({ pk }) => pk)] })
  const [rows, uidOf] = await inTime(Promise.all([users, readUidOf(db)]))
  const read = (each: Actor) => {
    const row = rows.find(({ pk }) => pk === each.pk)
    // The user was deleted after the token was read.
    if (row === undefined) throw new Problem('not_authenticated', 'The user of this access token is gone.')
    return toCurrentUser(row, { actor: each, uidOf, all })
  }
  const { impersonator } = actor
  return { user: read(actor), ...(impersonator !== undefined && { original: read(impersonator) }) }
}

function toCurrentUser(
  row: CurrentUserRow,
  { actor, uidOf, all }: { actor: Actor; uidOf: UidOf; all: readonly Permission[] },
): z.output<typeof currentUser> {
  const { attributes, groups: unsorted, settings: stored, ...user } = row
  const groups = unsorted.toSorted((one, other) => (one.name < other.name ? -1 : 1))
  const settings = new Map(stored.map((each) => [each.pk, each]))
  return {
    ...user,
    is_superuser: actor.isSuperuser,
    groups: groups.map(({ name, pk }) => ({ name, pk })),
    avatar: avatarOf(user.name || user.username, attributes),
    uid: uidOf(user.pk),
    settings: [
      ...groups
        .flatMap(({ pk }) => settings.get(pk) ?? [])
        .filter((group) => mayInfluence(group, actor))
        .map((group) => group.settings),
      isObject(attributes) ? attributes.settings : undefined,
    ]
      .filter(isObject)
      .reduce<JsonObject>(merge, {}),
    system_permissions: actor.isSuperuser ? [...all] : [...actor.permissions].sort(),
  }
}

/**
 * Whether the settings were written by a caller who held all that this user holds
 * (docs/adr/0030-settings-keep-what-their-writer-held.md).
 */
function mayInfluence(
  { bySuperuser, byPermissions }: z.output<typeof settingsOfGroup>,
  { isSuperuser, permissions }: Actor,
): boolean {
  const held = new Set(byPermissions)
  return bySuperuser || (!isSuperuser && [...permissions].every((right) => covers(held, right)))
}

/** Merges settings. Of two that set the same, the later one wins. The depth of attributes limits the recursion. */
function merge(into: JsonObject, from: JsonObject): JsonObject {
  const merged = new Map(Object.entries(into))
  for (const [name, value] of Object.entries(from)) {
    const before = merged.get(name)
    merged.set(name, isObject(before) && isObject(value) ? merge(before, value) : value)
  }
  return Object.fromEntries(merged)
}
