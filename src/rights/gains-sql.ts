import { z } from 'zod'
import type { Statement } from '../db/raw.ts'
import { rightsOfGroup } from './actor.ts'

/** Asks which users have more rights after a document than before it: one statement, the same in a check and in an apply. */

/** The most users that are listed. */
const listed = 10

/**
 * The most users whose groups are read one by one. Above it, the members of each group with such rights are read: PostgreSQL
 * cannot guess which is better. Members of a group with more are counted as far as they are alike.
 */
const fewUsers = 10_000

export const superuserRow = z.object({ username: z.string(), group: z.string() })

/** The first of the groups that make users superusers. */
export const superuserStatement = (usernames: readonly string[]): Statement => ({
  text: `SELECT u.username, min(g.name) AS group FROM users u JOIN memberships m ON m.user_pk = u.pk
    JOIN group_ancestors a ON a.group_pk = m.group_pk JOIN groups g ON g.pk = a.ancestor_pk AND g.is_superuser
    WHERE u.username = ANY($1::text[]) GROUP BY u.username ORDER BY u.username`,
  values: [usernames],
})

/** Rights of which a document says in a sentence of its own who gets them: patterns of their names. */
export const announcedRights = { superuser: '^superuser$', secrets: '^read_' } as const

export const announcedRow = z.object({ superuser: z.boolean(), secrets: z.boolean() })

/** Which of those rights any of these groups gives, as it is in the database. */
export const announcedStatement = (groups: readonly string[]): Statement => ({
  text: `SELECT coalesce(bool_or(g.is_superuser), false) AS superuser, coalesce(bool_or(EXISTS (
      SELECT FROM group_roles gr JOIN roles r ON r.pk = gr.role_pk, unnest(r.permissions) p
      WHERE gr.group_pk = g.pk AND p ~ '${announcedRights.secrets}')), false) AS secrets
    FROM group_ancestors a JOIN groups g ON g.pk = a.ancestor_pk WHERE a.group_pk = ANY($1::uuid[])`,
  values: [groups],
})

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

/** Users whom the document names: their gains are intended. `names` are folded. */
export type NamedUsers = { readonly keys: ReadonlySet<number>; readonly names: ReadonlySet<string> }

export const gainRow = z.object({
  username: z.string(),
  gained: z.array(z.string()),
  total: z.int(),
  /** null unless it was requested. */
  digest: z.string().nullable(),
})

/**
 * The two sides are `before` and `after`. The database holds one of them: the first in a check, the second in an apply. Rows
 * that the document does not change are read from it, and those that the document changes are given for both sides. So the
 * statement need not know which side it sees.
 *
 * 1. `affected` are the groups that a change reaches: rights flow down to all groups below. `line` has their ancestors on
 *    each side, and `held` their rights. `given` are the rights that a group has after, and not before.
 * 2. `gift` has the rights that a group gives: its present members get those that are new to the group; users who join it get all
 *    of its rights. `had_by_group` has those of the same rights that groups gave before.
 * 3. A group may have hundreds of thousands of members, and a role a hundred rights. So equal sets of rights have a number
 *    (`gift_set`, `had_set`), and users are `alike` who receive and had the same sets: their gain is found once for all.
 * 4. A group with more members than $11 (`bulk`) is read in part: only the members who may receive or have other rights than
 *    the rest, by another group, by an entry, or because they are named (`special`, `apart`). The `rest` is counted, because all
 *    of them are alike. A digest over all users ($9) reads every member.
 *
 * A user who holds a right for all owners does not gain it for one of them: `x` is the first part of `x@owner`.
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
    SELECT l.side, l.group_pk, 'superuser' AS held FROM line l
      JOIN group_state s ON s.side = l.side AND s.pk = l.ancestor_pk WHERE s.superuser
    UNION SELECT side, group_pk, 'superuser' FROM line
    WHERE ancestor_pk IN (SELECT pk FROM groups WHERE is_superuser AND pk NOT IN (SELECT pk FROM changed))
    UNION SELECT l.side, l.group_pk, p.permission FROM line l JOIN worn w ON w.side = l.side AND w.group_pk = l.ancestor_pk,
      LATERAL (SELECT unnest(s.permissions) AS permission FROM role_state s WHERE s.side = w.side AND s.pk = w.role_pk
        UNION ALL SELECT unnest(r.rights) FROM roles r
        WHERE r.pk = w.role_pk AND r.pk NOT IN (SELECT pk FROM role_state)) p),
  given AS (
    SELECT group_pk, held FROM held WHERE side = 'after' EXCEPT SELECT group_pk, held FROM held WHERE side = 'before'
    EXCEPT SELECT a.group_pk, a.held FROM held a
      JOIN held b ON b.group_pk = a.group_pk AND b.side = 'before' AND b.held = split_part(a.held, '@', 1)
    WHERE a.side = 'after' AND a.held LIKE '%@%'),
  entered AS (
    SELECT group_pk, held FROM held WHERE side = 'after' AND group_pk IN (SELECT group_pk FROM joined)
    UNION ALL SELECT j.group_pk, unnest(r.permissions || CASE WHEN r.superuser THEN '{superuser}'::text[] END)
    FROM (SELECT DISTINCT group_pk FROM joined WHERE group_pk NOT IN (SELECT pk FROM affected)) j,
      LATERAL (${rightsOfGroup('j.group_pk')}) r),
  gift AS (
    SELECT group_pk, false AS by_joining, array_agg(held ORDER BY held) AS rights FROM given GROUP BY group_pk
    UNION ALL SELECT group_pk, true, array_agg(DISTINCT held ORDER BY held) FROM entered GROUP BY group_pk),
  wanted AS (
    SELECT DISTINCT unnest(rights) AS held FROM gift
    UNION SELECT split_part(unnest(rights), '@', 1) FROM gift UNION SELECT 'superuser'),
  source AS (
    SELECT gr.group_pk, p AS held FROM roles r JOIN group_roles gr ON gr.role_pk = r.pk, unnest(r.rights) p
    WHERE p IN (SELECT held FROM wanted)
    UNION ALL SELECT pk, 'superuser' FROM groups WHERE is_superuser),
  had_by_group AS (
    SELECT group_pk, array_agg(DISTINCT held ORDER BY held) AS rights FROM (
      SELECT group_pk, held FROM held WHERE side = 'before' AND held IN (SELECT held FROM wanted)
      UNION ALL SELECT a.group_pk, s.held FROM source s,
        LATERAL (SELECT group_pk FROM group_ancestors WHERE ancestor_pk = s.group_pk OFFSET 0) a
      WHERE a.group_pk NOT IN (SELECT pk FROM affected)) h
    GROUP BY group_pk),
  gift_set AS (SELECT row_number() OVER (ORDER BY rights)::integer AS number, rights FROM (SELECT DISTINCT rights FROM gift) d),
  had_set AS (SELECT -row_number() OVER (ORDER BY rights)::integer AS number, rights FROM (SELECT DISTINCT rights FROM had_by_group) d),
  had AS (SELECT h.group_pk, s.number FROM had_by_group h JOIN had_set s USING (rights)),
  named AS (SELECT pk AS user_pk FROM users WHERE pk = ANY($7::integer[]) OR compared_name(username) = ANY($8::text[])),
  giving AS (SELECT g.group_pk, s.number FROM gift g JOIN gift_set s USING (rights) WHERE NOT g.by_joining),
  bulk AS (
    SELECT * FROM giving g WHERE NOT $9::boolean AND (SELECT count(*) FROM (
      SELECT FROM memberships m WHERE m.group_pk = g.group_pk LIMIT $11::integer + 1) m) > $11 LIMIT 1),
  direct AS (
    SELECT g.group_pk, m.user_pk, g.number FROM giving g JOIN memberships m ON m.group_pk = g.group_pk
    WHERE g.group_pk NOT IN (SELECT group_pk FROM bulk)),
  entering AS (
    SELECT j.user_pk, s.number FROM gift g JOIN gift_set s USING (rights) JOIN joined j ON j.group_pk = g.group_pk
    WHERE g.by_joining),
  together AS MATERIALIZED (
    SELECT h.group_pk, m.user_pk, h.number FROM had h,
      LATERAL (SELECT user_pk FROM memberships WHERE group_pk = h.group_pk OFFSET 0) m
    WHERE h.group_pk NOT IN (SELECT group_pk FROM bulk)
      AND (EXISTS (SELECT FROM bulk) OR (SELECT count(*) FROM direct) > $11)),
  special AS (
    SELECT user_pk FROM together UNION SELECT user_pk FROM direct UNION SELECT user_pk FROM joined
    UNION SELECT user_pk FROM leaving UNION SELECT user_pk FROM named),
  split AS (
    SELECT b.group_pk, b.number, m.users, m.apart FROM bulk b, LATERAL (
      SELECT count(*) AS users, array_agg(s.user_pk) FILTER (WHERE s.user_pk IS NOT NULL) AS apart
      FROM (SELECT user_pk FROM memberships WHERE group_pk = b.group_pk ORDER BY user_pk OFFSET 0) m
        LEFT JOIN (SELECT user_pk FROM special ORDER BY user_pk OFFSET 0) s USING (user_pk)) m),
  apart AS (SELECT group_pk, unnest(apart) AS user_pk, number FROM split),
  received AS (
    SELECT m.user_pk, m.number FROM (SELECT * FROM direct UNION ALL SELECT * FROM apart) m
    WHERE NOT EXISTS (SELECT FROM joined j WHERE j.group_pk = m.group_pk AND j.user_pk = m.user_pk)
      AND NOT EXISTS (SELECT FROM leaving l WHERE l.group_pk = m.group_pk AND l.user_pk = m.user_pk)
    UNION ALL SELECT * FROM entering),
  receiving AS (SELECT DISTINCT user_pk FROM received),
  present AS (
    SELECT h.group_pk, r.user_pk, h.number FROM receiving r,
      LATERAL (SELECT group_pk FROM memberships WHERE user_pk = r.user_pk OFFSET 0) m JOIN had h ON h.group_pk = m.group_pk
    WHERE NOT EXISTS (SELECT FROM bulk) AND (SELECT count(*) FROM direct) <= $11
    UNION ALL SELECT * FROM together t WHERE (t.user_pk IN (SELECT user_pk FROM receiving)) IS TRUE
    UNION ALL SELECT h.group_pk, a.user_pk, h.number FROM apart a JOIN had h ON h.group_pk = a.group_pk),
  past AS (
    SELECT p.user_pk, p.number FROM present p
    WHERE NOT EXISTS (SELECT FROM joined j WHERE j.group_pk = p.group_pk AND j.user_pk = p.user_pk)
    UNION SELECT l.user_pk, h.number FROM leaving l JOIN had h ON h.group_pk = l.group_pk
    WHERE l.user_pk IN (SELECT user_pk FROM receiving)),
  per_user AS (
    SELECT user_pk, array_agg(number ORDER BY number) AS sets
    FROM (SELECT user_pk, number FROM received UNION ALL SELECT user_pk, number FROM past) n
    WHERE user_pk NOT IN (SELECT user_pk FROM named)
    GROUP BY user_pk),
  rest AS (
    SELECT s.group_pk, ARRAY(SELECT number FROM had h WHERE h.group_pk = s.group_pk) || s.number AS sets,
      s.users - coalesce(cardinality(s.apart), 0) AS users
    FROM split s),
  alike AS (
    SELECT dense_rank() OVER (ORDER BY gained) AS kind, sets, gained FROM (SELECT sets FROM per_user UNION SELECT sets FROM rest) d, LATERAL (
      SELECT ARRAY(
        SELECT DISTINCT r FROM gift_set g, unnest(g.rights) r WHERE g.number = ANY (d.sets) AND NOT EXISTS (
          SELECT FROM had_set h WHERE h.number = ANY (d.sets)
            AND h.rights && ARRAY[r, split_part(r, '@', 1), 'superuser']) ORDER BY r) AS gained) g
    WHERE EXISTS (SELECT FROM unnest(gained) g WHERE g ~ $10)),
  gaining AS (SELECT u.user_pk, a.kind FROM per_user u JOIN alike a USING (sets)),
  gained AS (SELECT DISTINCT kind, gained FROM alike),
  summed AS (
    SELECT ((SELECT count(*) FROM gaining) + coalesce((SELECT r.users FROM rest r JOIN alike a USING (sets)), 0))::integer AS total,
      CASE WHEN $9 THEN (
        SELECT md5(string_agg(g.gained::text || c.users || c.digest, ',' ORDER BY kind)) FROM gained g JOIN (
          SELECT kind, count(*) AS users, md5(string_agg(user_pk::text, ',' ORDER BY user_pk)) AS digest FROM gaining GROUP BY kind
        ) c USING (kind)) END AS digest),
  first AS (
    SELECT user_pk, kind FROM gaining UNION ALL SELECT m.user_pk, a.kind FROM rest r JOIN alike a USING (sets), LATERAL (
      SELECT user_pk FROM memberships WHERE group_pk = r.group_pk AND (user_pk IN (SELECT user_pk FROM apart)) IS NOT TRUE
      ORDER BY user_pk LIMIT ${listed}) m
    ORDER BY user_pk LIMIT ${listed})
SELECT u.username, g.gained, s.total, s.digest
FROM first f JOIN gained g USING (kind) JOIN users u ON u.pk = f.user_pk, summed s ORDER BY u.username`

const sides = (before: readonly object[], after: readonly object[]): string =>
  JSON.stringify([
    ...before.map((state) => ({ side: 'before', ...state })),
    ...after.map((state) => ({ side: 'after', ...state })),
  ])

/**
 * @param isReviewed whether a digest over all users is needed
 * @param pattern of the rights of which users gain at least one
 * @returns rows of `gainRow`: the first users by name, each with the number of all of them and that digest
 */
export const gainStatement = (
  { before, after, joined, left }: RightsDelta,
  { keys, names }: NamedUsers,
  isReviewed: boolean,
  pattern = '',
): Statement => ({
  text,
  values: [
    sides(before.groups, after.groups),
    sides(before.roles, after.roles),
    joined.map(({ group }) => group),
    joined.map(({ user }) => user),
    left.map(({ group }) => group),
    left.map(({ user }) => user),
    [...keys],
    [...names],
    isReviewed,
    pattern,
    fewUsers,
  ],
})
