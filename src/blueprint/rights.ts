import type { Queryable, Tx } from '../db/client.ts'
import { sql, statement } from '../db/sql.ts'
import { rightsOfGroup, rightsOfUser } from '../models/actor.ts'

/** Who has which rights, as the database knows it: everything that a judgement of one entry needs, in one statement. */

/** Permissions are in no order. */
export type Rights = { readonly superuser: boolean; readonly permissions: readonly string[] }

export type RightsQuestion = {
  /** Groups, with what flows down to them. */
  readonly groups?: readonly string[]
  readonly roles?: readonly string[]
  readonly users?: readonly number[]
  /** Whether anybody is a member of this group or of one below it. */
  readonly below?: string | undefined
  /** Whether this one is `below`, or stands below it. */
  readonly parent?: string | undefined
}

export type RightsFacts = {
  readonly now: Date
  readonly hasMembers: boolean
  readonly isCircle: boolean
  group(key: unknown): Rights
  role(key: unknown): Rights
  user(key: unknown): Rights
}

const none: Rights = { superuser: false, permissions: [] }

const each = (keys: string, rights: string) =>
  `(SELECT coalesce(jsonb_object_agg(k::text, to_jsonb(rights)), '{}') FROM unnest(${keys}) k, LATERAL (${rights}) rights)`

const text = `SELECT now(),
  ${each('$1::uuid[]', `SELECT ${rightsOfGroup('k')}`)} AS groups,
  ${each('$2::uuid[]', 'SELECT false AS superuser, r.permissions FROM roles r WHERE r.pk = k')} AS roles,
  ${each('$3::integer[]', `SELECT ${rightsOfUser('k')}`)} AS users,
  EXISTS (SELECT FROM group_ancestors a JOIN memberships m ON m.group_pk = a.group_pk WHERE a.ancestor_pk = $4::uuid) AS "hasMembers",
  EXISTS (SELECT FROM group_ancestors a WHERE a.group_pk = $5::uuid AND a.ancestor_pk = $4::uuid) AS "isCircle"`

type Answer = Pick<RightsFacts, 'now' | 'hasMembers' | 'isCircle'> & {
  [family in 'groups' | 'roles' | 'users']: Record<string, Rights>
}

export async function askRights(q: Queryable, question: RightsQuestion): Promise<RightsFacts> {
  const { groups = [], roles = [], users = [], below = null, parent = null } = question
  const keys = [groups, roles, users].map((each) => [...new Set<string | number>(each)])
  const [answer] = await q.query<Answer>(statement(text, [...keys, below, parent]))
  if (answer === undefined) throw new Error('the question about rights was not answered')
  const pick = (from: Record<string, Rights>) => (key: unknown) => from[String(key)] ?? none
  return { ...answer, group: pick(answer.groups), role: pick(answer.roles), user: pick(answer.users) }
}

/**
 * Whoever decides about rights waits for others who do: two that each see what was before the other could together
 * bring about what neither may, or take away the last superuser. It is the lock of those who move groups, too
 * (docs/adr/0011-groups-know-their-ancestors.md).
 */
export const lockRights = (tx: Tx): void =>
  tx.send(sql`SELECT pg_advisory_xact_lock('"groups"'::regclass::oid::bigint)`)

/** Whether somebody is left who may do everything. */
export async function isSuperuserLeft(tx: Tx): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT 1 FROM groups g JOIN group_ancestors a ON a.ancestor_pk = g.pk JOIN memberships m ON m.group_pk = a.group_pk
    JOIN users u ON u.pk = m.user_pk WHERE g.is_superuser AND u.is_active LIMIT 1`)
  return rows.length > 0
}
