import { z } from 'zod'
import { retrying } from '../db/backoff.ts'
import type { Db } from '../db/client.ts'
import { isTransient } from '../db/errors.ts'
import { execute, query } from '../db/raw.ts'
import type { Keyring } from '../db/seal.ts'
import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { toChangedRow } from '../plan/storage.ts'

/** Rows at a time: each may hold 100 000 characters. */
const portion = 50
const tries = { max: 8, stepMs: 50, canRetry: isTransient }

/**
 * Seals secrets that an earlier version stored in `settings`, because its models did not declare them as secrets. A migration
 * cannot do it: it has no key. It runs at each start of the API, because a worker of that version may have written more. A row
 * that is written meanwhile is left: this version writes sealed values. Each table is read once for all its models.
 *
 * @returns how many rows were sealed
 */
export async function sealOpenSecrets(db: Db, { models }: Registry, keyring: Keyring): Promise<number> {
  const byTable = Map.groupBy(
    models.filter((model) => secretsOf(model).length > 0),
    ({ table }) => table,
  )
  let sealed = 0
  for (const [table, ofTable] of byTable) {
    let after: number | null = null
    for (;;) {
      const rows: OpenRow[] = await retrying(() => readPortion(db, table, ofTable, after), tries)
      for (const [index, model] of ofTable.entries()) {
        const own = rows.filter((row) => row.model === index)
        sealed += await retrying(() => replace(db, model, own, keyring), tries)
      }
      if (rows.length < portion) break
      after = rows.at(-1)?.pk ?? null
    }
  }
  return sealed
}

const secretsOf = ({ fields }: Model): string[] =>
  [...fields.values()].flatMap(({ name, storage }) => (storage.in === 'secrets' ? [name] : []))

const openRow = z.object({
  pk: z.int(),
  /** The index of the model of the row. */
  model: z.int(),
  uuid: z.guid(),
  settings: z.record(z.string(), z.unknown()),
  secrets: z.record(z.string(), z.string().nullable()),
})
type OpenRow = z.output<typeof openRow>

function readPortion(db: Db, table: string, models: readonly Model[], after: number | null): Promise<OpenRow[]> {
  const values: unknown[] = [after, portion]
  const cases = models.map((model, index) => {
    const is = Object.entries(model.discriminator).map(([column, value]) => `"${column}" = $${values.push(value)}`)
    const isOpen = `jsonb_exists_any(settings, $${values.push(secretsOf(model))}::text[])`
    return `WHEN ${[...is, isOpen].join(' AND ')} THEN ${index}`
  })
  return query(db, openRow, {
    text: `SELECT * FROM (
        SELECT pk, CASE ${cases.join(' ')} END AS model, uuid::text AS uuid, settings, secrets FROM "${table}"
        WHERE $1::integer IS NULL OR pk > $1::integer) found
      WHERE model IS NOT NULL ORDER BY pk LIMIT $2`,
    values,
  })
}

async function replace(db: Db, model: Model, rows: readonly OpenRow[], keyring: Keyring): Promise<number> {
  if (rows.length === 0) return 0
  const anew = rows.map((row) => {
    const { columns } = toChangedRow(model, row, [], row.settings, keyring)
    return {
      pk: row.pk,
      before: { settings: row.settings, secrets: row.secrets },
      after: { settings: columns.get('settings'), secrets: columns.get('secrets') },
    }
  })
  return execute(db, {
    text: `UPDATE "${model.table}" SET settings = anew.after->'settings', secrets = anew.after->'secrets'
      FROM jsonb_to_recordset($1::jsonb) AS anew(pk integer, before jsonb, after jsonb)
      WHERE "${model.table}".pk = anew.pk AND "${model.table}".settings = anew.before->'settings'
        AND "${model.table}".secrets = anew.before->'secrets'`,
    values: [JSON.stringify(anew)],
  })
}
