import { z } from 'zod'
import { type Db, type Tx, transaction } from '../db/client.ts'
import { reader, withEngine } from '../db/engine-tx.ts'
import { query } from '../db/raw.ts'
import type { Keyring } from '../db/seal.ts'
import { Problem } from '../errors.ts'
import { isObject } from '../json-object.ts'
import { comparedName } from '../names.ts'
import { type Actor, allows, isOfStack, isWithin, meet, type Permission } from '../permissions.ts'
import type { Engine } from '../plan/engine.ts'
import { requireUnbound } from '../rights/actor.ts'
import { creatorOf, holdsAllOf } from '../rights/policy.ts'
import { lockRights } from '../rights/rights.ts'
import { audit } from './audit.ts'

/** Finding a token by its identifier, and the one view of a new token's secret. */

type Found = { readonly pk: string; readonly userPk: number }

/**
 * @param permission the permission to view tokens of other users
 * @throws {Problem} `not_found`, the same for a token that does not exist and one that may not be seen
 */
export async function findToken(tx: Db | Tx, actor: Actor, identifier: string, permission: Permission): Promise<Found> {
  const token = await tx.token.findUnique({ where: { identifier }, select: { pk: true, userPk: true } })
  if (token === null || !(token.userPk === actor.pk || allows(actor, permission))) throw notFound(permission)
  return token
}

/**
 * Finds a token that the caller may delete. Its policy decides again in the transaction that deletes it.
 *
 * @returns also the caller, with the rights to write the token
 * @throws {Problem} those of `viewKey`
 */
export async function findRemovable(db: Db, actor: Actor, identifier: string): Promise<{ pk: string; actor: Actor }> {
  const { pk, userPk } = await findToken(db, actor, identifier, 'delete_token')
  refuseImpersonator(actor, 'delete_token')
  if (await isNoMore(db, actor, pk)) return { pk, actor: { ...actor, renews: true } }
  if (!(await holdsAllOf(reader(db), actor, userPk))) throw notFound('delete_token')
  return { pk, actor }
}

type End = { readonly expiring: boolean; readonly expires: Date | null }
const endOf = ({ expiring, expires }: End): number =>
  expiring && expires ? expires.getTime() : Number.POSITIVE_INFINITY

const ceilingSchema = z.array(z.string()).nullable()

/**
 * Whether a token is the one of the request, which has a ceiling, or no more than that: an `api` token of the same user, which
 * has no more rights and ends no later. The holder may view its key and delete it. That never changes: no ceiling is ever raised.
 */
async function isNoMore(tx: Db | Tx, { tokenPk, ceiling }: Actor, pk: string): Promise<boolean> {
  if (tokenPk === undefined || ceiling === undefined) return false
  const found = await tx.token.findMany({ where: { pk: { in: [tokenPk, pk] } } })
  const [own, other] = [tokenPk, pk].map((key) => found.find((each) => each.pk === key))
  if (own === undefined || other === undefined) return false
  const rights = ceilingSchema.parse(other.ceiling)
  const isCovered = rights !== null && isWithin(new Set(rights), ceiling)
  return isCovered && other.userPk === own.userPk && other.intent === 'api' && endOf(other) <= endOf(own)
}

/**
 * The creator of a token, and its fields: its user is the caller by default. A token that is made by one with a ceiling ends with
 * it and has the same owners; one that ends no later is no more (see `isNoMore`), and gets the same ceiling.
 */
export async function newToken(db: Db, actor: Actor, body: unknown): Promise<{ actor: Actor; fields: unknown }> {
  if (!isObject(body)) return { actor, fields: body }
  const { tokenPk } = actor
  const fields = { user: actor.pk, ...body }
  const own = tokenPk === undefined ? null : await db.token.findUnique({ where: { pk: tokenPk } })
  if (own === null || fields.user !== actor.pk || (body.intent ?? 'api') !== 'api') return { actor, fields }
  if (!areShared(body.owners ?? own.owners, own.owners)) return { actor, fields }
  const expires = body.expires ?? own.expires?.toISOString()
  // A text that is no date is refused for that.
  if (endOf({ expiring: body.expiring !== false, expires: new Date(String(expires)) }) > endOf(own))
    return { actor, fields }
  return { actor: { ...actor, renews: true }, fields: { owners: own.owners, ...fields, ...(expires && { expires }) } }
}

/** Refuses a token with none of the owners of the request's token: it would have no rights. */
function areShared(sent: unknown, owners: readonly string[]): boolean {
  const named = [sent].flat()
  return named.length * owners.length === 0 || named.some((each) => owners.includes(comparedName(String(each))))
}

/** The use of a token outlasts an impersonation: the real user needs the permission, too. */
function refuseImpersonator({ impersonator }: Actor, permission: Permission): void {
  if (impersonator === undefined || allows(impersonator, permission)) return
  const text = `You impersonate another user, and lack the permission ${permission} yourself.`
  throw new Problem('permission_denied', text, { missing: [permission] })
}

/** @param permission that to view a token which is hidden: the answer is the same, and operators see that it was refused */
const notFound = (permission: Permission) =>
  new Problem('not_found', 'There is no such token.', { missing: [permission] })

/**
 * Returns a new token's secret, once, and only within a day of its creation. Afterwards only its hash is kept.
 *
 * @throws {Problem} `not_found` for a caller who may not view it: the owner may, a token with no fewer rights, and a caller with
 *   `view_token_key` and all rights of the owner; `permission_denied` for a caller who impersonates the owner without that;
 *   `key_gone` afterwards
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
    refuseImpersonator(actor, 'view_token_key')
    if (actor.pipeline !== undefined && token.userPk === (actor.impersonator ?? actor).pk)
      throw new Problem('permission_denied', 'The access token of a job is for no token of its own user.')
    const renews = await isNoMore(tx, actor, token.pk)
    return withEngine(tx, async (engineTx) => {
      const { self, permissions } = creatorOf(actor)
      // The token of another user carries no more than the viewer's rights (docs/adr/0031-tokens-carry-a-ceiling.md).
      const limit = renews || token.userPk === self ? null : permissions
      // Its owner may not become the last superuser while the token gets a ceiling.
      if (limit !== null) lockRights(engineTx)
      if (!renews && !(await holdsAllOf(engineTx, actor, token.userPk))) throw notFound('view_token_key')
      if (!renews) requireUnbound(actor)
      const key = await takeKey(tx, keyring, token.pk, limit)
      const action = 'view_key'
      const object = { name: identifier, was: null, owner: null, change: null, fields: {} }
      const changes = [{ model: 'service_core.token', key: token.pk, action, fields: [], object }] as const
      audit(engineTx, { actor, action, changes, requestId })
      return key
    })
  })
}

/** The time that a new token's secret is kept for its one view. */
export const keyViewHours = 24

const sealedRow = z.object({ sealed: z.string(), isFresh: z.boolean(), ceiling: z.array(z.string()).nullable() })

/** The row lock makes sure that only one of two callers at the same time gets the key. */
async function takeKey(tx: Tx, keyring: Keyring, pk: string, limit: readonly string[] | null): Promise<string> {
  const [row] = await query(tx, sealedRow, {
    text: `SELECT sealed_key AS sealed, created_at > now() - make_interval(hours => $2::integer) AS "isFresh", ceiling
      FROM tokens WHERE pk = $1::uuid AND sealed_key IS NOT NULL FOR UPDATE`,
    values: [pk, keyViewHours],
  })
  if (row === undefined || !row.isFresh)
    throw new Problem('key_gone', 'The key was shown once, or is older than a day: create another token.')
  const had = row.ceiling
  // Its bond to stacks is no right that the viewer could have.
  const ceiling = limit && (had === null ? limit : [...meet(new Set(limit), new Set(had)), ...had.filter(isOfStack)])
  const data = { sealedKey: null, ...(ceiling && { ceiling }) }
  await tx.token.update({ where: { pk }, data, select: { pk: true } })
  return keyring.open(row.sealed, { table: 'tokens', row: pk, column: 'sealed_key' })
}
