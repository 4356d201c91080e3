import { type Db, type Queryable, type Tx, transaction } from '../db/client.ts'
import type { Keyring } from '../db/seal.ts'
import { sql } from '../db/sql.ts'
import { Problem } from '../errors.ts'
import { type Actor, allows, type Permission } from '../permissions.ts'
import { audit } from './audit.ts'
import { mayPassFor } from './escalation.ts'
import type { Engine } from './inspect.ts'

/** Tokens as their owners name them, and the one view of a new token's secret (decisions.md 4). */

type Found = { pk: string; user: number }

/**
 * @param permission by which somebody may see tokens that are not his
 * @throws {Problem} `not_found`, alike for one that is not there and one that is not to be seen
 */
export async function findToken(
  q: Queryable,
  actor: Actor,
  identifier: string,
  permission: Permission,
): Promise<Found> {
  const [token] = await q.query<Found>(sql`SELECT pk, user_pk AS "user" FROM tokens WHERE identifier = ${identifier}`)
  if (token === undefined || !(token.user === actor.pk || allows(actor, permission))) throw hidden()
  return token
}

const hidden = () => new Problem('not_found', 'There is no such token.')

/**
 * Tells a new token's secret, once, and within a day of its making; afterwards nobody knows it but who was told.
 *
 * @throws {Problem} `not_found` for who may not see it: the owner may, and whoever has `view_token_key` and all rights
 *   of the owner; `permission_denied` for whoever acts as the owner without that; `key_gone` afterwards
 */
export function viewKey(
  db: Db,
  { keyring }: Pick<Engine, 'keyring'>,
  actor: Actor,
  identifier: string,
  requestId: string,
): Promise<string> {
  return transaction(db, async (tx) => {
    const token = await findToken(tx, actor, identifier, 'view_token_key')
    const { impersonator } = actor
    if (impersonator !== undefined && !allows(impersonator, 'view_token_key'))
      throw new Problem('permission_denied', 'You act as another, and lack the permission view_token_key yourself.')
    if (!(await mayPassFor(tx, actor, token.user))) throw hidden()
    const key = await takeKey(tx, keyring, token.pk)
    audit(
      tx,
      actor,
      'view_key',
      [{ model: 'service_core.token', key: token.pk, action: 'view_key', members: [] }],
      requestId,
    )
    return key
  })
}

/** Of two who ask at once, the row lets one have it. */
async function takeKey(tx: Tx, keyring: Keyring, pk: string): Promise<string> {
  const [row] = await tx.query<{ sealed: string; isFresh: boolean }>(sql`
    SELECT sealed_key AS sealed, created_at > now() - interval '24 hours' AS "isFresh"
    FROM tokens WHERE pk = ${pk} AND sealed_key IS NOT NULL FOR UPDATE`)
  if (row === undefined || !row.isFresh)
    throw new Problem('key_gone', 'The key was shown once, or is older than a day: make another token.')
  tx.send(sql`UPDATE tokens SET sealed_key = NULL WHERE pk = ${pk}`)
  return keyring.open(row.sealed, { table: 'tokens', row: pk, column: 'sealed_key' })
}
