import { z } from 'zod'
import type { EngineReader, EngineTx } from '../db/engine-tx.ts'
import { rightsLock } from '../db/locks.ts'
import { rightsOfGroup, rightsOfUser, rightsOfUsers } from './actor.ts'

/** Reads, in one statement, the rights that the decision about one entry needs. */

const rights = z.object({ superuser: z.boolean(), permissions: z.array(z.string()) })
const groupRights = rights.extend({ hasRoles: z.boolean() })
const answerRow = z.object({
  now: z.date(),
  groups: z.record(z.string(), groupRights),
  roles: z.record(z.string(), rights),
  users: z.record(z.string(), rights),
  named: z.record(z.string(), rights),
  hasMembers: z.boolean(),
  isCircle: z.boolean(),
  concerned: rights,
})

/** `permissions` are rights, like those of an actor, in no order. */
export type Rights = Readonly<z.output<typeof rights>>

/** `hasRoles`: it has a role, perhaps one without permissions. */
export type GroupRights = Readonly<z.output<typeof groupRights>>

export type RightsQuestion = {
  /** Groups, with the rights that they inherit. */
  readonly groups?: readonly string[]
  readonly roles?: readonly string[]
  readonly users?: readonly number[]
  /** Users by their names. */
  readonly named?: readonly string[]
  /** Whether this group or one of its descendants has members. */
  readonly below?: string | undefined
  /** Whether this group is `below`, or one of its descendants. */
  readonly parent?: string | undefined
  /** The rights that these users, and the members of a group and its descendants, hold together. */
  readonly concerned?: { readonly users: readonly number[]; readonly below: string | undefined }
}

export type RightsFacts = {
  readonly now: Date
  readonly hasMembers: boolean
  readonly isCircle: boolean
  readonly concerned: Rights
  group(key: unknown): GroupRights
  role(key: unknown): Rights
  user(key: unknown): Rights
  readonly named: readonly Rights[]
}

const none: GroupRights = { superuser: false, permissions: [], hasRoles: false }

const each = (keys: string, rights: string) =>
  `(SELECT coalesce(jsonb_object_agg(k::text, to_jsonb(rights)), '{}') FROM unnest(${keys}) k, LATERAL (${rights}) rights)`

const hasRoles =
  'EXISTS (SELECT FROM group_ancestors a JOIN group_roles gr ON gr.group_pk = a.ancestor_pk WHERE a.group_pk = k)'

const concerned = `(${rightsOfUsers(`
    SELECT unnest($7::integer[]) AS pk UNION SELECT m.user_pk FROM group_ancestors b
    JOIN memberships m ON m.group_pk = b.group_pk WHERE b.ancestor_pk = $8::uuid`)})`

const textOf = (concerned: string) => `SELECT now(),
  ${each('$1::uuid[]', `SELECT r.*, ${hasRoles} AS "hasRoles" FROM (${rightsOfGroup('k')}) r`)} AS groups,
  ${each('$2::uuid[]', 'SELECT false AS superuser, r.rights AS permissions FROM roles r WHERE r.pk = k')} AS roles,
  ${each('$3::integer[]', rightsOfUser('k'))} AS users,
  ${each('$6::text[]', rightsOfUser('(SELECT pk FROM users WHERE username = k)'))} AS named,
  EXISTS (SELECT FROM group_ancestors a JOIN memberships m ON m.group_pk = a.group_pk WHERE a.ancestor_pk = $4::uuid) AS "hasMembers",
  EXISTS (SELECT FROM group_ancestors a WHERE a.group_pk = $5::uuid AND a.ancestor_pk = $4::uuid) AS "isCircle",
  ${concerned} AS concerned`

const [textOfNone, textOfConcerned] = [textOf(`'{"superuser": false, "permissions": []}'::jsonb`), textOf(concerned)]

export async function askRights(reader: EngineReader, question: RightsQuestion): Promise<RightsFacts> {
  const { groups = [], roles = [], users = [], named = [], below = null, parent = null } = question
  const { users: others = [], below: branch } = question.concerned ?? {}
  const keys = [groups, roles, users].map((each) => [...new Set<string | number>(each)])
  const base = [...keys, below, parent, [...new Set(named)]]
  const statement =
    others.length === 0 && branch === undefined
      ? { text: textOfNone, values: base }
      : { text: textOfConcerned, values: [...base, others, branch ?? null] }
  const [answer] = await reader.query(answerRow, statement)
  if (answer === undefined) throw new Error('the query of rights returned no row')
  return {
    ...answer,
    group: (key) => answer.groups[String(key)] ?? none,
    role: (key) => answer.roles[String(key)] ?? none,
    user: (key) => answer.users[String(key)] ?? none,
    named: Object.values(answer.named),
  }
}

/**
 * Transactions that change rights run one after the other. Two at the same time, each of which does not see the other's
 * writes, could together do what neither may, or remove the last superuser. Moving a group takes the same lock
 * (docs/adr/0011-groups-know-their-ancestors.md).
 */
export const lockRights = (tx: EngineTx): void =>
  tx.send({ text: `SELECT pg_advisory_xact_lock(${rightsLock})`, values: [] })

/**
 * Whether a superuser is left who can authenticate: an active one with an unexpired `api` token without a ceiling, by
 * the database's clock.
 *
 * @param ended tokens that do not count, because their end is earlier now
 */
export async function isSuperuserLeft(reader: EngineReader, ended: readonly string[]): Promise<boolean> {
  const rows = await reader.query(z.object({ pk: z.int() }), {
    text: `SELECT u.pk FROM groups g JOIN group_ancestors a ON a.ancestor_pk = g.pk
      JOIN memberships m ON m.group_pk = a.group_pk JOIN users u ON u.pk = m.user_pk JOIN tokens t ON t.user_pk = u.pk
      WHERE g.is_superuser AND u.is_active AND t.intent = 'api' AND t.ceiling IS NULL
        AND (NOT t.expiring OR t.expires > now()) AND t.pk <> ALL($1::uuid[]) LIMIT 1`,
    values: [ended],
  })
  return rows.length > 0
}
