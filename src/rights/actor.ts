import { z } from 'zod'
import type { EngineReader } from '../db/engine-tx.ts'
import { Problem } from '../errors.ts'
import { sha256 } from '../ids.ts'
import { type Actor, type ActorKeys, isOfOthers, isOfStack, mayActAs, meet, stacksOf } from '../permissions.ts'
import { storedPipeline } from '../pipeline.ts'

/**
 * Reads an actor with the rights of this moment. Superuser flags and roles are inherited: a member of a group has those
 * of the group and of all its ancestors. Each reader is one statement; expiry is compared with the database's clock.
 */

const actorRow = z.object({
  pk: z.int(),
  username: z.string(),
  superuser: z.boolean(),
  permissions: z.array(z.string()),
})
const sessionRow = actorRow.extend({
  tokenPk: z.guid(),
  ceiling: z.array(z.string()).nullable(),
  pipeline: storedPipeline,
})

const toActor = (row: z.output<typeof actorRow> | undefined): Actor | null =>
  row === undefined
    ? null
    : { pk: row.pk, username: row.username, isSuperuser: row.superuser, permissions: new Set(row.permissions) }

/** The actor of a token with a ceiling: it holds what both have, and is never a superuser. */
const limited = (actor: Actor, ceiling: ReadonlySet<string> | undefined): Actor =>
  ceiling === undefined
    ? actor
    : { ...within(actor, new Set([...ceiling].filter((right) => !isOfStack(right)))), ceiling }

const within = (actor: Actor, rights: ReadonlySet<string>): Actor => ({
  ...actor,
  isSuperuser: false,
  permissions: actor.isSuperuser ? rights : meet(actor.permissions, rights),
})

/**
 * The effective user as the real one acts as it: a token's ceiling holds for both.
 *
 * @returns null when the real user may not impersonate the other
 */
export const actAs = (real: Actor, effective: Actor): Actor | null =>
  mayActAs(real, effective) ? { ...limited(effective, real.ceiling), ...jobOf(real), impersonator: real } : null

const jobOf = ({ pipeline }: Pick<ActorKeys, 'pipeline'>) => pipeline && { pipeline }

/**
 * The rights that groups give: `superuser`, and `permissions` (rights; see `permissions.ts`) in no order and with
 * duplicates. Each group is looked up once: some users have thousands.
 *
 * @param groups a query of their keys, as `pk`
 */
const rightsOf = (groups: string): string => `
  WITH held AS MATERIALIZED (${groups})
  SELECT EXISTS (SELECT FROM held JOIN groups g ON g.pk = held.pk WHERE g.is_superuser) AS superuser,
    ARRAY(SELECT p FROM roles r, unnest(r.rights) p WHERE r.pk IN (
      SELECT gr.role_pk FROM held JOIN group_roles gr ON gr.group_pk = held.pk)) AS permissions`

/** The rights of a group and all its ancestors, as one row. @param group its key, in SQL */
export const rightsOfGroup = (group: string): string =>
  rightsOf(`SELECT a.ancestor_pk AS pk FROM group_ancestors a WHERE a.group_pk = ${group}`)

/** The groups of a user and their ancestors, as `pk`. @param user the user's key, in SQL */
export const groupsOfUser = (user: string): string =>
  `SELECT DISTINCT a.ancestor_pk AS pk FROM memberships m JOIN group_ancestors a ON a.group_pk = m.group_pk
    WHERE m.user_pk = ${user}`

/** The rights of all groups of a user and their ancestors, as one row. @param user the user's key, in SQL */
export const rightsOfUser = (user: string): string => rightsOf(groupsOfUser(user))

/**
 * The rights of several users together, as one JSON value. OFFSET keeps the plan from reading all memberships for a few
 * users.
 *
 * @param users a query of their keys, as `pk`
 */
export const rightsOfUsers = (users: string): string => `
  SELECT to_jsonb(rights) FROM (${rightsOf(`
    SELECT DISTINCT a.ancestor_pk AS pk FROM (
      SELECT DISTINCT m.group_pk FROM (${users}) u,
        LATERAL (SELECT group_pk FROM memberships WHERE user_pk = u.pk OFFSET 0) m) own
      JOIN group_ancestors a ON a.group_pk = own.group_pk`)}) rights`

/** The user of a token `t`, as `u`. OFFSET keeps a plan that was made for few users from reading all of them. */
const itsUser = 'LATERAL (SELECT * FROM users WHERE pk = t.user_pk OFFSET 0) u'

/** Whether a token authenticates, with its user as `u`. */
const authenticates = `u.is_active AND (NOT t.expiring OR t.expires > now())`

const byToken = (condition: string) => `SELECT t.pk AS "tokenPk", t.ceiling, t.pipeline, u.pk, u.username, rights.*
  FROM bearer_tokens t, ${itsUser}, LATERAL (${rightsOfUser('u.pk')}) rights
  WHERE ${condition} AND ${authenticates}`

/** The rights of a user in one value, in SQL: null for one that is not active. */
const heldBy = (user: string): string => `
  (SELECT jsonb_build_array(superuser, ARRAY(SELECT DISTINCT unnest(permissions) ORDER BY 1))
  FROM users held_by, LATERAL (${rightsOfUser(user)}) held WHERE held_by.pk = ${user} AND held_by.is_active)`

/**
 * Digests of the rights of callers, in SQL, in their order: null for a token that does not authenticate.
 *
 * @param tokens the digests of their tokens
 * @param users the keys of their effective users
 */
export const rightsDigests = (tokens: string, users: string): string => `
  SELECT (SELECT md5(concat(t.ceiling, ${heldBy('u.pk')}, CASE WHEN caller.user_pk <> u.pk THEN ${heldBy('caller.user_pk')} END))
    FROM bearer_tokens t, ${itsUser} WHERE t.key_hash = caller.token AND ${authenticates})
  FROM unnest(${tokens}, ${users}) WITH ORDINALITY caller(token, user_pk, position) ORDER BY caller.position`

const [byHash, byTokenPk] = [byToken('t.key_hash = $1'), byToken('t.pk = $1::uuid')]

/** An active user, as the columns of an `actorRow`. @param value the column's value, in SQL */
const activeUser = (column: 'pk' | 'username', value: string): string =>
  `SELECT u.pk, u.username, rights.* FROM users u, LATERAL (${rightsOfUser('u.pk')}) rights
  WHERE u.${column} = ${value} AND u.is_active`

const startsRow = z.object({ starts: z.string() })

/** The first 4 bytes of the digests of tokens that authenticate: of stored ones without a checksum of these keys, and of valid ones of jobs. */
export async function startsOfOthers(reader: EngineReader, keys: readonly string[]): Promise<Buffer> {
  const [row] = await reader.query(startsRow, {
    text: `SELECT coalesce(encode(string_agg(substring(t.key_hash FOR 4), ''), 'base64'), '') AS starts
      FROM (SELECT t.key_hash FROM tokens t JOIN users u ON u.pk = t.user_pk
          WHERE t.intent = 'api' AND (t.checksum_key = ANY($1::text[])) IS NOT TRUE AND ${authenticates}
        UNION ALL SELECT key_hash FROM exchanged_tokens WHERE expires > now()) t`,
    values: [keys],
  })
  return Buffer.from(row?.starts ?? '', 'base64')
}

const expiredRow = z.object({ identifier: z.string(), expires: z.date() })

/**
 * Finds a token that has expired and would authenticate otherwise. A caller who sends the whole secret had the token, so the
 * reason is given to no one else.
 *
 * @returns null when that is not the reason
 */
export async function expiredToken(reader: EngineReader, secret: string): Promise<z.output<typeof expiredRow> | null> {
  const [row] = await reader.query(expiredRow, {
    text: `SELECT t.identifier, t.expires FROM tokens t JOIN users u ON u.pk = t.user_pk
      WHERE u.is_active AND t.intent = 'api' AND t.key_hash = $1 AND t.expiring AND t.expires <= now()`,
    values: [sha256(secret)],
  })
  return row ?? null
}

const [byPk, byUsername] = [activeUser('pk', '$1'), activeUser('username', '$1')]

/** @returns null when the user does not exist or is not active */
export async function actorOfUser(
  reader: EngineReader,
  user: { readonly pk: number } | { readonly username: string },
): Promise<Actor | null> {
  const [row] = await reader.query(
    actorRow,
    'pk' in user ? { text: byPk, values: [user.pk] } : { text: byUsername, values: [user.username] },
  )
  return toActor(row)
}

/**
 * Refuses a token that is bound to stacks what no document of theirs does.
 *
 * @returns the key of the user
 * @throws {Problem} `permission_denied`
 */
export function requireUnbound({ pk, ...actor }: Actor): { readonly pk: number } {
  if (pk !== null && stacksOf(actor) === null) return { pk }
  throw new Problem('permission_denied', 'The token is bound to stacks: it writes by documents only.')
}

/** A caller who impersonates holds only what both users hold: what it delegates outlasts the impersonation. */
export const isSuperuser = ({ isSuperuser: itself, impersonator }: Actor): boolean =>
  itself && (impersonator === undefined || impersonator.isSuperuser)

/** The rights that the actor can delegate; see `isSuperuser`. */
export const rightsHeldBy = (actor: Actor) => ({
  superuser: isSuperuser(actor),
  permissions: [
    ...(actor.impersonator?.isSuperuser === false
      ? meet(actor.permissions, actor.impersonator.permissions)
      : actor.permissions),
  ],
})

/**
 * The actor who applies a stored document: it holds only the rights that it and each submitter can delegate now. The actor must
 * not gain the rights of the submitters, nor they those of the actor (docs/adr/0110-a-former-document-has-two-actors.md).
 *
 * @returns null when one of them is gone or inactive, or may no longer impersonate
 */
export async function withAuthors(
  reader: EngineReader,
  actor: Actor,
  authors: readonly ActorKeys[],
): Promise<Actor | null> {
  let result: Actor = { ...actor, authors }
  for (const keys of authors) {
    const author = await currentActor(reader, { ...keys, authors: undefined })
    if (author === null) return null
    const { superuser, permissions } = rightsHeldBy(author)
    if (!superuser && isOfOthers({ ...actor, authors: [keys] })) result = within(result, new Set(permissions))
  }
  return result
}

/**
 * The actor with the rights of this moment: they may have changed while the request waited.
 *
 * @returns null when the effective or the real user is gone or inactive, or may no longer impersonate; so for `authors`
 */
export async function currentActor(reader: EngineReader, actor: Actor | ActorKeys): Promise<Actor | null> {
  // The system actor of the bootstrap has no user to read.
  if (actor.pk === null && 'permissions' in actor) return actor
  const { authors, ...keys } = actor
  if (authors !== undefined) {
    const itself = await currentActor(reader, keys)
    return itself && withAuthors(reader, itself, authors)
  }
  const { pk, impersonator, ceiling, renews } = keys
  const read = (key: number | null) => (key === null ? null : actorOfUser(reader, { pk: key }))
  if (impersonator === undefined) {
    const found = await read(pk)
    return found && { ...limited(found, ceiling), ...jobOf(keys), ...(renews && { renews }) }
  }
  const [effective, real] = await Promise.all([read(pk), read(impersonator.pk)])
  return effective && real && actAs({ ...limited(real, ceiling), ...jobOf(keys) }, effective)
}

/**
 * @param token its secret as sent, or its key in a session
 * @returns null for a missing or expired token, one of another intent, and an inactive owner: a caller cannot
 *   distinguish them; `tokenPk` is null for the token of a job
 */
export async function actorOfToken(
  reader: EngineReader,
  token: { readonly secret: string } | { readonly pk: string },
): Promise<{ actor: Actor; tokenPk: string | null } | null> {
  const [row] = await reader.query(
    sessionRow,
    'secret' in token ? { text: byHash, values: [sha256(token.secret)] } : { text: byTokenPk, values: [token.pk] },
  )
  const found = toActor(row)
  if (found === null || row === undefined) return null
  const { tokenPk, ceiling, pipeline } = row
  const actor = ceiling === null ? found : limited(found, new Set(ceiling))
  if (pipeline !== null) return { actor: { ...actor, pipeline }, tokenPk: null }
  return { actor: ceiling === null ? actor : { ...actor, tokenPk }, tokenPk }
}
