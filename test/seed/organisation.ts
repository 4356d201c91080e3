import { keyring } from '../../src/db/seal.ts'
import { loadRegistry, permissionNames } from '../../src/models/index.ts'
import { assemble } from '../../src/seed/applications.ts'
import { organise, type Size } from '../../src/seed/organisation.ts'
import { tables } from '../../src/seed/rows.ts'
import type { Row } from '../../src/seed/table.ts'
import { readTemplates } from '../../src/seed/templates.ts'

export const registry = await loadRegistry()
export const key = keyring('a secret key for tests, 32 or more')
const templates = await readTemplates(registry)
const today = new Date('2026-03-01T00:00:00Z')

const counted = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

/** All rows of a seed by table, as if the database had given the keys from 1 on. */
export function rowsOf(seed: number, size: Size) {
  const organisation = organise(seed, size, today, permissionNames(registry))
  const portfolio = assemble(organisation, templates)
  const keys = { users: counted(size.users), providers: counted(portfolio.providers.length) }
  const made = tables(organisation, { registry, keyring: key }, portfolio, keys)
  const rows: Record<string, Row[]> = {}
  for (const table of made) rows[table.name] = counted(table.pieces).flatMap((piece) => [...table.rows(piece - 1)])
  const of = (name: string): Row[] => rows[name] ?? []
  return { organisation, portfolio, tables: made, rows, of }
}
