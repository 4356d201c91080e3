import { keyring } from '../../src/db/seal.ts'
import { loadRegistry, permissionNames } from '../../src/models/registry.ts'
import { assemble } from '../../tools/seed/applications.ts'
import { organise, type Size } from '../../tools/seed/organisation.ts'
import { tables } from '../../tools/seed/rows.ts'
import type { Row } from '../../tools/seed/table.ts'
import { readTemplates } from '../../tools/seed/templates.ts'

export const registry = await loadRegistry()
export const key = keyring('a secret key for tests, 32 or more')
export const { templates } = await readTemplates(registry)
const today = new Date('2026-03-01T00:00:00Z')

const counted = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** All rows of a seed by table, with primary keys from 1 on. */
export function rowsOf(seed: number, size: Size) {
  const organisation = organise(seed, size, today, permissionNames(registry))
  const portfolio = assemble(organisation, templates)
  const keys = { users: counted(size.users), providers: counted(portfolio.providers.length) }
  const made = tables(organisation, { registry, keyring: key }, portfolio, keys)
  const rows: Record<string, Row[]> = {}
  for (const table of made) rows[table.name] = counted(table.items).flatMap((item) => [...table.rows(item - 1)])
  const of = (name: string): Row[] => rows[name] ?? []
  return { organisation, portfolio, tables: made, rows, of }
}
