import type { Queryable } from '../db/client.ts'
import { statement } from '../db/sql.ts'
import { sha256 } from '../ids.ts'
import { type Actor, mayActAs } from '../permissions.ts'

/**
 * Who acts, with what he may do right now. Flags and roles flow down from ancestors: a member of a group has those of
 * it and of all groups above it (decisions.md 3). One statement each; the database's clock judges expiry.
 */

export type ActorRow = { pk: number; username: string; superuser: boolean; permissions: string[] }

export const toActor = (row: ActorRow | undefined): Actor | null =>
  row === undefined
    ? null
    : { pk: row.pk, username: row.username, isSuperuser: row.superuser, permissions: new Set(row.permissions) }

/**
 * What flows down from groups, as columns: `superuser`, and `permissions` in no order, as often as roles have them.
 *
 * @param from where, with `condition`, the groups stand as `a.ancestor_pk`, in SQL
 */
const flowing = (from: string, condition: string): string => `
  EXISTS (SELECT FROM ${from} JOIN groups g ON g.pk = a.ancestor_pk WHERE ${condition} AND g.is_superuser) AS superuser,
  ARRAY(SELECT p FROM roles r, unnest(r.permissions) p WHERE r.pk IN (
    SELECT gr.role_pk FROM ${from} JOIN group_roles gr ON gr.group_pk = a.ancestor_pk WHERE ${condition})) AS permissions`

/** From a group and all groups above it. @param group its key, in SQL */
export const rightsOfGroup = (group: string): string => flowing('group_ancestors a', `a.group_pk = ${group}`)

/** From all groups of a user and those above them. @param user his key, in SQL */
export const rightsOfUser = (user: string): string =>
  flowing('memberships m JOIN group_ancestors a ON a.group_pk = m.group_pk', `m.user_pk = ${user}`)

const actor = `u.pk, u.username, ${rightsOfUser('u.pk')}`

const byToken = (column: 'pk' | 'key_hash') => `SELECT t.pk AS "tokenPk", ${actor}
  FROM tokens t JOIN users u ON u.pk = t.user_pk
  WHERE t.${column} = $1 AND t.intent = 'api' AND u.is_active AND (NOT t.expiring OR t.expires > now())`

/** An active user, as the columns of an `ActorRow`. @param value what his column must hold, in SQL */
export const activeUser = (column: 'pk' | 'username', value: string): string =>
  `SELECT ${actor} FROM users u WHERE u.${column} = ${value} AND u.is_active`

/**
 * @param secret the bearer token as sent
 * @returns null for a missing, expired or wrong-intent token and for an inactive owner alike: no oracle
 */
export async function actorByToken(q: Queryable, secret: string): Promise<Actor | null> {
  const found = await actorOfSession(q, { secret })
  return found === null ? null : found.actor
}

const [byPk, byUsername] = [activeUser('pk', '$1'), activeUser('username', '$1')]

/** @returns null when the user is not there or not active */
export async function actorOfUser(
  q: Queryable,
  user: { readonly pk: number } | { readonly username: string },
): Promise<Actor | null> {
  const [row] = await q.query<ActorRow>(
    'pk' in user ? statement(byPk, [user.pk]) : statement(byUsername, [user.username]),
  )
  return toActor(row)
}

/** Somebody by his key, and who really acts. */
export type Acting = { readonly pk: number | null; readonly impersonator?: { readonly pk: number | null } | undefined }

/**
 * Who acts, as both are by now: while he waited, others may have taken his rights.
 *
 * @returns null when the user or whoever acts as him is gone or inactive, or may no longer act as him
 */
export async function stillActing(q: Queryable, { pk, impersonator }: Acting): Promise<Actor | null> {
  const read = (key: number | null) => (key === null ? null : actorOfUser(q, { pk: key }))
  if (impersonator === undefined) return read(pk)
  const [effective, real] = await Promise.all([read(pk), read(impersonator.pk)])
  return effective !== null && real !== null && mayActAs(real, effective) ? { ...effective, impersonator: real } : null
}

/**
 * @param token by its secret at login, by its key afterwards
 * @returns null as soon as the token would no longer authenticate
 */
export async function actorOfSession(
  q: Queryable,
  token: { readonly secret: string } | { readonly pk: string },
): Promise<{ actor: Actor; tokenPk: string } | null> {
  const [row] = await q.query<ActorRow & { tokenPk: string }>(
    'secret' in token ? statement(byToken('key_hash'), [sha256(token.secret)]) : statement(byToken('pk'), [token.pk]),
  )
  const found = toActor(row)
  return found === null || row === undefined ? null : { actor: found, tokenPk: row.tokenPk }
}
