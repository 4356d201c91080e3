import { z } from 'zod'
import type { Queryable } from '../db/client.ts'
import { statement } from '../db/sql.ts'
import { Faults, Problem } from '../errors.ts'
import { groupRows, groupSummary, summaryColumns } from './group-summary.ts'
import { type JsonText, jsonList } from './json-text.ts'
import { byKey, distinctKeys, rowsByKey } from './rows.ts'
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

/** Members that one answer shows. A group that has more by itself is answered all the same. */
const maxMembers = 250_000

/** Members come as text from the start: `users` of a page are hundreds of thousands of keys. */
export const groupView = {
  ...groupRows,
  columns: `${summaryColumns}, members.keys AS users, members.number AS members,
    ARRAY(SELECT gr.role_pk FROM group_roles gr WHERE gr.group_pk = g.pk ORDER BY gr.role_pk) AS roles`,
  joins: `${groupRows.joins} LEFT JOIN LATERAL (
    SELECT string_agg(m.user_pk::text, ',' ORDER BY m.user_pk) AS keys, count(*) AS number FROM memberships m WHERE m.group_pk = g.pk) members ON true`,
  schema,
  complete: async (q, rows: readonly Row[], related) => {
    if (related) refuseTooMany(rows)
    const roleKeys = distinctKeys(rows, 'roles')
    const [briefs, roles] = await Promise.all([
      related ? briefsOf(q, rows) : null,
      roleKeys.length === 0 ? new Map<unknown, Row>() : rowsByKey(q, roleRows, roleKeys).then(byKey),
    ])
    return rows.map(({ members, users, ...row }) => ({
      ...row,
      users: members === 0 ? [] : jsonList([String(users)]),
      users_obj: briefs === null ? null : (briefs.get(row.pk) ?? []),
      roles_obj: (row.roles as string[]).map((key) => roles.get(key)).filter((role) => role !== undefined),
    }))
  },
} satisfies View

/** As `JSON.stringify` has it. */
const lastLogin = `to_char(u.last_login AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** Members are written as JSON by PostgreSQL, five hundred at a time: there may be very many. */
const briefsOfGroups = `SELECT group_pk AS pk, string_agg(brief, ',' ORDER BY user_pk) AS briefs FROM (
    SELECT m.group_pk, m.user_pk, (row_number() OVER (PARTITION BY m.group_pk ORDER BY m.user_pk) - 1) / 500 AS part,
      (SELECT row_to_json(b)::text FROM (SELECT u.pk, u.username, u.name, u.is_active, ${lastLogin} AS last_login, u.email, u.attributes, ${uid} AS uid) b) AS brief
    FROM memberships m JOIN users u ON u.pk = m.user_pk WHERE m.group_pk = ANY($1)) member
  GROUP BY group_pk, part ORDER BY group_pk, part`

async function briefsOf(q: Queryable, rows: readonly Row[]): Promise<ReadonlyMap<unknown, JsonText>> {
  const keys = rows.filter(({ members }) => members !== 0).map(({ pk }) => pk)
  if (keys.length === 0) return new Map()
  const parts = await q.query<{ pk: string; briefs: string }>(statement(briefsOfGroups, [keys]))
  const byGroup = Map.groupBy(parts, ({ pk }) => pk)
  return new Map([...byGroup].map(([pk, texts]) => [pk, jsonList(texts.map((part) => part.briefs))]))
}

function refuseTooMany(rows: readonly Row[]): void {
  const count = rows.reduce((sum, { members }) => sum + Number(members), 0)
  if (rows.length <= 1 || count <= maxMembers) return
  const faults = new Faults()
  faults.add(
    ['page_size'],
    `These ${rows.length} groups have ${count} members, more than ${maxMembers}: ask for fewer groups at a time, or send include_users=false.`,
  )
  throw new Problem('invalid', 'The request is not valid.', { fields: faults.tree() })
}
