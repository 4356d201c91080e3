import { z } from 'zod'
import type { EngineReader, EngineTx } from '../db/engine-tx.ts'
import { rightsLock } from '../db/locks.ts'
import { rightsOfGroup, rightsOfUser } from './actor.ts'

/** Reads, in one statement, the rights that the decision about one entry needs. */

const rights = z.object({ superuser: z.boolean(), permissions: z.array(z.string()) })
const answerRow = z.object({
  now: z.date(),
  groups: z.record(z.string(), rights),
  roles: z.record(z.string(), rights),
  users: z.record(z.string(), rights),
  hasMembers: z.boolean(),
  isCircle: z.boolean(),
})

/** Permissions are in no order. */
export type Rights = Readonly<z.output<typeof rights>>

export type RightsQuestion = {
  /** Groups, with the rights that they inherit. */
  readonly groups?: readonly string[]
  readonly roles?: readonly string[]
  readonly users?: readonly number[]
  /** Whether this group or one of its descendants has members. */
  readonly below?: string | undefined
  /** Whether this group is `below`, or one of its descendants. */
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

export async function askRights(reader: EngineReader, question: RightsQuestion): Promise<RightsFacts> {
  const { groups = [], roles = [], users = [], below = null, parent = null } = question
  const keys = [groups, roles, users].map((each) => [...new Set<string | number>(each)])
  const [answer] = await reader.query(answerRow, { text, values: [...keys, below, parent] })
  if (answer === undefined) throw new Error('the query of rights returned no row')
  const pick = (from: Record<string, Rights>) => (key: unknown) => from[String(key)] ?? none
  return { ...answer, group: pick(answer.groups), role: pick(answer.roles), user: pick(answer.users) }
}

/**
 * Transactions that change rights run one after the other. Two at the same time, each of which does not see the other's
 * writes, could together do what neither may, or remove the last superuser. Moving a group takes the same lock
 * (docs/adr/0011-groups-know-their-ancestors.md).
 */
export const lockRights = (tx: EngineTx): void =>
  tx.send({ text: `SELECT pg_advisory_xact_lock(${rightsLock})`, values: [] })

/** Whether an active superuser is left. */
export async function isSuperuserLeft(tx: EngineTx): Promise<boolean> {
  const rows = await tx.query(z.object({ pk: z.int() }), {
    text: `SELECT u.pk FROM groups g JOIN group_ancestors a ON a.ancestor_pk = g.pk JOIN memberships m ON m.group_pk = a.group_pk
    JOIN users u ON u.pk = m.user_pk WHERE g.is_superuser AND u.is_active LIMIT 1`,
    values: [],
  })
  return rows.length > 0
}
