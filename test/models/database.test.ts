import { describe, expect, test } from 'vitest'
import type { Model } from '../../src/models/define.ts'
import { loadRegistry } from '../../src/models/registry.ts'
import { freshDatabase } from '../support/database.ts'

/** Model files and prisma/schema.prisma both name columns: the names must agree. */

const registry = await loadRegistry()
const { pool } = await freshDatabase()
const rows = await pool.query<{ table_name: string; column_name: string }>(
  "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
)
const columns: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  [...Map.groupBy(rows.rows, (row) => row.table_name)].map(([table, of]) => [
    table,
    new Set(of.map((row) => row.column_name)),
  ]),
)
const indexes = await pool.query<{ name: string }>(`
    SELECT c.relname || '.' || a.attname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 1`)
const uniques: ReadonlySet<string> = new Set(indexes.rows.map((row) => row.name))
const keys = await pool.query<{ name: string }>(`
    SELECT c.relname || '.' || a.attname || ' -> ' || r.relname AS name FROM pg_constraint k
    JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class r ON r.oid = k.confrelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1] WHERE k.contype = 'f' AND cardinality(k.conkey) = 1`)
const foreignKeys: ReadonlySet<string> = new Set(keys.rows.map((row) => row.name))

const columnsOf = (model: Model): string[] => {
  const own = [...model.fields.values()].flatMap(({ storage }) =>
    storage.in === 'column' || storage.in === 'sealed' ? [storage.column] : [],
  )
  return [
    'pk',
    ...own,
    ...Object.keys(model.discriminator),
    ...(model.storedInJson ? ['settings', 'secrets'] : []),
    ...(model.uuid ? ['uuid'] : []),
  ]
}

describe('every model', () => {
  test('stores its fields in columns that the migrations create', () => {
    const missing = registry.models.flatMap((model) =>
      columnsOf(model)
        .filter((column) => !columns.get(model.table)?.has(column))
        .map((column) => `${model.name}: ${model.table}.${column}`),
    )
    expect(missing).toEqual([])
    expect(registry.models.length).toBeGreaterThan(14)
  })

  test('may be what a setting of a provider kind refers to, without a migration', () => {
    // Rows of these belong to one user, or to jobs: no setting refers to them.
    const owned = ['token', 'totpdevice', 'trustedissuer', 'userconsent']
    const targets = new Set(registry.models.map(({ target }) => target).filter((target) => !owned.includes(target)))
    for (const { referenceRows } of registry.kinds.values())
      expect(new Set(Object.keys(referenceRows?.columns ?? {}))).toEqual(targets)
  })

  test('stores links and reference rows in columns that exist', () => {
    const named = registry.models.flatMap((model) => [
      ...[...model.fields.values()].flatMap(({ storage }) =>
        storage.in === 'link'
          ? [
              [storage.table, storage.own],
              [storage.table, storage.other],
            ]
          : [],
      ),
      ...(model.referenceRows === undefined
        ? []
        : [model.referenceRows.own, ...Object.values(model.referenceRows.columns).map(({ name }) => name)].map(
            (column) => [model.referenceRows?.table, column],
          )),
    ])
    const missing = named.filter(([table = '', column = '']) => !columns.get(table)?.has(column))
    expect(missing).toEqual([])
    expect(named.length).toBeGreaterThan(10)
  })

  test('has a unique index for each unique field', () => {
    const columnOf = (model: Model) => (name: string) => {
      const storage = model.fields.get(name)?.storage
      return `${model.table}.${storage?.in === 'column' ? storage.column : name}`
    }
    const wanted = registry.models.flatMap((model) => model.unique.map(columnOf(model)))
    const exclusive = registry.models.flatMap((model) =>
      [...model.fields.values()].flatMap(({ storage }) =>
        storage.in === 'link' && storage.exclusive === true ? [`${storage.table}.${storage.other}`] : [],
      ),
    )
    // An identifier finds one row at most, also while others write (docs/adr/0046-writes-are-collected.md).
    const single = registry.models.flatMap((model) =>
      model.identifiers.filter((set) => set.length === 1).flatMap((set) => set.map(columnOf(model))),
    )
    expect([...wanted, ...exclusive, ...single].filter((name) => !uniques.has(name))).toEqual([])
    expect(single).toContain('applications.slug')
    expect(wanted).toContain('providers.oauth2_client_id')
    expect(exclusive).toEqual(['backchannel_providers.provider_pk'])
  })

  // The worker relies on them: docs/adr/0005-one-statement-a-round.md.
  test('has a foreign key for each reference', () => {
    const wanted = registry.models.flatMap((model) =>
      [...model.fields.values()].flatMap(({ reference, storage }) => {
        const target = registry.targets.get(reference?.target ?? '')?.table
        if (reference === undefined) return []
        if (storage.in === 'column') return [`${model.table}.${storage.column} -> ${target}`]
        if (storage.in === 'link') return [`${storage.table}.${storage.other} -> ${target}`]
        return [`${model.referenceRows?.table}.${model.referenceRows?.columns[reference.target]?.name} -> ${target}`]
      }),
    )
    expect(wanted.filter((name) => !foreignKeys.has(name))).toEqual([])
    expect(wanted).toContain('provider_references.property_mapping_pk -> property_mappings')
    expect(wanted).toContain('applications.provider_pk -> providers')
  })
})
