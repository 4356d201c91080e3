import { z } from 'zod'
import { userTypes } from '../models/user.ts'
import { avatarOf } from './avatar.ts'
import { groupSummaries, groupSummary } from './group-summary.ts'
import { JsonText, jsonList } from './json-text.ts'
import { distinctKeys } from './rows.ts'
import type { Row, View } from './view.ts'

/** A user in full, as lists, consents and tokens show him. */

/**
 * Whether user `u` is a superuser by one of his groups or a group above it. The groups that make one are few: they are
 * found once for a statement, and looked for among each user's own.
 */
export const isSuperuser = `EXISTS (SELECT FROM memberships m WHERE m.user_pk = u.pk AND m.group_pk = ANY (ARRAY(
  SELECT ga.group_pk FROM groups sg JOIN group_ancestors ga ON ga.ancestor_pk = sg.pk WHERE sg.is_superuser)))`

/** `<pk>-<installation id>`, digested: the same user of another installation is somebody else. */
export const uid = `encode(sha256(convert_to(u.pk || '-' || (SELECT i.id FROM installation i), 'UTF8')), 'hex')`

const schema = z.object({
  pk: z.int(),
  username: z.string(),
  name: z.string(),
  is_active: z.boolean(),
  last_login: z.iso.datetime().nullable(),
  is_superuser: z.boolean().meta({ description: 'By any of the groups, or a group above one of them.' }),
  groups: z.array(z.guid()),
  groups_obj: z.array(groupSummary).nullable(),
  email: z.string(),
  avatar: z.string(),
  attributes: z.record(z.string(), z.unknown()),
  uid: z.string(),
  path: z.string(),
  type: z.enum(userTypes),
  uuid: z.guid(),
})

export type User = z.output<typeof schema>

export const userView = {
  table: 'users',
  alias: 'u',
  columns: `u.pk, u.username, u.name, u.is_active, u.last_login, ${isSuperuser} AS is_superuser,
    ARRAY(SELECT m.group_pk FROM memberships m WHERE m.user_pk = u.pk ORDER BY m.group_pk) AS groups,
    u.email, u.attributes -> 'avatar' AS avatar, u.attributes::text AS attributes, ${uid} AS uid, u.path, u.type, u.uuid`,
  joins: '',
  schema,
  cut: (rows, related) => (related ? cutByGroups(rows) : [rows]),
  complete: async (q, rows: readonly Row[], related) => {
    const groups = related ? await groupSummaries(q, distinctKeys(rows, 'groups')) : null
    return rows.map((row) => ({
      ...row,
      avatar: avatarOf(String(row.name) || String(row.username), { avatar: row.avatar }),
      attributes: new JsonText([String(row.attributes)]),
      groups_obj: groups === null ? null : jsonList(groupsOf(row).flatMap((key) => groups.get(key) ?? [])),
    }))
  },
} satisfies View

const groupsOf = (row: Row) => row.groups as string[]

/** Groups whose summaries are held together, with all their attributes. */
const mostGroups = 2_000

function cutByGroups(rows: readonly Row[]): Row[][] {
  const parts: Row[][] = []
  let seen = new Set<string>()
  for (const row of rows) {
    const more = groupsOf(row).filter((key) => !seen.has(key))
    const isFull = seen.size + more.length > mostGroups
    if (isFull) seen = new Set(groupsOf(row))
    else for (const key of more) seen.add(key)
    if (isFull || parts.length === 0) parts.push([row])
    else parts.at(-1)?.push(row)
  }
  return parts
}
