import { z } from 'zod'
import { auditValues } from '../apply/audit.ts'
import type { Db, Tx } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { execute, query, unprepared, Values } from '../db/raw.ts'
import { conditionsOf, ofKinds } from '../lists/conditions.ts'
import { isSince } from '../lists/consumers.ts'
import type { Filter } from '../lists/filters.ts'
import { type Actor, ownersWith } from '../permissions.ts'
import { rightsDigests } from '../rights/actor.ts'

/**
 * What has changed for consumers of configurations (docs/adr/0140-consumers-read-configurations.md). A revision of theirs is the
 * snapshot of PostgreSQL, cut behind the last change: it stays the same until the next one, and is the same in every process.
 */

/** The kind and the owners of a provider that changed; null: very many changed. */
const change = z.object({ kind: z.string().nullable(), owners: z.array(z.string()) })
export type Change = z.output<typeof change>

/** A request that waits: the digest of its token, and its effective user. */
export type Caller = { readonly token: Buffer; readonly user: number }

/** More changes than that are answered by all configurations. */
export const mostChanges = 1_000

const row = z.object({
  snapshot: z.string(),
  /** The database to which the snapshot belongs. */
  server: z.string(),
  /** Whether all changes since `since` are known still. */
  isKnown: z.boolean(),
  /** Whether there are more changes than `mostChanges`: `changes` has some of them. */
  areMany: z.boolean(),
  changes: z.array(change),
  /** A digest of the rights of each caller; null: its token does not authenticate. */
  rights: z.array(z.string().nullable()),
})
export type Changes = z.output<typeof row>

/** Whether a consumer has to read something: changes that are too many, or not known any more, concern all. */
export const mayConcern = ({ isKnown, areMany, changes }: Changes, concerns: (change: Change) => boolean): boolean =>
  !isKnown || areMany || changes.some(concerns)

/** The owner of now is one more: a transaction does not see the one that another, which is open, gives to a provider. */
const text = `WITH since AS MATERIALIZED (SELECT $1::text::pg_snapshot AS at),
    changed AS MATERIALIZED (
      SELECT d.kind, d.owners || ARRAY(SELECT p.owner::text FROM providers p WHERE p.pk = d.provider_pk AND p.owner IS NOT NULL) AS owners
      FROM consumer_changes d, since WHERE ${isSince('since.at')} LIMIT ${mostChanges + 1}),
    kept AS MATERIALIZED (SELECT coalesce((SELECT changes_since FROM installation), 0) AS since),
    last AS MATERIALIZED (SELECT greatest((SELECT max(changed_in) FROM consumer_changes), since) AS it FROM kept),
    open AS MATERIALIZED (SELECT array_agg(x::text::bigint ORDER BY x) AS them
      FROM pg_snapshot_xip(pg_current_snapshot()) x, last WHERE x::text::bigint <= it)
  SELECT concat(coalesce(them[1], it + 1), ':', it + 1, ':', array_to_string(them, ',')) AS snapshot,
    (SELECT concat(system_identifier, ' ', (SELECT oid FROM pg_database WHERE datname = current_database()), ' ',
      (SELECT id FROM installation)) FROM pg_control_system()) AS server,
    coalesce((SELECT pg_snapshot_xmax(at)::text::bigint > kept.since AND pg_snapshot_xmax(at) <= pg_snapshot_xmax(pg_current_snapshot())
        AND NOT EXISTS (SELECT FROM pg_snapshot_xip(at) x WHERE x::text::bigint <= kept.since
          AND x NOT IN (SELECT pg_snapshot_xip(pg_current_snapshot()))) FROM since), false) AS "isKnown",
    (SELECT count(*) > ${mostChanges} FROM changed) AS "areMany",
    ARRAY(SELECT DISTINCT jsonb_build_object('kind', kind, 'owners', owners) FROM changed) AS changes,
    ARRAY(${rightsDigests('$2::bytea[]', '$3::integer[]')}) AS rights
  FROM kept, last, open`

/**
 * Reads the changes since a snapshot, and the rights of callers, by one statement.
 *
 * @param since null: none are read
 * @throws {Problem} `unavailable` when the database does not answer in time
 */
export async function readChanges(db: Db, since: string | null, callers: readonly Caller[]): Promise<Changes> {
  const values = [since, callers.map(({ token }) => token), callers.map(({ user }) => user)]
  const [found] = await inTime(query(db, row, { text, values }))
  if (found === undefined) throw new Error('a statement that always has a row had none')
  return found
}

/** The configurations of a kind, as a route declares them. */
type Listed = {
  readonly kind: string
  readonly permission: `view_${string}`
  readonly filters: Readonly<Record<string, Filter>>
}

/** @property sent values of filters @property after the key behind which the page begins @property since a snapshot */
export type Asked = {
  readonly sent: Readonly<Record<string, unknown>>
  readonly after: number
  readonly size: number
  readonly since?: string | undefined
}

/** @property changed how many changed: more than `mostChanges` for all @property gone those that the caller has to forget */
const foundRow = z.object({ keys: z.array(z.int()), gone: z.array(z.int()), changed: z.int() })

/** More rows than that are not compared one by one. */
const mostRows = 20 * mostChanges

/** Finds the keys of a page, or of what has changed: one more than asked for, when there are more. */
export async function findConfigurations(
  tx: Tx,
  { kind, permission, filters }: Listed,
  actor: Actor,
  { sent, after, size, since }: Asked,
): Promise<z.output<typeof foundRow>> {
  const values = new Values()
  const narrowed = Object.entries(filters).flatMap(([name, filter]) =>
    sent[name] === undefined ? [] : [{ name, filter, value: sent[name] }],
  )
  const spec = { view: { model: 'Provider' }, search: '', seen: ofKinds({ [kind]: permission }) } as const
  const shown = ['true', ...conditionsOf(spec, { actor, filters: narrowed }, values.bind)].join(' AND ')
  const [of, owners, from] = [kind, ownersWith(actor, permission), since ?? null].map(values.bind)
  const isChanged = since === undefined ? 'true' : 'pk IN (SELECT provider_pk FROM changed)'
  const text = `WITH since AS MATERIALIZED (SELECT ${from}::text::pg_snapshot AS at),
      changed AS MATERIALIZED (SELECT d.provider_pk, d.owners FROM consumer_changes d, since
        WHERE ${isSince('since.at')} AND (d.kind = ${of} OR d.provider_pk IS NULL) LIMIT ${mostRows})
    SELECT ARRAY(SELECT pk FROM providers WHERE kind = ${of} AND ${shown} AND ${isChanged} AND pk > ${values.bind(after)}
        ORDER BY pk LIMIT ${values.bind(size + 1)}) AS keys,
      ARRAY(SELECT DISTINCT provider_pk FROM changed WHERE provider_pk IS NOT NULL
          AND (${owners}::text[] IS NULL OR owners && ${owners}::text[])
          AND NOT EXISTS (SELECT FROM providers WHERE pk = provider_pk AND ${shown})
        ORDER BY 1 LIMIT ${mostChanges + 1}) AS gone,
      (SELECT CASE WHEN count(*) = ${mostRows} OR bool_or(provider_pk IS NULL) THEN ${mostChanges + 1}
        ELSE count(DISTINCT provider_pk) END::integer FROM changed) AS changed`
  const [found] = await query(tx, foundRow, unprepared({ text, values: values.list }))
  if (found === undefined) throw new Error('a statement that always has a row had none')
  return found
}

/**
 * Records when a consumer last read, and what it has; with an audit row for the first read of each day (UTC).
 *
 * @param read whether it may open secrets, and the snapshot of the revision that it sent
 */
export async function recordRead(
  db: Db,
  { actor, id }: { readonly actor: Actor; readonly id: string },
  { kind, opens, snapshot }: { readonly kind: string; readonly opens: boolean; readonly snapshot: string | undefined },
): Promise<void> {
  const changes = [{ model: 'consumer', key: kind, action: 'read', fields: opens ? ['secrets'] : [] }] as const
  const row = auditValues({ actor, action: 'read_configurations', changes, requestId: id })
  const read = execute(db, {
    text: `WITH noted AS (
        INSERT INTO consumers AS c (user_pk, kind, revision, seen_at, day, reads)
        SELECT $10::integer, $11, $12::text, now(), (now() AT TIME ZONE 'UTC')::date, 1
        WHERE NOT EXISTS (SELECT FROM consumers k WHERE k.user_pk = $10::integer AND k.kind = $11
          AND k.seen_at > now() - interval '1 second' AND ($12::text IS NULL OR k.revision = $12))
        ON CONFLICT (user_pk, kind) DO UPDATE SET revision = coalesce(excluded.revision, c.revision), seen_at = now(),
          day = excluded.day, reads = CASE WHEN c.day = excluded.day THEN c.reads + 1 ELSE 1 END
        RETURNING reads)
      INSERT INTO audit_rows (${row.columns}) SELECT $1::integer, $2, $3::integer, $4, $5, $6::jsonb, $7::text[], $8, $9::uuid
        FROM noted WHERE reads = 1`,
    values: [...row.values, actor.pk, kind, snapshot ?? null],
  })
  await inTime(read)
}
