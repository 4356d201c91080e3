import type { Model } from '../models/define.ts'
import type { Registry } from '../models/registry.ts'
import { comparedName } from '../names.ts'
import { type Asked, onlyOf, referenceName, type Seen } from './snapshot-sql.ts'
import { columnOf, type Row } from './statements.ts'
import { keysOf, storedKeys } from './storage.ts'
import { waysToFind } from './ways-to-find.ts'
import { storageOf, type World } from './world.ts'

/**
 * The answer to the question of an entry after the entries before it.
 *
 * @param seen the answer of the database, with or without the writes of those entries
 */
export function overlaid(world: World, registry: Registry, model: Model, asked: Asked, seen: Seen): Seen {
  if (world.isEmpty) return seen
  return {
    ...seen,
    rows: rowsOf(world, model, asked, seen),
    unfit: Object.fromEntries(
      [...asked.referred.values()].map(({ reference, keys }) => {
        const name = referenceName(reference)
        const { table = '' } = registry.targets.get(reference.target) ?? {}
        const only = onlyOf(registry, reference)
        const before = new Map(seen.unfit[name]?.map((each) => [each.key, each]))
        const unfit = keys.flatMap((key) => {
          if (!world.has(table, key)) return before.get(key) ?? []
          const row = world.row(table, key)
          const found = row === undefined ? null : only === undefined ? '' : String(row[only.column])
          const fits = found !== null && (only === undefined || only.values.includes(found))
          return fits ? [] : [{ key, found }]
        })
        return [name, unfit]
      }),
    ),
    taken: Object.fromEntries(
      [...asked.exclusive].map(([name, keys]) => [name, takenOf(world, model, name, keys, seen.taken[name])]),
    ),
    claimed: Object.fromEntries(
      Object.entries(seen.claimed).map(([name, rows]) => {
        const { table = '' } = registry.targets.get(model.fields.get(name)?.reference?.target ?? '') ?? {}
        return [name, rows.flatMap((row) => world.now(table, row) ?? [])]
      }),
    ),
    counted: countedOf(world, model, asked, seen),
  }
}

function rowsOf(world: World, model: Model, { by, within }: Asked, { rows }: Seen): Seen['rows'] {
  const { table } = model
  const ways = waysToFind(model, [...by.keys()])
  const has = (row: Row, name: string) => String(row[columnOf(model, name)] ?? '') === String(by.get(name))
  const isIt = (row: Row) => ways.some((way) => way.every((name) => has(row, name)))
  const written = ways.flatMap(([first = 'pk']) => world.with(table, columnOf(model, first), by.get(first)))
  // A row that was read comes last: it has its links.
  const all = [...written, ...rows.flatMap((row) => world.now(table, row) ?? [])].filter(isIt)
  return [...new Map(all.map((row) => [row.pk, row])).values()].slice(0, 2).map(({ links, ...row }) => {
    if (links === undefined) return row
    const named = Object.entries(links).map(([name, keys]) => {
      const some = within.get(name)
      return [name, some === undefined ? keys : keys.filter((key) => some.includes(key))]
    })
    return { ...row, links: Object.fromEntries(named) }
  })
}

/** For each value its holder: one with this very value comes before one with another spelling. */
function takenOf(
  world: World,
  { table, fields }: Model,
  name: string,
  keys: readonly (string | number)[],
  before: Seen['taken'][string] = [],
): Seen['taken'][string] {
  const field = fields.get(name)
  if (field === undefined) return before
  const compared = (value: unknown) => (field.folded ? comparedName(String(value)) : String(value))
  const others = new Map(before.filter(({ pk }) => !world.has(table, pk)).map((each) => [compared(each.value), each]))
  return keys.flatMap((key) => {
    const written = world.with(table, storageOf(field), key).flatMap((row) =>
      storedKeys(field, row)
        .filter((value) => compared(value) === compared(key))
        .map((value) => ({ ...row, value })),
    )
    const holders = [...written, ...[others.get(compared(key)) ?? []].flat()]
    return holders.find(({ value }) => value === key) ?? holders[0] ?? []
  })
}

function countedOf(world: World, { table, limit, fields }: Model, { counted }: Asked, seen: Seen): Seen['counted'] {
  const field = fields.get(limit?.per ?? '')
  const end = fields.get(limit?.until ?? '')
  if (field === undefined || end === undefined || counted === undefined) return seen.counted
  const counts = (row: Row) => {
    const [until] = keysOf(row[storageOf(end)])
    return storedKeys(field, row).includes(counted) && (until === undefined || new Date(until) > new Date())
  }
  const written = world.with(table, storageOf(field), counted).filter(counts)
  return [...seen.counted.filter((key) => !world.has(table, key)), ...written.map(({ pk }) => pk)]
}
