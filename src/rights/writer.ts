import { isDeepStrictEqual } from 'node:util'
import type { EngineTx } from '../db/engine-tx.ts'
import { isObject } from '../json-object.ts'
import type { Model } from '../models/define.ts'
import { trustFields } from '../models/trusted-issuer.ts'
import { type Actor, rightOfStack } from '../permissions.ts'
import type { Effect } from '../plan/effect.ts'
import type { Key } from '../plan/statements.ts'
import { rightsHeldBy } from './actor.ts'
import { creatorOf } from './policy.ts'

/** Keeps what the last writer of a row held, where the row gives something to others later. */

type Sender = Pick<EngineTx, 'send'>

/** Keeps it with the row that an entry writes. Call it after the row is written. @param key the key of the row */
export function recordWriter(tx: Sender, actor: Actor, effect: Effect, key: Key | undefined): void {
  const { step, action, changed } = effect
  if (action === 'leave' || action === 'delete') return
  if (step.model.name === 'service_core.group') recordSettings(tx, actor, effect, key)
  if (step.model.name === 'service_rbac.trustedissuer' && action !== 'unchanged') recordCeiling(tx, actor, effect, key)
  if (step.model.name === 'service_core.user' && action === 'update' && changed.includes('username'))
    tx.send({ text: endOfTokens('user_pk'), values: [key] })
}

/** Whether a change from one value to another keeps the writer with the row. A roll back is not the writer of what others wrote. */
export const keepsWriter = ({ name }: Model, field: string, one: unknown, other: unknown): boolean =>
  name === 'service_rbac.trustedissuer' ||
  (name === 'service_core.group' && field === 'attributes' && !isDeepStrictEqual(settingsOf(one), settingsOf(other)))

const ceilingsText = `UPDATE trusted_issuers SET ceilings = CASE WHEN $3 THEN $2::jsonb
  WHEN EXISTS (SELECT FROM jsonb_array_elements(ceilings) c WHERE c = $2::jsonb->0) THEN ceilings ELSE ceilings || $2::jsonb END WHERE pk = $1::uuid`

/** Ends those that do not authenticate any more. OFFSET keeps the plan from comparing each with all. */
const endOfTokens = (of: 'issuer_pk' | 'user_pk') => `UPDATE exchanged_tokens e SET expires = now()
  WHERE e.${of} = $1 AND e.expires > now() AND NOT EXISTS (SELECT FROM bearer_tokens t WHERE t.pk = e.pk OFFSET 0)`

/**
 * Tokens by the rules of an issuer carry no more than its writer held (docs/adr/0031-tokens-carry-a-ceiling.md). Where an entry leaves
 * something as earlier writers had it, no more than each of them held: their keys may sign for the rules of others. Tokens that the
 * row no longer trusts end for good.
 */
function recordCeiling(tx: Sender, actor: Actor, { step, action, values }: Effect, key: Key | undefined): void {
  const isSaid = (name: string) =>
    step.attrs.has(name) || isDeepStrictEqual(values[name], step.model.fields.get(name)?.initial)
  const isWhole = action === 'create' || [...trustFields, 'rules'].every(isSaid)
  const { permissions, stacks } = creatorOf(actor)
  const own = permissions === null ? [] : [[...permissions, ...[...(stacks ?? [])].map(rightOfStack)]]
  tx.send({ text: ceilingsText, values: [key, JSON.stringify(own), isWhole] })
  tx.send({ text: endOfTokens('issuer_pk'), values: [key] })
}

/**
 * `settings` of a group's attributes reach its members. They may not reach a user who holds more than the caller who wrote
 * them, so what that caller held is kept with them (docs/adr/0030-settings-keep-what-their-writer-held.md).
 */

const settingsOf = (attributes: unknown): unknown => (isObject(attributes) ? attributes.settings : undefined)

/** Whether each right of a list is covered, like `covers` of `permissions.ts`. */
const coverAll = (rights: string, others: string): string =>
  `NOT EXISTS (SELECT FROM unnest(${others}) o WHERE o <> ALL(${rights}) AND split_part(o, '@', 1) <> ALL(${rights}))`

/** Keeps the rights with the settings. A caller who holds more than the earlier writer confirms unchanged settings. */
const text = `UPDATE groups SET settings_by_superuser = $2, settings_by_permissions = $3
  WHERE pk = $1::uuid AND attributes->'settings' = $4::jsonb AND ($5 OR (NOT settings_by_superuser
    AND ($2 OR (${coverAll('$3::text[]', 'settings_by_permissions')} AND NOT ${coverAll('settings_by_permissions', '$3::text[]')}))))`

/** Keeps the rights of the actor with the settings that an entry sends. @param key the key of the group */
function recordSettings(tx: Sender, actor: Actor, effect: Effect, key: Key | undefined): void {
  const { step, action, row, values } = effect
  const settings = settingsOf(values.attributes)
  if (!step.attrs.has('attributes') || settings === undefined) return
  const isWritten = action === 'create' || !isDeepStrictEqual(settingsOf(row?.attributes), settings)
  const { superuser, permissions } = rightsHeldBy(actor)
  tx.send({ text, values: [key, superuser, permissions, JSON.stringify(settings), isWritten] })
}
