import { readTables } from '../db/catalog.ts'
import type { Db } from '../db/client.ts'
import type { ListSpec } from './listed.ts'
import { columnOf, tableOf } from './tables.ts'

/**
 * Checks that the database has all that a list declares: its columns, and the triggers that keep its count, without which it
 * would answer `count: 0`.
 *
 * @throws {Error} naming the list and what is missing
 */
export async function checkList(db: Db, { path, view, count, order, filters, own }: ListSpec) {
  const { name, unique } = tableOf(view.model)
  const table = (await readTables(db)).get(name)
  if (table === undefined) throw new Error(`${path} lists ${view.model}, but there is no table ${name}`)
  if (count === 'kept' && !table.isCounted)
    throw new Error(`${path} declares that its count is kept, but table ${name} lacks the triggers of keep_row_count()`)
  const filtered = Object.values(filters).map(({ on }) => (typeof on === 'string' ? on : undefined))
  for (const field of [...Object.values(order), ...filtered, own?.field, ...unique])
    if (field !== undefined && !table.columns.includes(columnOf(view.model, field)))
      throw new Error(
        `${path} names the field ${field}, but table ${name} has no column ${columnOf(view.model, field)}`,
      )
}
