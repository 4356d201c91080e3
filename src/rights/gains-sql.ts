import { z } from 'zod'
import type { Statement } from '../db/raw.ts'
import { rightsOfGroup } from './actor.ts'

/** Asks which users have more rights after a document than before it: one statement, the same in a check and in an apply. */

/** Users that are listed at most. */
const listed = 10

/** A group as it is on one side of the document. */
export type GroupState = {
  readonly pk: string
  readonly parent: string | null
  readonly superuser: boolean
  readonly roles: readonly string[]
}
/** @property permissions its rights: bound to its owners */
export type RoleState = { readonly pk: string; readonly permissions: readonly string[] }
export type Membership = { readonly group: string; readonly user: number }

/** Both sides of each group and role that the document changes. A new one is missing before, a deleted one after. */
export type RightsDelta = {
  readonly before: { readonly groups: readonly GroupState[]; readonly roles: readonly RoleState[] }
  readonly after: { readonly groups: readonly GroupState[]; readonly roles: readonly RoleState[] }
  readonly joined: readonly Membership[]
  readonly left: readonly Membership[]
}

/** Users whom the document names: what they gain is meant. `names` are folded. */
export type NamedUsers = { readonly keys: ReadonlySet<number>; readonly names: ReadonlySet<string> }

export const gainRow = z.object({
  username: z.string(),
  gained: z.array(z.string()),
  total: z.int(),
  digest: z.string(),
})

/**
 * The two sides are `before` and `after`. The database holds one of them: the first in a check, the second in an apply. What
 * the document does not change is read from it, and what the document changes is given for both sides. So the statement
 * need not know which side it sees.
 *
 * 1. `affected` are the groups that a change reaches: rights flow down to all groups below. `line` has their ancestors on
 *    each side, and `held` their rights. `given` are the rights that a group has after, and not before.
 * 2. `receiving` are the users who are after it in a group that is given rights (`present`), or who join one (`entered`).
 * 3. `had` is what these users have before it of the same rights, by any group. `gaining` is the rest.
 *
 * What one holds for all owners, one does not gain for one of them: `x` is the first part of `x@owner`.
 */
const text = `WITH RECURSIVE
  side AS (SELECT * FROM (VALUES ('before'), ('after')) s(side)),
  group_state AS (SELECT * FROM jsonb_to_recordset($1) AS s(side text, pk uuid, parent uuid, superuser boolean, roles uuid[])),
  role_state AS (SELECT * FROM jsonb_to_recordset($2) AS s(side text, pk uuid, permissions text[])),
  joined AS (SELECT * FROM unnest($3::uuid[], $4::integer[]) AS m(group_pk, user_pk)),
  leaving AS (SELECT * FROM unnest($5::uuid[], $6::integer[]) AS m(group_pk, user_pk)),
  changed AS (SELECT DISTINCT pk FROM group_state),
  affected AS (
    SELECT pk FROM changed
    UNION SELECT a.group_pk FROM changed c JOIN group_ancestors a ON a.ancestor_pk = c.pk
    UNION SELECT a.group_pk FROM role_state s JOIN group_roles gr ON gr.role_pk = s.pk
      JOIN group_ancestors a ON a.ancestor_pk = gr.group_pk),
  line AS (
    SELECT side, pk AS group_pk, pk AS ancestor_pk FROM affected, side
    UNION SELECT l.side, l.group_pk, up.parent FROM line l, LATERAL (
      SELECT s.parent FROM group_state s WHERE s.side = l.side AND s.pk = l.ancestor_pk
      UNION ALL SELECT g.parent FROM groups g WHERE g.pk = l.ancestor_pk AND g.pk NOT IN (SELECT pk FROM changed)) up
    WHERE up.parent IS NOT NULL),
  worn AS (
    SELECT side, pk AS group_pk, unnest(roles) AS role_pk FROM group_state
    UNION ALL SELECT side, gr.group_pk, gr.role_pk FROM group_roles gr, side
    WHERE gr.group_pk IN (SELECT ancestor_pk FROM line) AND gr.group_pk NOT IN (SELECT pk FROM changed)),
  held AS (
    SELECT l.side, l.group_pk, 'superuser' AS held FROM line l LEFT JOIN changed c ON c.pk = l.ancestor_pk
      LEFT JOIN group_state s ON s.side = l.side AND s.pk = l.ancestor_pk LEFT JOIN groups g ON g.pk = l.ancestor_pk
    WHERE CASE WHEN c.pk IS NULL THEN g.is_superuser ELSE s.superuser END
    UNION SELECT l.side, l.group_pk, p.permission FROM line l JOIN worn w ON w.side = l.side AND w.group_pk = l.ancestor_pk,
      LATERAL (SELECT unnest(s.permissions) AS permission FROM role_state s WHERE s.side = w.side AND s.pk = w.role_pk
        UNION ALL SELECT unnest(r.rights) FROM roles r
        WHERE r.pk = w.role_pk AND r.pk NOT IN (SELECT pk FROM role_state)) p),
  given AS (
    SELECT group_pk, held FROM held WHERE side = 'after' EXCEPT SELECT group_pk, held FROM held WHERE side = 'before'
    EXCEPT SELECT a.group_pk, a.held FROM held a
      JOIN held b ON b.group_pk = a.group_pk AND b.side = 'before' AND b.held = split_part(a.held, '@', 1)
    WHERE a.side = 'after' AND a.held LIKE '%@%'),
  present AS (
    SELECT m.group_pk, m.user_pk FROM memberships m WHERE m.group_pk IN (SELECT group_pk FROM given)
    UNION SELECT group_pk, user_pk FROM joined
    EXCEPT SELECT group_pk, user_pk FROM leaving),
  entered AS (
    SELECT group_pk, held FROM held WHERE side = 'after' AND group_pk IN (SELECT group_pk FROM joined)
    UNION ALL SELECT j.group_pk, unnest(r.permissions || CASE WHEN r.superuser THEN '{superuser}'::text[] END)
    FROM (SELECT DISTINCT group_pk FROM joined WHERE group_pk NOT IN (SELECT pk FROM affected)) j,
      LATERAL (SELECT ${rightsOfGroup('j.group_pk')}) r),
  receiving AS (
    SELECT p.user_pk, g.held FROM given g JOIN present p ON p.group_pk = g.group_pk
    UNION SELECT j.user_pk, e.held FROM entered e JOIN joined j ON j.group_pk = e.group_pk),
  source AS (
    SELECT gr.group_pk, p AS held FROM roles r JOIN group_roles gr ON gr.role_pk = r.pk, unnest(r.rights) p
    WHERE p IN (SELECT held FROM receiving UNION SELECT split_part(held, '@', 1) FROM receiving)
    UNION ALL SELECT pk, 'superuser' FROM groups WHERE is_superuser),
  had_by_group AS (
    SELECT group_pk, held FROM held WHERE side = 'before'
    UNION ALL SELECT a.group_pk, s.held FROM source s JOIN group_ancestors a ON a.ancestor_pk = s.group_pk
    WHERE a.group_pk NOT IN (SELECT pk FROM affected)),
  past AS (
    SELECT m.group_pk, m.user_pk FROM memberships m
    WHERE m.user_pk IN (SELECT user_pk FROM receiving) AND m.group_pk IN (SELECT group_pk FROM had_by_group)
    EXCEPT SELECT group_pk, user_pk FROM joined
    UNION SELECT group_pk, user_pk FROM leaving),
  had AS (SELECT p.user_pk, h.held FROM past p JOIN had_by_group h ON h.group_pk = p.group_pk),
  named AS (SELECT pk FROM users WHERE pk = ANY($7::integer[]) OR compared_name(username) = ANY($8::text[])),
  gaining AS (
    SELECT r.user_pk, r.held FROM receiving r
    WHERE r.user_pk NOT IN (SELECT pk FROM named)
      AND r.user_pk NOT IN (SELECT user_pk FROM had WHERE held = 'superuser')
      AND NOT EXISTS (SELECT FROM had h WHERE h.user_pk = r.user_pk AND h.held = r.held)
      AND NOT EXISTS (SELECT FROM had h WHERE h.user_pk = r.user_pk AND h.held = split_part(r.held, '@', 1))),
  first AS (SELECT DISTINCT user_pk FROM gaining ORDER BY user_pk LIMIT ${listed})
SELECT u.username, ARRAY(SELECT held FROM gaining g WHERE g.user_pk = u.pk ORDER BY held) AS gained,
  (SELECT count(DISTINCT user_pk) FROM gaining)::integer AS total,
  (SELECT md5(string_agg(user_pk || ' ' || held, ',' ORDER BY user_pk, held)) FROM gaining) AS digest
FROM first f JOIN users u ON u.pk = f.user_pk ORDER BY u.username`

type Sides = { readonly before: readonly object[]; readonly after: readonly object[] }

const sides = ({ before, after }: Sides): string =>
  JSON.stringify([
    ...before.map((state) => ({ side: 'before', ...state })),
    ...after.map((state) => ({ side: 'after', ...state })),
  ])

/** @returns rows of `gainRow`: the first users by name, each with the number of all of them and a digest over all */
export const gainStatement = (
  { before, after, joined, left }: RightsDelta,
  { keys, names }: NamedUsers,
): Statement => ({
  text,
  values: [
    sides({ before: before.groups, after: after.groups }),
    sides({ before: before.roles, after: after.roles }),
    joined.map(({ group }) => group),
    joined.map(({ user }) => user),
    left.map(({ group }) => group),
    left.map(({ user }) => user),
    [...keys],
    [...names],
  ],
})
