import type { Queryable } from '../db/client.ts'
import { sql } from '../db/sql.ts'
import { sha256 } from '../ids.ts'
import type { Actor } from '../permissions.ts'

/**
 * Who acts, with what he may do right now. Flags and roles flow down from ancestors: a member of a group has those of
 * it and of all groups above it (decisions.md 3). One statement each; the database's clock judges expiry.
 */

type ActorRow = { pk: number; username: string; superuser: boolean; permissions: string[] }

const toActor = (row: ActorRow | undefined): Actor | null =>
  row === undefined
    ? null
    : { pk: row.pk, username: row.username, isSuperuser: row.superuser, permissions: new Set(row.permissions) }

/**
 * @param secret the bearer token as sent
 * @returns null for a missing, expired or wrong-intent token and for an inactive owner alike: no oracle
 */
export async function actorByToken(q: Queryable, secret: string): Promise<Actor | null> {
  const [row] = await q.query<ActorRow>(sql`
    WITH RECURSIVE owner AS (
      SELECT u.pk, u.username FROM tokens t JOIN users u ON u.pk = t.user_pk
      WHERE t.key_hash = ${sha256(secret)} AND t.intent = 'api' AND u.is_active AND (NOT t.expiring OR t.expires > now())
    ), chain AS (
      SELECT g.pk, g.parent, g.is_superuser FROM owner o JOIN memberships m ON m.user_pk = o.pk JOIN groups g ON g.pk = m.group_pk
      UNION
      SELECT g.pk, g.parent, g.is_superuser FROM chain c JOIN groups g ON g.pk = c.parent
    )
    SELECT o.pk, o.username, coalesce((SELECT bool_or(c.is_superuser) FROM chain c), false) AS superuser,
      ARRAY(SELECT DISTINCT p FROM chain c JOIN group_roles gr ON gr.group_pk = c.pk JOIN roles r ON r.pk = gr.role_pk, unnest(r.permissions) p) AS permissions
    FROM owner o`)
  return toActor(row)
}

/** The submitter of a run, as he is now. @returns null when the user is gone or inactive */
export async function actorOfRun(q: Queryable, run: string): Promise<Actor | null> {
  const [row] = await q.query<ActorRow>(sql`
    WITH RECURSIVE owner AS (
      SELECT u.pk, u.username FROM runs r JOIN users u ON u.pk = r.submitter_pk WHERE r.id = ${run} AND u.is_active
    ), chain AS (
      SELECT g.pk, g.parent, g.is_superuser FROM owner o JOIN memberships m ON m.user_pk = o.pk JOIN groups g ON g.pk = m.group_pk
      UNION
      SELECT g.pk, g.parent, g.is_superuser FROM chain c JOIN groups g ON g.pk = c.parent
    )
    SELECT o.pk, o.username, coalesce((SELECT bool_or(c.is_superuser) FROM chain c), false) AS superuser,
      ARRAY(SELECT DISTINCT p FROM chain c JOIN group_roles gr ON gr.group_pk = c.pk JOIN roles r ON r.pk = gr.role_pk, unnest(r.permissions) p) AS permissions
    FROM owner o`)
  return toActor(row)
}

/** @returns null when the user is gone or inactive */
export async function actorByPk(q: Queryable, pk: number): Promise<Actor | null> {
  const [row] = await q.query<ActorRow>(sql`
    WITH RECURSIVE chain AS (
      SELECT g.pk, g.parent, g.is_superuser FROM memberships m JOIN groups g ON g.pk = m.group_pk WHERE m.user_pk = ${pk}
      UNION
      SELECT g.pk, g.parent, g.is_superuser FROM chain c JOIN groups g ON g.pk = c.parent
    )
    SELECT u.pk, u.username, coalesce((SELECT bool_or(c.is_superuser) FROM chain c), false) AS superuser,
      ARRAY(SELECT DISTINCT p FROM chain c JOIN group_roles gr ON gr.group_pk = c.pk JOIN roles r ON r.pk = gr.role_pk, unnest(r.permissions) p) AS permissions
    FROM users u WHERE u.pk = ${pk} AND u.is_active`)
  return toActor(row)
}
