import { z } from 'zod'
import type { Queryable } from '../db/client.ts'
import { statement } from '../db/sql.ts'
import { groupRows, groupSummary, summaryColumns } from './group-summary.ts'
import { JsonText, jsonList, LateJson, lateList } from './json-text.ts'
import { byKey, cutByWeight, distinctKeys, rowsByKey } from './rows.ts'
import { uid } from './user.ts'
import type { Row, View } from './view.ts'

/** A group in full, with its direct members and roles. */

const userBrief = z.object({
  pk: z.int(),
  username: z.string(),
  name: z.string(),
  is_active: z.boolean(),
  last_login: z.iso.datetime().nullable(),
  email: z.string(),
  attributes: z.record(z.string(), z.unknown()),
  uid: z.string(),
})

const roleReference = z.object({ pk: z.guid(), name: z.string() })
const roleRows = { table: 'roles', alias: 'r', columns: 'r.pk, r.name', joins: '' } as const

const schema = groupSummary.extend({
  users: z.array(z.int()),
  users_obj: z.array(userBrief).nullable(),
  roles: z.array(z.guid()),
  roles_obj: z.array(roleReference),
})

/**
 * Members that are held at once: as keys; in full, with all their attributes; and of a group that has more by itself,
 * as many of them as are read at a time.
 */
const most = { keys: 200_000, full: 4_000, late: 2_000 } as const

export const groupView = {
  ...groupRows,
  columns: `${summaryColumns}, members.keys AS users, members.number AS members,
    ARRAY(SELECT gr.role_pk FROM group_roles gr WHERE gr.group_pk = g.pk ORDER BY gr.role_pk) AS roles`,
  joins: `${groupRows.joins} LEFT JOIN LATERAL (
    SELECT count(*) AS number, CASE WHEN count(*) <= ${most.full} THEN string_agg(m.user_pk::text, ',' ORDER BY m.user_pk) END AS keys
    FROM memberships m WHERE m.group_pk = g.pk) members ON true`,
  schema,
  cut: (rows, related) => cutByWeight(rows, related ? most.full : most.keys, ({ members }) => Number(members)),
  complete: async (q, rows: readonly Row[], related) => {
    const roleKeys = distinctKeys(rows, 'roles')
    const [keys, briefs, roles] = await Promise.all([
      manyKeysOf(q, rows),
      related ? briefsOf(q, rows) : null,
      roleKeys.length === 0 ? new Map<unknown, Row>() : rowsByKey(q, roleRows, roleKeys).then(byKey),
    ])
    return rows.map(({ members, attributes, users, ...row }) => ({
      ...row,
      attributes: new JsonText([String(attributes)]),
      users: members === 0 ? [] : jsonList([keys.get(row.pk) ?? String(users)]),
      users_obj: briefs === null ? null : (briefs.get(row.pk) ?? []),
      roles_obj: (row.roles as string[]).map((key) => roles.get(key)).filter((role) => role !== undefined),
    }))
  },
} satisfies View

/** As `JSON.stringify` has it. */
const lastLogin = `to_char(u.last_login AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** Of those that have more members than are read with the group. */
async function manyKeysOf(q: Queryable, rows: readonly Row[]): Promise<ReadonlyMap<unknown, string>> {
  const groups = rows.filter(({ members }) => Number(members) > most.full).map(({ pk }) => pk)
  if (groups.length === 0) return new Map()
  const found = await q.query<{ pk: string; keys: string }>(statement(keysOfGroups, [groups]))
  return new Map(found.map(({ pk, keys }) => [pk, keys]))
}

const keysOfGroups = `SELECT group_pk AS pk, string_agg(user_pk::text, ',' ORDER BY user_pk) AS keys
  FROM memberships WHERE group_pk = ANY($1) GROUP BY group_pk`

/** Members are written as JSON by PostgreSQL, a hundred at a time: there may be very many. */
const briefsOfGroups = `SELECT group_pk AS pk, string_agg(brief, ',' ORDER BY user_pk) AS briefs, max(user_pk) AS last FROM (
    SELECT m.group_pk, m.user_pk, (row_number() OVER (PARTITION BY m.group_pk ORDER BY m.user_pk) - 1) / 100 AS part,
      (SELECT row_to_json(b)::text FROM (SELECT u.pk, u.username, u.name, u.is_active, ${lastLogin} AS last_login, u.email, u.attributes, ${uid} AS uid) b) AS brief
    FROM (SELECT group_pk, user_pk FROM memberships WHERE group_pk = ANY($1) AND user_pk > $2 ORDER BY group_pk, user_pk LIMIT $3) m
      JOIN users u ON u.pk = m.user_pk) member
  GROUP BY group_pk, part ORDER BY group_pk, part`

type Part = { readonly pk: string; readonly briefs: string; readonly last: number }

const nextMembers = (q: Queryable, groups: readonly unknown[], { after, number }: { after: number; number: number }) =>
  q.query<Part>(statement(briefsOfGroups, [groups, after, number]))

async function briefsOf(q: Queryable, rows: readonly Row[]): Promise<ReadonlyMap<unknown, JsonText | LateJson>> {
  const groups = rows.filter(({ members }) => members !== 0).map(({ pk }) => String(pk))
  if (groups.length === 0) return new Map()
  const count = rows.reduce((sum, { members }) => sum + Number(members), 0)
  if (count > most.full) return new Map(groups.map((pk) => [pk, new LateJson(lateList(membersInTurn(q, pk)))]))
  const byGroup = Map.groupBy(await nextMembers(q, groups, { after: 0, number: most.full }), ({ pk }) => pk)
  return new Map([...byGroup].map(([pk, parts]) => [pk, jsonList(parts.map(({ briefs }) => briefs))]))
}

/** Some in each text. */
async function* membersInTurn(q: Queryable, group: string): AsyncGenerator<string> {
  let parts: readonly Part[] = []
  let after = 0
  do {
    parts = await nextMembers(q, [group], { after, number: most.late })
    for (const { briefs, last } of parts) {
      yield briefs
      after = last
    }
  } while (parts.length > 0)
}
