import { resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { measureIn } from './child.ts'
import { cpuSeconds } from './cpu.ts'
import type { FloorTask } from './floor.ts'
import type { LoadTask } from './load.ts'
import { median } from './measure.ts'
import { type BackendKind, type Database, openDatabase, openStand, type Stand } from './stand.ts'
import { countWrites, unusedIndexes, type Writes } from './writes.ts'

/**
 * Two checkouts of the product, each with servers and a database of its own, take turns in short rounds: what else the
 * machine does slows both alike, so that the ratio of their times holds where the times themselves do not.
 */

export type Against = {
  readonly checkout: string
  readonly clients: number
  readonly rounds: number
  readonly seconds: number
}

type Side = { readonly name: string; readonly server: Database; readonly stand: Stand }

/** CPU milliseconds per operation of one turn, and the middle of its times with one client. */
type Turn = { readonly cpuMs: number; readonly parts: ReadonlyMap<string, number>; readonly oneMs: number }

export async function benchAgainst(kind: BackendKind, { checkout, clients, rounds, seconds }: Against): Promise<void> {
  const sides: Side[] = []
  try {
    for (const [name, folder] of [
      ['this', ''],
      ['that', resolve(checkout)],
    ] as const) {
      const server = await openDatabase(undefined)
      sides.push({ name, server, stand: await openStand(server, kind, { checkout: folder }) })
    }
    for (const side of sides) await put(side, 'warm-up', clients, warmUpS)
    const found = new Map<string, Turn[]>()
    const keep = (name: string, turn: Turn) => void found.getOrInsertComputed(name, () => []).push(turn)
    for (let round = 1; round <= rounds; round += 1) {
      // Each goes first every other time.
      for (const side of round % 2 === 0 ? sides : sides.toReversed())
        keep(side.name, await turnOf(side, `round-${round}`, clients, seconds))
      const [own] = sides
      if (own !== undefined) keep('floor', await floorOf(own, `floor-${round}`, clients, seconds))
    }
    console.log(`\nqueue on ${kind}, ${rounds} rounds of ${seconds} s, ${clients} clients and one`)
    print(found)
    for (const side of sides) await printWrites(side)
  } finally {
    for (const { stand, server } of sides) {
      await stand.close()
      await server.close()
    }
  }
}

/** V8 compiles frequent code for about this long. */
const warmUpS = 20

const put = ({ stand }: Side, prefix: string, clients: number, seconds: number) =>
  measureIn('load.ts', {
    ...{ url: stand.url, token: stand.token, prefix: `${prefix}-${clients}`, clients, seconds },
  } satisfies LoadTask)

async function turnOf(side: Side, prefix: string, clients: number, seconds: number): Promise<Turn> {
  const { p50: oneMs } = await put(side, prefix, 1, seconds)
  const before = cpuOf(side.stand)
  const { count } = await put(side, prefix, clients, seconds)
  // What an apply leaves for later belongs to it.
  await delay(settleMs)
  const after = cpuOf(side.stand)
  const parts = new Map([...after].map(([name, ms]) => [name, (ms - (before.get(name) ?? Number.NaN)) / count]))
  return { cpuMs: sum(parts.values()), parts, oneMs }
}

const settleMs = 200

/** The same rows by hand-written SQL in one transaction: CPU of its process and of PostgreSQL. */
async function floorOf({ stand }: Side, prefix: string, clients: number, seconds: number): Promise<Turn> {
  const task = { database: stand.database, prefix, like: `warm-up-${clients}-1`, through: 'pg' } as const
  const one = await measureIn('floor.ts', { ...task, prefix: `${prefix}-one`, clients: 1, seconds } satisfies FloorTask)
  const before = cpuOf(stand).get('PostgreSQL') ?? Number.NaN
  const many = await measureIn('floor.ts', { ...task, clients, seconds } satisfies FloorTask)
  const database = ((cpuOf(stand).get('PostgreSQL') ?? Number.NaN) - before) / many.count
  const parts = new Map([
    ['process', many.cpuMs],
    ['PostgreSQL', database],
  ])
  return { cpuMs: sum(parts.values()), parts, oneMs: one.p50 }
}

const cpuOf = ({ processes }: Stand): Map<string, number> =>
  new Map(Object.entries(processes).map(([name, pid]) => [name, cpuSeconds(pid) * 1_000]))

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, each) => total + each, 0)

function print(found: ReadonlyMap<string, readonly Turn[]>): void {
  const those = found.get('that') ?? []
  for (const [name, turns] of found) {
    const names = [...(turns[0]?.parts.keys() ?? [])]
    const parts = names.map((part) => `${part} ${median(turns.map((turn) => turn.parts.get(part) ?? 0)).toFixed(2)}`)
    const cpu = median(turns.map(({ cpuMs }) => cpuMs)).toFixed(2)
    const one = median(turns.map(({ oneMs }) => oneMs)).toFixed(2)
    console.log(`${name.padEnd(5)} CPU ${cpu} ms an apply (${parts.join(', ')}); one client: p50 ${one} ms`)
    if (name === 'that') continue
    const ratios = [
      `CPU ${ratio(turns.map(({ cpuMs }, round) => cpuMs / (those[round]?.cpuMs ?? Number.NaN)))}`,
      `p50 of one client ${ratio(turns.map(({ oneMs }, round) => oneMs / (those[round]?.oneMs ?? Number.NaN)))}`,
    ]
    console.log(`      of that: ${ratios.join('; ')}`)
  }
}

/** The middle of all rounds, the middle half of them, and the ends. */
function ratio(ratios: readonly number[]): string {
  const sorted = ratios.toSorted((one, other) => one - other)
  const at = (share: number) => (sorted[Math.round((sorted.length - 1) * share)] ?? Number.NaN).toFixed(2)
  return `${at(0.5)} (half of the rounds ${at(0.25)} to ${at(0.75)}, all ${at(0)} to ${at(1)})`
}

/** Few, so that no checkpoint comes in between. */
const countedApplies = 100

async function printWrites(side: Side): Promise<void> {
  const { database } = side.stand
  const apply = async () => {
    const { count } = await measureIn('load.ts', {
      ...{ url: side.stand.url, token: side.stand.token, prefix: 'counted', clients: 1, seconds: 60 },
      count: countedApplies,
    } satisfies LoadTask)
    return count
  }
  const { wal, indexInserts, hot, updates, heapInserts }: Writes = await countWrites(database, apply)
  const facts = [
    `${(wal / 1_000).toFixed(1)} KB of WAL`,
    `${heapInserts.toFixed(1)} heap inserts`,
    `${indexInserts.toFixed(1)} index inserts`,
    `${hot.toFixed(1)} of ${updates.toFixed(1)} updates HOT`,
  ]
  console.log(`${side.name.padEnd(5)} a first apply: ${facts.join(', ')}`)
  console.log(`      indexes that nothing scanned: ${(await unusedIndexes(database)).join(', ')}`)
}
