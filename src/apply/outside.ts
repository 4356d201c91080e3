import { z } from 'zod'
import type { Db } from '../db/client.ts'
import { query } from '../db/raw.ts'
import type { Keyring } from '../db/seal.ts'
import type { Registry } from '../models/registry.ts'
import type { Engine } from '../plan/engine.ts'
import { quoted } from '../plan/statements.ts'
import { digestKey, digestOf } from './audit.ts'
import { objectsNamed } from './history.ts'

/**
 * Applications and providers that differ from their last recorded change: they were changed or deleted past the service
 * (docs/adr/0065-changed-outside-is-a-digest.md).
 */

/** Whether the last recorded change `o` and the `present` row differ; null when they cannot be compared. */
const differs = 'CASE WHEN left(o.digest, 8) = left(present.digest, 8) THEN o.digest <> present.digest END'

/**
 * Whether a row was changed past the service, in SQL: null when that is not known, because no change of it was recorded
 * under this SECRET_KEY with these columns.
 *
 * @param row the alias of a row of applications or providers
 * @param models the placeholder of the models that it may have
 * @param key the placeholder of `digestKey`
 */
const isOutside = (row: string, models: string, key: string): string =>
  `(SELECT ${differs}
    FROM (SELECT ${digestOf(row, key)} AS digest) present, LATERAL (${lastOf(models, `${row}.pk::text`)}) o)`

type Placeholders = Readonly<Record<'applications' | 'providers' | 'key', string>>

/**
 * Whether an application or its provider was changed past the service, in SQL.
 *
 * @param row the alias of the application
 * @param values the placeholders of the models of each table, and of `digestKey`
 */
export const isOutsideWithProvider = (row: string, { applications, providers, key }: Placeholders): string =>
  `(${isOutside(row, applications, key)} OR (${row}.provider_pk IS NOT NULL
    AND (SELECT ${isOutside('p', providers, key)} FROM providers p WHERE p.pk = ${row}.provider_pk)))`

/** The last recorded change of an object. */
export const lastOf = (models: string, key: string): string =>
  `SELECT r.digest, r.name, r.model, r.key, r.action, r.owner, r.audit_pk FROM run_objects r
    WHERE r.model = ANY (${models}::text[]) AND r.key = ${key} ORDER BY r.audit_pk DESC, r.position DESC LIMIT 1`

/**
 * Whether an object whose last recorded change is `o`, and whose row is gone, was put back under another key. It is not asked for
 * existing rows, whose histories may be long.
 *
 * @param models the placeholder of the models of its table
 */
export const isPutBack = (models: string): string =>
  `EXISTS (SELECT FROM run_objects n
    WHERE n.model = ANY (${models}::text[]) AND n.name = o.name AND n.key <> o.key AND n.audit_pk > o.audit_pk)`

type Recorded = { readonly table: string; readonly key: 'uuid' | 'integer'; readonly models: readonly string[] }

/** The tables whose rows have a recorded state. */
export function recordedTables({ models }: Pick<Registry, 'models'>): Recorded[] {
  const labelled = models.filter(({ isLabelled }) => isLabelled === true)
  return [...Map.groupBy(labelled, ({ table }) => table)].flatMap(([table, all]) => {
    const [first] = all
    return first === undefined ? [] : [{ table, key: first.key, models: all.map(({ name }) => name) }]
  })
}

const answer = z.object({ isOutside: z.boolean().nullable() })

/**
 * @param owners those under which the caller sees applications; null: all
 * @returns whether an application that has, or had, this slug, or that has this key, or its provider, was changed or deleted past
 *   the service; null when that is not known
 */
export async function isApplicationOutside(
  db: Db,
  { registry, keyring }: Pick<Engine, 'registry' | 'keyring'>,
  { slug, key }: { readonly slug: string | null; readonly key: string | null },
  owners: readonly string[] | null,
): Promise<boolean | null> {
  const tables = new Map(recordedTables(registry).map(({ table, models }) => [table, models]))
  const [row] = await query(db, answer, {
    text: `SELECT bool_or(
          CASE WHEN a.pk IS NULL THEN o.action <> 'delete' AND o.digest IS NOT NULL AND NOT ${isPutBack('$1')}
          ELSE ${isOutsideWithProvider('a', { applications: '$1', providers: '$2', key: '$3' })} END) AS "isOutside"
      FROM (${objectsNamed('$1', '$4', '$5', '$6')}) named, LATERAL (${lastOf('$1', 'named.key')}) o
        LEFT JOIN applications a ON a.pk = o.key::uuid`,
    values: [tables.get('applications'), tables.get('providers'), digestKey(keyring), slug, owners, key],
  })
  return row?.isOutside ?? null
}

/** The rows of one statement. */
const portion = 2_000
/** The most rows that are written down. Others are counted. */
const mostKept = 10_000

const found = z.object({ model: z.string(), key: z.string(), name: z.string(), isDeleted: z.boolean() })
type Found = z.output<typeof found>

/** @property after the oldest transaction that has not ended */
const beginning = z.object({ after: z.bigint() })

/** @property last the key before the next portion; null after the last one */
const part = z.object({ rows: z.array(found), last: z.string().nullable() })

/**
 * Compares every application and provider, in portions, and records those that were changed or deleted past the service. It
 * writes nothing else.
 *
 * @returns their number
 */
export async function findOutside(db: Db, registry: Registry, keyring: Keyring): Promise<number> {
  const all: Found[] = []
  const [began] = await query(db, beginning, {
    text: 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS after',
    values: [],
  })
  for (const { table, key, models } of recordedTables(registry)) {
    const changed = changedPart(table, key)
    for await (const rows of partsOf(db, changed, [models, portion, digestKey(keyring)])) all.push(...rows)
    const deleted = deletedPart(table, key)
    for (const model of models)
      for await (const rows of partsOf(db, deleted, [[model], portion, models])) all.push(...rows)
  }
  await db.$transaction([
    db.outsideChange.deleteMany(),
    db.outsideChange.createMany({ data: all.slice(0, mostKept), skipDuplicates: true }),
    db.installation.updateMany({ data: { outsideAfter: all.length > mostKept ? 0 : (began?.after ?? null) } }),
  ])
  return all.length
}

async function* partsOf(db: Db, text: string, values: readonly unknown[]): AsyncGenerator<readonly Found[]> {
  for (let after: string | null = ''; after !== null; ) {
    const [read]: z.output<typeof part>[] = await query(db, part, { text, values: [after, ...values] })
    yield read?.rows ?? []
    after = read?.last ?? null
  }
}

const listed = (isDeleted: boolean): string =>
  `coalesce(jsonb_agg(jsonb_build_object('model', o.model, 'key', o.key, 'name', o.name, 'isDeleted', ${isDeleted})), '[]')`

/** The existing rows. Parameters: the key before, the models, the number of rows, and `digestKey`. */
const changedPart = (table: string, key: string): string =>
  `WITH part AS MATERIALIZED (
      SELECT t FROM ${quoted(table)} t WHERE $1 = '' OR t.pk > nullif($1, '')::${key} ORDER BY t.pk LIMIT $3
    )
    SELECT (SELECT ${listed(false)} FROM part p, LATERAL (${lastOf('$2', '(p.t).pk::text')}) o,
        LATERAL (SELECT ${digestOf('(p.t)', '$4')} AS digest) present WHERE ${differs}) AS rows,
      CASE WHEN count(*) = $3 THEN (array_agg((t).pk ORDER BY (t).pk DESC))[1]::text END AS last
    FROM part`

/**
 * Objects whose last recorded change is no deletion, whose row is gone, and that were not put back. Parameters: those above, with
 * the models of the table in place of `digestKey`.
 */
const deletedPart = (table: string, key: string): string =>
  `WITH part AS MATERIALIZED (
      SELECT DISTINCT r.key FROM run_objects r WHERE r.model = ANY ($2::text[]) AND r.key > $1 ORDER BY r.key LIMIT $3
    )
    SELECT (SELECT ${listed(true)} FROM part p, LATERAL (${lastOf('$2', 'p.key')}) o
        WHERE o.digest IS NOT NULL AND o.action <> 'delete' AND CASE
          WHEN EXISTS (SELECT FROM ${quoted(table)} t WHERE t.pk = p.key::${key}) THEN false
          ELSE NOT ${isPutBack('$4')} END) AS rows,
      CASE WHEN count(*) = $3 THEN max(key) END AS last
    FROM part`
