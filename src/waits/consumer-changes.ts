import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { inTime } from '../db/in-time.ts'
import { query } from '../db/raw.ts'
import { rightsDigests } from '../rights/actor.ts'

/**
 * What has changed for consumers of configurations (docs/adr/0140-consumers-follow-by-snapshots.md). A revision of theirs is the
 * snapshot of PostgreSQL, cut behind the last change: it stays the same until the next one, and is the same in every process.
 */

/** An object that changed. `kind` and `owners` are those of a provider; other objects concern all kinds. */
const change = z.object({ source: z.string(), kind: z.string().nullable(), owners: z.array(z.string()) })
export type Change = z.output<typeof change>

/** A request that waits: the digest of its token, and its effective user. */
export type Caller = { readonly token: Buffer; readonly user: number }

/** More changes than that are answered by all configurations. */
export const mostChanges = 1_000

const row = z.object({
  snapshot: z.string(),
  /** The PostgreSQL to which the snapshot belongs. */
  server: z.string(),
  /** Whether all changes since `since` are known still. */
  isKnown: z.boolean(),
  changes: z.array(change),
  /** A digest of the rights of each caller; null: its token does not authenticate. */
  rights: z.array(z.string().nullable()),
})
export type Changes = z.output<typeof row>

/** Whether a consumer has to read something: changes that are too many, or not known any more, concern all. */
export const mayConcern = ({ isKnown, changes }: Changes, concerns: (change: Change) => boolean): boolean =>
  !isKnown || changes.length > mostChanges || changes.some(concerns)

/** The rows that changed since a snapshot, in SQL. @param since the snapshot, as a row `since` with the column `at` */
export const changedSince = `SELECT c.* FROM consumer_changes c, since
  WHERE c.changed_in >= pg_snapshot_xmin(since.at)::text::bigint AND NOT pg_visible_in_snapshot(c.changed_in::text::xid8, since.at)`

const text = `WITH since AS MATERIALIZED (SELECT $1::text::pg_snapshot AS at),
    kept AS MATERIALIZED (SELECT coalesce((SELECT changes_since FROM installation), 0) AS since),
    last AS MATERIALIZED (SELECT greatest((SELECT max(changed_in) FROM consumer_changes), since) AS it FROM kept),
    open AS MATERIALIZED (SELECT array_agg(x::text::bigint ORDER BY x) AS them
      FROM pg_snapshot_xip(pg_current_snapshot()) x, last WHERE x::text::bigint <= it)
  SELECT concat(coalesce(them[1], it + 1), ':', it + 1, ':', array_to_string(them, ',')) AS snapshot,
    (SELECT system_identifier::text FROM pg_control_system()) AS server,
    coalesce((SELECT pg_snapshot_xmin(at)::text::bigint > kept.since AND pg_snapshot_xmax(at) <= pg_snapshot_xmax(pg_current_snapshot())
      FROM since), false) AS "isKnown",
    ARRAY(SELECT jsonb_build_object('source', source, 'kind', kind, 'owners', owners)
      FROM (SELECT DISTINCT source, kind, owners FROM (${changedSince} LIMIT ${mostChanges + 1}) first) found) AS changes,
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
