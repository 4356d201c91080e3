import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import { withExample } from '../example.ts'
import type { Registry } from '../models/registry.ts'
import { type Actor, allows, allowsFor, mayNameUser } from '../permissions.ts'
import { rightsOfUser } from '../rights/actor.ts'

/** The servers that read the provider of an application: where they are found, and how far they have read. */

const ms = (example: number, description: string) => withExample(z.number().nullable(), example, description)

export const consumer = z
  .object({
    name: withExample(z.string().nullable(), 'sign-in-1', 'The user that reads; null without `view_user`.'),
    issuer: withExample(
      z.string().nullable(),
      'https://id.example.com',
      'Where applications find it, as it registered.',
    ),
    behind_ms: ms(0, 'The age of the last change that it has not read; 0: none. Null: it does not follow changes.'),
    silent_ms: ms(1_200, 'How long ago it last asked for changes. Null: it does not follow them.'),
  })
  .meta({ id: 'ConsumerOfApplication' })

export type Consumer = z.output<typeof consumer>

const row = consumer.omit({ name: true }).extend({
  pk: z.int(),
  username: z.string(),
  isSuperuser: z.boolean(),
  permissions: z.array(z.string()),
  kind: z.string(),
  owner: z.string().nullable(),
})

const msSince = (at: string) => `greatest(0, round(extract(epoch FROM now() - ${at}) * 1000))::float8`

/** Whether a change for consumers is not visible in a snapshot, in SQL. @param since the snapshot */
export const isSince = (since: string): string =>
  `d.changed_in >= pg_snapshot_xmin(${since})::text::bigint AND NOT pg_visible_in_snapshot(d.changed_in::text::xid8, ${since})`

/** A hundred at most. */
const text = `SELECT u.pk, u.username, rights.superuser AS "isSuperuser", rights.permissions, p.kind, p.owner, c.issuer,
    CASE WHEN c.revision IS NOT NULL THEN ${msSince('c.seen_at')} END AS silent_ms,
    CASE WHEN c.revision IS NOT NULL THEN coalesce((SELECT ${msSince('min(d.at)')} FROM consumer_changes d
      WHERE ${isSince('c.revision::pg_snapshot')} AND (d.provider_pk = p.pk OR d.provider_pk IS NULL)), 0) END AS behind_ms
  FROM applications a JOIN providers p ON p.pk = a.provider_pk JOIN consumers c ON c.kind = p.kind
    JOIN users u ON u.pk = c.user_pk AND u.is_active
    CROSS JOIN LATERAL (${rightsOfUser('u.pk')}) rights
  WHERE a.pk = $1::uuid AND (c.issuer IS NOT NULL OR c.revision IS NOT NULL) ORDER BY u.username LIMIT 100`

/**
 * Reads the consumers that may read the provider of an application now. An issuer counts only if it may record logins: a reader
 * alone does not say where users sign in.
 *
 * @param pk the key of the application
 * @returns none to a caller who may not view the provider
 */
export async function readConsumers(db: Db, { kinds }: Registry, caller: Actor, pk: string): Promise<Consumer[]> {
  const rows = await query(db, row, { text, values: [pk] })
  return rows.flatMap(({ kind, owner, permissions, issuer: registered, behind_ms, silent_ms, ...user }) => {
    const itself: Actor = { ...user, permissions: new Set(permissions) }
    const toView = `view_${kinds.get(kind)?.resource}` as const
    const issuer = allows(itself, 'record_sign_in') ? registered : null
    const isShown = [caller, itself].every((each) => allowsFor(each, toView, owner)) && (issuer ?? silent_ms) !== null
    return isShown ? { name: mayNameUser(caller, user.pk) ? user.username : null, issuer, behind_ms, silent_ms } : []
  })
}
