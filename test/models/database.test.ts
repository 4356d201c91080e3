import { beforeAll, describe, expect, test } from 'vitest'
import type { Model } from '../../src/models/define.ts'
import { loadRegistry, type Registry } from '../../src/models/index.ts'
import { freshDatabase } from '../support/database.ts'

/** Model files and prisma/schema.prisma both name columns: they must name the same ones. */

let registry: Registry
let columns: ReadonlyMap<string, ReadonlySet<string>>
let uniques: ReadonlySet<string>
let foreignKeys: ReadonlySet<string>

beforeAll(async () => {
  registry = await loadRegistry()
  const { db } = await freshDatabase()
  const rows = await db.pool.query<{ table_name: string; column_name: string }>(
    "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
  )
  columns = new Map(
    [...Map.groupBy(rows.rows, (row) => row.table_name)].map(([table, of]) => [
      table,
      new Set(of.map((row) => row.column_name)),
    ]),
  )
  const indexes = await db.pool.query<{ name: string }>(`
    SELECT c.relname || '.' || a.attname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] WHERE i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnatts = 1`)
  uniques = new Set(indexes.rows.map((row) => row.name))
  const keys = await db.pool.query<{ name: string }>(`
    SELECT c.relname || '.' || a.attname || ' -> ' || r.relname AS name FROM pg_constraint k
    JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class r ON r.oid = k.confrelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1] WHERE k.contype = 'f' AND cardinality(k.conkey) = 1`)
  foreignKeys = new Set(keys.rows.map((row) => row.name))
})

const columnsOf = (model: Model): string[] => {
  const own = [...model.members.values()].flatMap(({ place }) =>
    place.in === 'column' || place.in === 'sealed' ? [place.column] : [],
  )
  return [
    'pk',
    ...own,
    ...Object.keys(model.fixed),
    ...(model.packed ? ['settings', 'secrets'] : []),
    ...(model.uuid ? ['uuid'] : []),
  ]
}

describe('every model', () => {
  test('stores its members in columns that the migrations made', () => {
    const missing = registry.models.flatMap((model) =>
      columnsOf(model)
        .filter((column) => !columns.get(model.table)?.has(column))
        .map((column) => `${model.name}: ${model.table}.${column}`),
    )
    expect(missing).toEqual([])
    expect(registry.models.length).toBeGreaterThan(14)
  })

  test('links through join tables and mirrors references in columns that exist', () => {
    const named = registry.models.flatMap((model) => [
      ...[...model.members.values()].flatMap(({ place }) =>
        place.in === 'link'
          ? [
              [place.table, place.own],
              [place.table, place.other],
            ]
          : [],
      ),
      ...(model.mirror === undefined
        ? []
        : [model.mirror.own, ...Object.values(model.mirror.columns)].map((column) => [model.mirror?.table, column])),
    ])
    const missing = named.filter(([table = '', column = '']) => !columns.get(table)?.has(column))
    expect(missing).toEqual([])
    expect(named.length).toBeGreaterThan(10)
  })

  test('has a unique index behind each member that must be unique', () => {
    const columnOf = (model: Model) => (name: string) => {
      const place = model.members.get(name)?.place
      return `${model.table}.${place?.in === 'column' ? place.column : name}`
    }
    const wanted = registry.models.flatMap((model) => model.unique.map(columnOf(model)))
    const exclusive = registry.models.flatMap((model) =>
      [...model.members.values()].flatMap(({ place }) =>
        place.in === 'link' && place.exclusive === true ? [`${place.table}.${place.other}`] : [],
      ),
    )
    // docs/adr/0020-new-rows-are-written-outright.md
    const single = registry.models.flatMap((model) =>
      model.identifiers.filter((set) => set.length === 1).flatMap((set) => set.map(columnOf(model))),
    )
    expect([...wanted, ...exclusive, ...single].filter((name) => !uniques.has(name))).toEqual([])
    expect(single).toContain('applications.slug')
    expect(wanted).toContain('providers.oauth2_client_id')
    expect(exclusive).toEqual(['backchannel_providers.provider_pk'])
  })

  // A worker relies on them: docs/adr/0005-one-look-per-entry.md.
  test('has a foreign key behind each reference', () => {
    const wanted = registry.models.flatMap((model) =>
      [...model.members.values()].flatMap(({ reference, place }) => {
        const target = registry.families.get(reference?.family ?? '')?.table
        if (reference === undefined) return []
        if (place.in === 'column') return [`${model.table}.${place.column} -> ${target}`]
        if (place.in === 'link') return [`${place.table}.${place.other} -> ${target}`]
        return [`${model.mirror?.table}.${model.mirror?.columns[reference.family]} -> ${target}`]
      }),
    )
    expect(wanted.filter((name) => !foreignKeys.has(name))).toEqual([])
    expect(wanted).toContain('provider_references.property_mapping_pk -> property_mappings')
    expect(wanted).toContain('applications.provider_pk -> providers')
  })
})
